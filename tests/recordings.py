"""Synthetic recordings: series written as OpenMetrics text, for a real Prometheus to read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

T0 = 1_800_000_000  # 2027-01-15T08:00:00Z: where every synthetic recording begins
SCRAPE = 15

Course = Callable[[float], float | None] | float


class Recording:
    """Series by metric name; a course gives the value at so many seconds after `T0`, None where the scrape has no such series."""

    def __init__(self, seconds: float = 1800, scrape: float = SCRAPE) -> None:
        self.seconds, self.scrape = seconds, scrape
        self._families: dict[str, dict[str, list[str]]] = defaultdict(dict)

    def put(self, name: str, labels: Mapping[str, str], course: Course) -> Recording:
        """Adds one series."""
        body = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
        samples = []
        for i in range(int(self.seconds // self.scrape) + 1):
            age = i * self.scrape
            value = course(age) if callable(course) else course
            if value is not None:
                samples.append(f"{name}{{{body}}} {value:.12g} {T0 + age}")
        self._families[name][body] = samples
        return self

    def rate(self, name: str, labels: Mapping[str, str], per_second: float) -> Recording:
        """Adds a counter that grows steadily."""
        return self.put(name, labels, lambda age: per_second * age)

    def mean(self, name: str, labels: Mapping[str, str], mean: float, per_second: float) -> Recording:
        """Adds a histogram with all its observations at `mean`."""
        self.rate(f"{name}_count", labels, per_second).rate(f"{name}_sum", labels, per_second * mean)
        for bound in (0.1, 1.0, 10.0, float("inf")):
            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            self.rate(f"{name}_bucket", {**labels, "le": le}, per_second if mean <= bound else 0.0)
        return self

    def vllm(self, pod: str, *, until: float | None = None, namespace: str = "prod", model: str = "llama", **levels: Course) -> Recording:
        """Adds a vLLM replica: its gauges (by name, without the prefix), a token counter and `up`, until it dies."""
        target = {"job": "vllm", "namespace": namespace, "pod": pod, "instance": f"{pod}:8000"}
        labels = {**target, "model_name": model, "engine": "0"}

        def alive(course: Course) -> Course:
            return lambda age: None if until is not None and age >= until else course(age) if callable(course) else course

        for name, course in {"num_requests_running": 2.0, "num_requests_waiting": 0.0, "kv_cache_usage_perc": 0.3, **levels}.items():
            self.put(f"vllm:{name}", labels, alive(course))
        self.put("vllm:generation_tokens_total", labels, alive(lambda age: 50 * age))
        return self.put("up", target, lambda age: 0.0 if until is not None and age >= until else 1.0)

    def text(self) -> str:
        """The OpenMetrics text: each family in one piece, every series in time order."""
        lines = []
        for name, series in self._families.items():
            lines.append(f"# TYPE {name} unknown")
            lines += [line for samples in series.values() for line in samples]
        return "\n".join([*lines, "# EOF\n"])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

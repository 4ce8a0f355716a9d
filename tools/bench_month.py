"""The timeline's fleet of `make bench`: 50 replicas and 30 days, scraped every 60 s, only the series that the page reads.

A calm day is repeated; three days have three incidents each. As in the fleet of a day, five replicas are simulated and each stands
for ten. The configuration of all of them changes once, in a rollout, and an alert fires in the first incident of each bad day.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.exposition import Exposition, expose
from tests.scrapes import T0, Scraping
from tests.traffic import Site, simulate

import bench_blocks
from bench_blocks import Chunk
from bench_fleet import COPIES, DAY, HOUR, REPLICAS, SIMULATED, say, site

DAYS, BAD = 30, (4, 13, 24)
EVERY = 60
START, END = T0, T0 + DAYS * DAY
BLOCK = 54 * HOUR  # the largest that Prometheus makes of two hours by threes within a tenth of a month
FLAGS = ("--storage.tsdb.max-block-duration=54h",)  # and does not join further
ROLLOUT = 18 * DAY + 10 * HOUR  # seconds; one replica after the other, ten seconds apart
GAUGES = ("vllm:kv_cache_usage_perc", "vllm:num_requests_running", "vllm:num_requests_waiting", "envoy_cluster_upstream_rq_active", "up")

Values = NDArray[np.float64]
Labels = tuple[tuple[str, str], ...]


@dataclass
class Day(Exposition):
    """What is scraped in a day, as it is: no text."""

    series: dict[Labels, tuple[Values, Values]] = field(default_factory=dict)

    def add(self, name: str, labels: dict[str, str], times: Values, values: Values) -> None:
        """Distributions are not read over a month."""
        if not name.endswith("_bucket"):
            known = np.isfinite(values)
            self.series[tuple(sorted({"__name__": name, **labels}.items()))] = times[known], values[known]


def build(folder: Path) -> Path:
    """The folder of the database; made once, which takes two minutes."""
    tsdb = folder / "month"
    if tsdb.exists():
        return tsdb
    began = time.monotonic()
    calm, bad = _day(Site(SIMULATED, DAY, rate=1.2), 3), _day(site(), 7)
    say(f"  two days simulated in {time.monotonic() - began:.0f} s")
    course = {labels: _course(labels, calm, bad) for labels in calm}
    unfinished = folder / "unfinished-month"
    for number in range(-(-DAYS * DAY // BLOCK)):
        bench_blocks.write(unfinished, number, list(_block(course, number * BLOCK, (number + 1) * BLOCK)))
        say(f"  day {min(DAYS, (number + 1) * BLOCK // DAY)} of {DAYS}, {time.monotonic() - began:.0f} s")
    unfinished.rename(tsdb)
    return tsdb


def _day(of: Site, seed: int) -> dict[Labels, tuple[Values, Values]]:
    truth = simulate(of, seed)
    truth = replace(truth, gateway={name: values * COPIES for name, values in truth.gateway.items()})
    day = Day()
    expose(day, truth, Scraping(every=EVERY, since=0, start=0, end=DAY - 1))
    return day.series


def _course(
    labels: Labels, calm: Mapping[Labels, tuple[Values, Values]], bad: Mapping[Labels, tuple[Values, Values]]
) -> tuple[Values, Values]:
    """A month of one series: a counter goes on where the day before ended."""
    name, counted = dict(labels)["__name__"], 0.0
    gauge = name in GAUGES or name.startswith("DCGM")
    times, values = [], []
    for day in range(DAYS):
        at, seen = (bad if day in BAD else calm)[labels]
        times.append(at + day * DAY)
        values.append(seen if gauge else seen + counted)
        counted = 0.0 if gauge or not seen.size else float(values[-1][-1])
    return np.concatenate(times), np.concatenate(values)


def _block(course: Mapping[Labels, tuple[Values, Values]], start: float, end: float) -> Iterator[tuple[dict[str, str], tuple[Chunk, ...]]]:
    """The series of a block: the gateway's once, each simulated replica's ten times, and what is not simulated."""
    for labels, (times, values) in course.items():
        encoded = _cut(times, values, start, end)
        mine = dict(labels)
        number = mine.get("pod", "").removeprefix("vllm-")
        if not number:
            yield mine, encoded
            continue
        for copy in range(COPIES):
            pod = f"vllm-{int(number) + copy * SIMULATED}"
            yield {label: value.replace(f"vllm-{number}", pod) for label, value in mine.items()}, encoded
    every = np.arange(0.0, DAYS * DAY, EVERY)
    for number in range(REPLICAS):
        target = {"job": "vllm", "namespace": "prod", "pod": f"vllm-{number}", "instance": f"vllm-{number}:8000"}
        info = {"__name__": "vllm:cache_config_info", **target, "block_size": "16", "num_gpu_blocks": "750"}
        changed = ROLLOUT + 10 * number
        yield {**info, "gpu_memory_utilization": "0.90"}, _cut(every[every < changed], np.ones(every.size), start, end)
        yield {**info, "gpu_memory_utilization": "0.92"}, _cut(every[every >= changed], np.ones(every.size), start, end)
    alert = {"__name__": "ALERTS", "alertname": "FirstTokenSlow", "alertstate": "firing", "severity": "page", "namespace": "prod"}
    fires = np.isin(every // DAY, BAD) & (every % DAY >= 5 * HOUR + 300) & (every % DAY < 5 * HOUR + 2400)
    yield alert, _cut(every[fires], np.ones(every.size), start, end)


def _cut(times: Values, values: Values, start: float, end: float) -> tuple[Chunk, ...]:
    within = (times >= start) & (times < end)
    return bench_blocks.chunks(np.rint((T0 + times[within]) * 1000).astype(np.int64), values[: times.size][within])

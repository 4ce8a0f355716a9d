"""A Prometheus-compatible HTTP API as a source. All questions of a diagnosis go out in a few joined requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from prometheus_api_client import PrometheusConnect

from obs import counters, errand, matrix
from obs.errors import SourceError
from obs.intervals import sensible
from obs.joined import batches, is_plain, joined
from obs.matrix import TAG
from obs.promql import by_names, duration, series
from obs.refusals import DOWN, QueryRefusedError, StatusError, TooSlowError
from obs.series import Grid
from obs.source import About, Answer, Inspection, Query
from obs.text import Message, say
from obs.transport import PrometheusSession

if TYPE_CHECKING:
    from obs.config import SourceSettings

THREADS = 6  # more gain nothing: Prometheus is the bottleneck (measured: 1.4 times at most on 2 cores)
WIDE_SECONDS, WIDE_TIMES = 8 * 3600.0, 3  # a question over more than this may take so many times as long: it reads days of samples
SLICES = 4  # a query that is too slow over a wide grid is asked for in parts, down to a quarter of it
REACH_SECONDS, REACH_STEPS = 60 * 86400.0, 240  # how far back the oldest sample is looked for, and how finely: six hours
LONG = 1500  # characters of a query that still travel in a URL


class Prometheus:
    """Implements `obs.source.Source`. Safe to share between threads."""

    def __init__(self, source: SourceSettings) -> None:
        self._settings = source
        self.session = PrometheusSession(source)
        self._get = PrometheusConnect(self.session.base, session=self.session, timeout=source.timeout_seconds)
        self._post = PrometheusConnect(self.session.base, session=self.session, timeout=source.timeout_seconds, method="POST")
        self.session.settle()
        self._about: About | None = None
        self._started = ""
        self.requests = 0

    def about(self) -> About:
        """What the build information says; an API without that page is `unknown`, not an error."""
        if self._about is None:
            self.requests += 1
            try:
                data = self.session.request("GET", f"{self.session.base}/api/v1/status/buildinfo").json()["data"]
            except StatusError as error:
                if error.status in (401, 403) or error.status >= 500:
                    raise
                data = None
            flavor, version = _flavor(data) if isinstance(data, dict) else ("unknown", "")
            self._about = About(self._settings.name, flavor, version)
        return self._about

    def started(self) -> str:
        """When its process was started; empty where there is no such page: only Prometheus itself has it."""
        found = str(self._runtime().get("startTime", ""))
        if found != self._started:
            if self._started:  # the first one is who was asked so far
                self._about = None
            self._started = found
        return found

    def _runtime(self) -> Mapping[str, Any]:
        """What it says of its process; nothing where there is no such page."""
        self.requests += 1
        try:
            data = self.session.request("GET", f"{self.session.base}/api/v1/status/runtimeinfo").json()["data"]
        except StatusError as error:
            if error.status in DOWN:
                raise
            data = None
        return data if isinstance(data, dict) else {}

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        """All metric names of the stretch (to the block: a name may have no sample in it)."""
        self.requests += 1
        names = self._get.get_label_values("__name__", params={"start": start, "end": end})
        if not isinstance(names, list | None):
            raise SourceError(self._odd())
        return frozenset(map(str, names or ()))

    def scrape_intervals(self, metrics: Sequence[str], matchers: str, start: float, end: float) -> list[float | None]:
        """All in one request, or up to four while one is not seen: looked for backwards. The median: lost scrapes do not count."""
        found: dict[str, float] = {}
        for share in (0.0, 0.25, 0.5, 0.75):
            left = [metric for metric in metrics if metric not in found]
            if not left:
                break
            gaps: dict[str, list[float]] = {metric: [] for metric in left}
            for row in self._instant(f"{by_names(left, matchers)}[10m]", end - share * (end - start)):
                if row["metric"].get("__name__") in gaps:
                    gaps[row["metric"]["__name__"]] += np.diff([float(sample[0]) for sample in row["values"]]).tolist()
            found |= {metric: sensible(float(np.median(seconds))) for metric, seconds in gaps.items() if seconds}
        return [found.get(metric) for metric in metrics]

    def inspect(self, metric: str | None, end: float) -> Inspection:
        """What it says of its retention, if it is a Prometheus: no other does; and where `metric` had samples in the 60 d before."""
        retention = str(self._runtime().get("storageRetention", "")) if self.about().flavor in ("prometheus", "unknown") else ""
        oldest = None
        back = Grid(end - REACH_SECONDS, REACH_SECONDS / REACH_STEPS, REACH_STEPS + 1)
        if metric:
            rows = self._range(f"count({series(metric, '')})", back)
            oldest = min((float(row["values"][0][0]) for row in rows if row["values"]), default=None)
        return self.timed(Inspection(retention=retention, oldest=oldest, at_least=oldest == back.start))

    def timed(self, inspection: Inspection) -> Inspection:
        """The clock and the counts as they are now."""
        now = self.session.asked
        slowest, total = now.slowest_seconds, now.total_seconds
        return replace(inspection, clock_seconds=now.clock_seconds, requests=now.count, slowest_seconds=slowest, total_seconds=total)

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """In few requests: rates of plain counters by name, distributions over a grid of their own, everything else joined.

        Where a request is refused or too slow, its parts are asked for by themselves, down to the single query.
        """
        numbered = list(enumerate(queries))
        plain = counters.grouped(((i, q) for i, q in numbered if q.counter), grid)
        sampled = [group for group in plain if counters.is_sampled(group)]
        works = [partial(self._counters, group, grid) for group in plain if group not in sampled]
        for stride in sorted({query.stride for query in queries}):
            for batch in batches([(i, q) for i, q in numbered if q.stride == stride and not q.counter]):
                if stride == 1 and sampled and is_plain(batch):
                    works.append(partial(self._both, sampled.pop(0), batch, grid))
                else:
                    works.append(partial(self._strided, batch, grid, stride))
        works += [partial(self._counters, group, grid) for group in sampled]
        parts = errand.together(works, THREADS)
        found = {index: answer for part in parts for index, answer in part.items()}
        refused = [answer.refused for answer in found.values() if answer.refused]
        if refused and len(refused) == len(queries):
            raise SourceError(refused[0])
        notes = tuple(say("The source warns: {text}", text=text) for text in self.session.warnings)
        return [Answer(found[i].labels, found[i].values, found[i].refused, notes) for i in range(len(queries))]

    def at(self, queries: Sequence[Query], moment: float) -> list[Answer]:
        """In one request."""
        found = self._batch(list(enumerate(queries)), Grid(moment, 1.0, 1))
        return [found[index] for index in range(len(queries))]

    def _both(self, group: list[tuple[int, Query]], batch: list[tuple[int, Query]], grid: Grid) -> dict[int, Answer]:
        """Sampled counters and joined queries in one request: both are asked for at the same steps."""
        queries = [query for _, query in group]
        try:
            rows = self._range(f"{joined(batch)} or {counters.named(queries)}", counters.before(queries, grid))
        except (QueryRefusedError, TooSlowError):
            return {**self._counters(group, grid), **self._batch(batch, grid)}
        tagged, plain = [row for row in rows if TAG in row["metric"]], [row for row in rows if TAG not in row["metric"]]
        return {**self._sorted(batch, tagged, grid), **self._rates(group, plain, grid)}

    def _counters(self, group: list[tuple[int, Query]], grid: Grid) -> dict[int, Answer]:
        """The rates of several counters from their samples: every sample, or where a step holds several, one a step."""
        queries = [query for _, query in group]
        try:
            if counters.is_sampled(group):
                rows = self._range(counters.named(queries), counters.before(queries, grid))
            else:
                rows = self._instant(counters.raw(queries, grid), grid.end)
        except (QueryRefusedError, TooSlowError):
            return {index: answer for batch in batches(group) for index, answer in self._batch(batch, grid).items()}
        return self._rates(group, rows, grid)

    def _rates(self, group: list[tuple[int, Query]], rows: list[Mapping[str, Any]], grid: Grid) -> dict[int, Answer]:
        queries = [query for _, query in group]
        try:
            made = counters.answers(queries, counters.read(rows), grid, closed=not self._left_open())
            return dict(zip((index for index, _ in group), made, strict=True))
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise SourceError(self._odd()) from error

    def _left_open(self) -> bool:
        """Whether a sample exactly at a range's beginning is left out, as from Prometheus 3 on."""
        major = self._about.version.partition(".")[0] if self._about and self._about.flavor == "prometheus" else ""
        return major.isdigit() and int(major) >= 3

    def _strided(self, batch: list[tuple[int, Query]], grid: Grid, stride: int) -> dict[int, Answer]:
        """Answers over a coarser grid that ends where this one does, each figure standing for the steps before it."""
        if stride == 1:
            return self._batch(batch, grid)
        count = -(-grid.count // stride)
        coarse = Grid(grid.end - (count - 1) * stride * grid.step, stride * grid.step, count)
        place = count - 1 - np.arange(grid.count - 1, -1, -1) // stride
        found = self._batch(batch, coarse)
        return {index: replace(answer, values=answer.values[:, place]) for index, answer in found.items()}

    def _batch(self, batch: list[tuple[int, Query]], grid: Grid) -> dict[int, Answer]:
        try:
            rows = self._range(joined(batch), grid)
        except (QueryRefusedError, TooSlowError) as error:
            if len(batch) == 1 and isinstance(error, TooSlowError):
                return {batch[0][0]: self._slices(batch[0][1], grid, SLICES, error)}
            if len(batch) == 1:
                return {batch[0][0]: Answer((), np.empty((0, grid.count)), error.says)}
            half = len(batch) // 2
            return {**self._batch(batch[:half], grid), **self._batch(batch[half:], grid)}
        return self._sorted(batch, rows, grid)

    def _sorted(self, batch: list[tuple[int, Query]], rows: list[Mapping[str, Any]], grid: Grid) -> dict[int, Answer]:
        """The rows of a joined query by the query that they answer."""
        sorted_rows: dict[int, list[Mapping[str, Any]]] = {index: [] for index, _ in batch}
        for row in rows:
            tag = row["metric"].get(TAG)
            sorted_rows[batch[0][0] if tag is None or len(batch) == 1 else int(tag)].append(row)
        try:
            return {index: matrix.dense(found, grid) for index, found in sorted_rows.items()}
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise SourceError(self._odd()) from error

    def _slices(self, query: Query, grid: Grid, slices: int, error: TooSlowError) -> Answer:
        """One query over the halves of a wide grid, one after the other, put together again. Raises where a quarter is too slow too."""
        if slices < 2 or grid.end - grid.start <= WIDE_SECONDS:
            raise error
        half = grid.count // 2
        parts = [Grid(grid.start, grid.step, half), Grid(grid.start + half * grid.step, grid.step, grid.count - half)]
        rows: list[Mapping[str, Any]] = []
        for part in parts:
            try:
                rows += self._range(query.promql, part)
            except TooSlowError as again:
                found = self._slices(query, part, slices // 2, again)
                rows += [matrix.sparse(labels, values, part) for labels, values in zip(found.labels, found.values, strict=True)]
        return matrix.dense(matrix.whole(rows), grid)

    def _instant(self, promql: str, at: float) -> list[Mapping[str, Any]]:
        self.requests += 1
        asked = {"params": {"time": at, "timeout": duration(self._settings.timeout_seconds)}, "timeout": self._settings.timeout_seconds}
        client = self._post if len(promql) > LONG else self._get
        rows = self._call(client.custom_query, promql, **asked)
        if not all(isinstance(row.get("values"), list) and isinstance(row.get("metric"), dict) for row in rows):
            raise SourceError(self._odd())
        return rows

    def _range(self, promql: str, grid: Grid) -> list[Mapping[str, Any]]:
        self.requests += 1
        client = self._post if len(promql) > LONG else self._get
        start, end = (datetime.fromtimestamp(t, UTC) for t in (grid.start, grid.end))
        seconds = self._settings.timeout_seconds * (WIDE_TIMES if grid.end - grid.start > WIDE_SECONDS else 1)
        asked = {"params": {"timeout": duration(seconds)}, "timeout": seconds}
        rows = self._call(client.custom_query_range, promql, start, end, f"{grid.step:g}", **asked)
        if not all(isinstance(row.get("values"), list) and isinstance(row.get("metric"), dict) for row in rows):
            raise SourceError(self._odd())
        return rows

    def _call(self, ask: Any, *args: Any, **kwargs: Any) -> list[Mapping[str, Any]]:
        try:
            rows = ask(*args, **kwargs)
        except (KeyError, TypeError) as error:  # the client reads ["data"]["result"] unchecked
            raise SourceError(self._odd()) from error
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise SourceError(self._odd())
        return rows

    def _odd(self) -> Message:
        return say(
            "{address} answered with something other than the series that were asked for. Check that it is a Prometheus API.",
            address=self._settings.address,
        )


def _flavor(data: Mapping[str, Any]) -> tuple[str, str]:
    """Which product this is, by its build information: Mimir and Cortex name themselves, VictoriaMetrics gives a bare version or none."""
    version = str(data.get("version", ""))
    application = str(data.get("application", "")).lower()
    for name in ("mimir", "cortex"):
        if name in application:
            return name, version
    if "goVersion" not in data and "revision" not in data:
        return "victoriametrics", version
    return ("thanos", version) if version.startswith("0.") else ("prometheus", version)

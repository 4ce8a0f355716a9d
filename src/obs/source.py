"""The port: what the product asks of a source of readings. Prometheus and an evidence bundle are its two adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from obs.series import Array, Grid
from obs.text import Message

COUNTING = "|samples"  # how the key of a question ends that only tells how often a system is scraped
ALONE_ROWS = 10_000  # what a question claims to answer with where it wants a request of its own


@dataclass(frozen=True)
class Counter:
    """What a query whose `promql` is `combine by (...) (rate(metric{...}[...]))` is made of, for a source that takes many at once.

    `match` are the matchers beside the scope. `zero_where`: where this metric is counted and the other is not, the rate is 0.
    """

    metric: str
    match: str
    seconds: float  # the range of the rate
    combine: str  # "sum", "max" or "min"
    sampled: bool = False  # a step holds several samples: its growth from step to step will do
    zero_where: str = ""
    zero_match: str = ""


@dataclass(frozen=True)
class Query:
    """One question. `key` names it for good (`kv_use|vllm:kv_cache_usage_perc|value`): a bundle answers by key, Prometheus by `promql`.

    `selector` is the scope (label -> wanted values, in this vocabulary's labels); it is already in `promql`, and a bundle filters by it.
    """

    key: str
    promql: str
    selector: tuple[tuple[str, tuple[str, ...]], ...] = ()
    by: tuple[str, ...] = ()  # the labels its rows carry: a row without one of them has it empty
    rows: int = 1  # about how many series to expect
    thin: str = "last"  # how a source that holds a finer grid fills a coarser step: "last", "max" or "min"
    counter: Counter | None = None  # the same question in parts; a source may ignore it
    stride: int = 1  # one figure for so many steps is enough, and the rate's range is as long

    def alone(self) -> Query:
        """The same question, claiming so many rows that it is joined with no other."""
        return replace(self, rows=max(self.rows, ALONE_ROWS))


@dataclass(frozen=True)
class Answer:
    """Series in answer to one query: labels of each row, and values of shape [rows, grid.count], NaN where there is no sample."""

    labels: tuple[dict[str, str], ...]
    values: Array
    refused: Message | None = None  # this one query was refused, and why; the others were answered
    notes: tuple[Message, ...] = ()  # what the source remarks (a partial answer, say)


@dataclass(frozen=True)
class About:
    """What a source says of itself."""

    name: str
    flavor: str  # "prometheus", "victoriametrics", "thanos", "mimir", "bundle"
    version: str
    start: float | None = None  # the stretch it holds, where it is bounded (a bundle): Unix seconds
    end: float | None = None
    opening: tuple[float, float] | None = None  # what it is opened on where no window is named, if that is not all it holds
    step: float | None = None  # its own step, where it cannot answer a finer one


@dataclass(frozen=True)
class Inspection:
    """What only the source's adapter can tell of how far it can be trusted. None: it does not tell."""

    clock_seconds: float | None = None  # the source's clock less this machine's
    retention: str = ""  # how long it keeps samples, in its own words
    oldest: float | None = None  # the oldest sample that was seen, Unix seconds
    at_least: bool = False  # it was not looked for further back
    requests: int | None = None  # since this process began; None where nothing is asked over a network
    slowest_seconds: float = 0.0
    total_seconds: float = 0.0


@runtime_checkable
class Inspectable(Protocol):
    """A source that can be inspected."""

    def inspect(self, metric: str | None, end: float) -> Inspection:
        """Looks backwards from `end` for the oldest sample of `metric`. Raises SourceError only where the source cannot be reached."""

    def timed(self, inspection: Inspection) -> Inspection:
        """The same inspection with the clock and the counts as they are now; asks nothing."""


@runtime_checkable
class Instant(Protocol):
    """A source that answers for one moment alone, beside its grids."""

    def at(self, queries: Sequence[Query], moment: float) -> list[Answer]:
        """One answer for each query, in order; values of shape [rows, 1]. Raises SourceError."""


class Source(Protocol):
    """Answers range queries. Every failure is an `obs.errors.SourceError`, whose message tells the person what to do."""

    def about(self) -> About:
        """Name, flavour, version; asks at most once."""

    def metric_names(self, start: float, end: float) -> frozenset[str]:
        """The metric names that exist in the stretch (a bundle: those it was made from)."""

    def scrape_intervals(self, metrics: Sequence[str], matchers: str, start: float, end: float) -> list[float | None]:
        """Seconds between samples of each metric, of the series that `matchers` pick, found from raw samples near `end`; None where
        there are none."""

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """One answer for each query, in order."""


@runtime_checkable
class Recognisable(Protocol):
    """A source that tells one server process from another."""

    def started(self) -> str:
        """When the process that answers was started, in its own words; empty where it does not say. Raises SourceError."""

    def answer(self, queries: Sequence[Query], grid: Grid) -> list[Answer]:
        """As every source's."""

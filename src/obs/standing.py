"""How each replica stands: in trouble, odd, unseen or well, what that is, and its figures over the window; worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from obs import inside
from obs.facts import Facts
from obs.histogram import Side, over
from obs.order import DAY_SECONDS
from obs.outliers import Outlier
from obs.series import Mask, anywhere, runs
from obs.signals import Buckets, Reading, Replica
from obs.text import Message, Moment, say, say_n
from obs.titles import ROWS
from obs.verdict import ROW_IDS, Diagnosis, Stance, State


class Stands(IntEnum):
    """What is the matter, worst first."""

    STALLED = 0
    DOWN = 1
    APPLIES = 2
    APPLIED = 3
    OUTLIER = 4
    SUSPECTED = 5
    RESTARTED = 6
    STARTING = 7
    GONE = 8
    UNKNOWN = 9
    WORKS = 10
    IDLE = 11


SICK = (Stands.STALLED, Stands.DOWN, Stands.APPLIES, Stands.APPLIED)
DOUBTFUL = (Stands.SUSPECTED, Stands.RESTARTED)
UNSEEN = (Stands.DOWN, Stands.GONE, Stands.UNKNOWN)
WORDS: Mapping[Stands, Message] = {
    Stands.STALLED: say("stalled"),
    Stands.DOWN: say("scrapes fail"),
    Stands.APPLIES: say("in trouble"),
    Stands.APPLIED: say("was in trouble"),
    Stands.OUTLIER: say("stands out"),
    Stands.SUSPECTED: say("suspected"),
    Stands.RESTARTED: say("restarted"),
    Stands.STARTING: say("warming up"),
    Stands.GONE: say("gone"),
    Stands.UNKNOWN: say("no figures"),
    Stands.WORKS: say("works"),
    Stands.IDLE: say("idle"),
}
_STATES: Mapping[Stands, State] = {
    Stands.STALLED: State.APPLIES, Stands.APPLIES: State.APPLIES, Stands.APPLIED: State.APPLIES,
    Stands.OUTLIER: State.SUSPECTED, Stands.SUSPECTED: State.SUSPECTED,
    Stands.RESTARTED: State.SUSPECTED, Stands.STARTING: State.SUSPECTED,
    Stands.DOWN: State.UNKNOWN, Stands.GONE: State.UNKNOWN, Stands.UNKNOWN: State.UNKNOWN,
    Stands.WORKS: State.CLEAR, Stands.IDLE: State.CLEAR,
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A figure of one replica over the window; where there is none, the word for it: no traffic is another thing than not measured."""

    value: float | None
    why: Message | None = None
    says: Message | None = None  # where the figure is a bound only: what it is


@dataclass(frozen=True)
class Standing:
    """One replica. `place` is its row in the readings; the levels are the highest of the window, tokens and TTFT the mean over it."""

    replica: Replica
    place: int
    stands: Stands
    says: Message | None  # the row and since when, or what stands out
    row: str | None
    cells: Mapping[str, Cell]  # by COLUMNS

    @property
    def state(self) -> State:
        """Sign and colour."""
        return _STATES[self.stands]


COLUMNS = ("kv_use", "requests_waiting", "requests_running", "generation_tokens", "ttft", "ttft_p95", "restarts")
Tails = Mapping[str, Buckets]  # the first tokens of a replica over the window, by its name


def standings(facts: Facts, diagnosis: Diagnosis, odd: Sequence[Outlier], tails: Tails) -> tuple[Standing, ...]:
    """Every replica, the sickest first; among those alike, the one with most waiting, then the fullest."""
    told, far = _rows(diagnosis), {outlier.replica: outlier for outlier in odd}
    columns = {name: _tails(facts, tails) if name == "ttft_p95" else _column(facts, name) for name in COLUMNS}
    end = _end(facts)
    found = []
    for place, replica in enumerate(facts.readings.replicas):
        stands, says, row = _stands(facts, place, told.get(replica.name), far.get(replica.name), columns["restarts"][place], end)
        found.append(Standing(replica, place, stands, says, row, {name: column[place] for name, column in columns.items()}))
    return tuple(sorted(found, key=_order))


def _order(standing: Standing) -> tuple[int, int, float, float, str]:
    row = ROW_IDS.index(standing.row) if standing.row else len(ROW_IDS)
    waiting, use = (standing.cells[name].value or 0.0 for name in ("requests_waiting", "kv_use"))
    return standing.stands, row, -waiting, -use, standing.replica.name


@dataclass(frozen=True)
class _Told:
    """What the diagnosis says of one replica."""

    row: str
    start: float | None  # None: suspected
    end: float | None
    dated: bool

    @property
    def lasts(self) -> bool:
        return self.start is not None and self.end is None

    @property
    def says(self) -> Message:
        if self.start is None:
            return ROWS[self.row]
        start = Moment(self.start, self.dated)
        if self.end is None:
            return say("{row}, since {start}", row=ROWS[self.row], start=start)
        return say("{row}, from {start} to {end}", row=ROWS[self.row], start=start, end=Moment(self.end, self.dated))


def _rows(diagnosis: Diagnosis) -> dict[str, _Told]:
    """The row of each replica: what lasts before what is over, the primary one before the others, what applies before what is suspected."""
    dated = diagnosis.end - diagnosis.start > DAY_SECONDS
    found: list[tuple[tuple[bool, bool, bool], str, _Told]] = []
    for verdict in diagnosis.verdicts:
        other = verdict.row != diagnosis.primary
        for episode in verdict.episodes:
            told = _Told(verdict.row, episode.start, episode.end, dated)
            found += [((False, not told.lasts, other), name, told) for name in episode.replicas]
        if verdict.state is State.SUSPECTED:
            names = {name for piece in verdict.evidence if piece.stance is Stance.SUPPORTS for name in piece.replicas}
            found += [((True, True, other), name, _Told(verdict.row, None, None, dated)) for name in sorted(names)]
    out: dict[str, _Told] = {}
    for _rank, name, told in sorted(found, key=lambda item: item[0]):
        out.setdefault(name, told)
    return out


def _end(facts: Facts) -> slice:
    """The steps at the window's end in which a sample is fresh."""
    seconds = max(2 * facts.readings.scrape_seconds, 60.0, facts.grid.step)
    return slice(facts.grid.index(facts.readings.end - seconds), facts.grid.index(facts.readings.end) + 1)


def _stands(
    facts: Facts, place: int, told: _Told | None, far: Outlier | None, restarts: Cell, end: slice
) -> tuple[Stands, Message | None, str | None]:
    """(what is the matter, in words, the row)."""
    dated = facts.readings.end - facts.readings.start > DAY_SECONDS
    row = told.row if told is not None and told.start is not None else None
    if facts.stalled[place, end][-1]:
        since = Moment(_since(facts, facts.stalled[place]), dated)
        return Stands.STALLED, say("work is held and no engine step is made, since {since}", since=since), row
    if facts.gone[place, end][-1]:
        return Stands.DOWN, say("nothing is known of it since {since}", since=Moment(_since(facts, facts.gone[place]), dated)), row
    if told is not None and told.start is not None:
        return Stands.APPLIES if told.lasts else Stands.APPLIED, told.says, told.row
    if not facts.measured[place, end].any():
        return _not_there(facts, place, dated)
    if (was := _was(facts, place, dated)) is not None:
        return Stands.APPLIED, was, None
    if far is not None:
        return Stands.OUTLIER, far.says, None
    if restarts.value:
        return Stands.RESTARTED, say_n("{n} time in this window", "{n} times in this window", int(restarts.value)), None
    if facts.warming[place, end][-1]:
        return Stands.STARTING, say("its first minutes are not judged"), None
    if told is not None:
        return Stands.SUSPECTED, told.says, told.row
    return (Stands.WORKS, None, None) if _busy(facts, place) else (Stands.IDLE, say("no request in this window"), None)


def _was(facts: Facts, place: int, dated: bool) -> Message | None:
    """What kept it from working earlier in the window, longest first."""
    window, times = inside.inside(facts), facts.grid.times
    stalls, gaps = (runs(mask[place] & window) for mask in (facts.stalled, facts.gone))
    if not stalls and not gaps:
        return None
    first, last = max(stalls + gaps, key=lambda run: run[1] - run[0])
    start, end = Moment(float(times[first]), dated), Moment(float(times[last]), dated)
    if (first, last) in stalls:
        return say("made no engine step, from {start} to {end}", start=start, end=end)
    return say("its scrapes failed, from {start} to {end}", start=start, end=end)


def _busy(facts: Facts, place: int) -> bool:
    window = inside.inside(facts)
    work = (facts.working, facts.values("generation_tokens"), facts.values("requests_finished"))
    return any(bool((np.nan_to_num(values[place, window]) > 0).any()) for values in work)


def _not_there(facts: Facts, place: int, dated: bool) -> tuple[Stands, Message | None, str | None]:
    seen = np.flatnonzero(facts.measured[place])
    if not seen.size:
        return Stands.UNKNOWN, say("no figure of its engine in this window"), None
    at = Moment(float(facts.grid.times[seen[-1]]), dated)
    return Stands.GONE, say("last seen at {at}: replaced, scaled down or dead", at=at), None


def _since(facts: Facts, mask: Mask) -> float:
    return float(facts.grid.times[runs(mask)[-1][0]])


# ---------------------------------------------------------------- figures


def _column(facts: Facts, name: str) -> list[Cell]:
    window = inside.inside(facts)
    if name == "restarts":
        return _restarts(facts)
    reading = facts.reading(name)
    if name == "ttft":
        return _means(reading, window)
    seen = np.where(facts.stalled | facts.down, np.nan, facts.values(name))[:, window]
    known = np.isfinite(seen)
    if name == "generation_tokens":
        figures = np.where(known, seen, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    else:
        figures = np.where(known, seen, -np.inf).max(axis=1, initial=-np.inf)
    absent, there = say("not measured"), anywhere(known.T)
    return [Cell(float(figures[place])) if there[place] else Cell(None, absent) for place in range(facts.rows)]


def _means(reading: Reading, window: Mask) -> list[Cell]:
    """The mean of all that was observed in the window: the sum by the count."""
    absent, quiet = say("not measured"), say("no traffic")
    if reading.total is None or reading.count is None:
        return [Cell(None, absent)] * len(reading.values)
    total, count = reading.total[:, window], reading.count[:, window]
    known, above, below = anywhere(np.isfinite(count).T), np.nansum(total, axis=1), np.nansum(count, axis=1)
    return [
        Cell(None, absent) if not known[place] else Cell(float(above[place] / below[place])) if below[place] > 0 else Cell(None, quiet)
        for place in range(len(total))
    ]


def _tails(facts: Facts, tails: Tails) -> list[Cell]:
    """p95 of each replica's own first tokens; in the first or the last bucket a bound."""
    found = []
    for replica in facts.readings.replicas:
        buckets = tails.get(replica.name)
        p95 = over(buckets, np.ones(1, dtype=np.bool_), 0.95) if buckets is not None else None
        if p95 is None:
            found.append(Cell(None, say("not measured") if buckets is None else say("no traffic")))
        else:
            found.append(Cell(p95.value, None, None if p95.side is Side.WITHIN else p95.says("seconds")))
    return found


def _restarts(facts: Facts) -> list[Cell]:
    """Starts of a process that was there before, in the window; a new replica's first start is none."""
    window = inside.inside(facts)
    known = np.zeros(facts.rows, dtype=np.bool_)
    for signal in ("counter_resets", "container_restarts"):
        known |= np.isfinite(facts.values(signal)[:, window]).any(axis=1)
    why = say("not measured")
    return [Cell(float(len(runs(row & window)))) if there else Cell(None, why) for row, there in zip(facts.restarts, known, strict=True)]

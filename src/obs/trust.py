"""Whether what a page says rests on anything: the signals with what suffers without them, the engines, the scrapes, the clocks, the source.

The same facts for the Data page and for `obs coverage`. `Inspection` (obs.source) is what only the source's adapter can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from obs.coverage import HELPS, NEEDS
from obs.flavors import remarks
from obs.question import Figure, Said
from obs.signals import Reading, Readings, Replica, Status
from obs.source import About, Inspection
from obs.text import Message, Moment, Names, Quantity, Sentences, Value, say, say_n
from obs.titles import ROWS
from obs.verdict import Diagnosis, State, Verdict

CLOCK_SECONDS = 2.0  # a Date header has whole seconds: less than this is no difference
FAILED_RATIO = 0.01  # of the scrapes of the window
_ORDER = (Status.ABSENT, Status.STALE, Status.NO_TRAFFIC, Status.MEASURED)


@dataclass(frozen=True)
class Suffers:
    """A row of the table that a missing signal leaves unknown, or only without an explanation."""

    row: str
    needed: bool
    since: bool = False  # it was there, and ended before the window did

    @property
    def says(self) -> Message:
        """In words."""
        if self.needed and self.since:
            return say("{row}: unknown since then", row=ROWS[self.row])
        if self.needed:
            return say("{row}: unknown", row=ROWS[self.row])
        return say("{row}: harder to explain", row=ROWS[self.row])


@dataclass(frozen=True)
class Line:
    """One signal. `others` are the names that were looked for beside the one that was found."""

    reading: Reading
    others: tuple[str, ...]
    suffers: tuple[Suffers, ...]


@dataclass(frozen=True)
class Engine:
    """The processes that show themselves alike: which system, which version, how many."""

    title: str
    says: Message
    replicas: int

    @property
    def counted(self) -> Message:
        """How many, and which."""
        return say_n("{n} replica, {version}", "{n} replicas, {version}", self.replicas, version=self.says)


@dataclass(frozen=True)
class Trust:
    """The answer to "Can I trust this page?", and everything it rests on. Lines: what is not measured first."""

    said: Said
    lines: tuple[Line, ...]
    engines: tuple[Engine, ...]
    facts: tuple[tuple[Message, Message], ...]


def trust(readings: Readings, diagnosis: Diagnosis, about: About, inspection: Inspection, systems: Mapping[str, str]) -> Trust:
    """Pure: from what was read and inspected. `systems`: the titles of engines by their id."""
    figures = (_measured(readings), _scrape(readings), _failed(readings), _clock(about, inspection), _reach(readings, inspection),
               _asked(inspection))  # fmt: skip
    unknown = [verdict for verdict in diagnosis.verdicts if verdict.state is State.UNKNOWN]
    state, says = _answer(readings, unknown, any(figure.state is State.SUSPECTED for figure in figures))
    said = Said(state, says, figures, tuple(_why(verdict) for verdict in unknown))
    lines = sorted((line(readings, reading) for reading in readings.signals.values()), key=lambda each: _rank(each))
    return Trust(said, tuple(lines), engines(readings.replicas, systems), _facts(readings, about, inspection))


def _answer(readings: Readings, unknown: list[Verdict], odd: bool) -> tuple[State, Message]:
    if not readings.engine_seen:
        return State.UNKNOWN, say("No: no engine's metrics were found, so nothing can be judged.")
    if len(unknown) == len(ROWS):
        return State.UNKNOWN, say("No: none of the four rows can be judged.")
    if len(unknown) == 1:
        return State.SUSPECTED, say("In part: three of the four rows can be judged, and “{row}” cannot.", row=ROWS[unknown[0].row])
    if unknown:
        return State.SUSPECTED, say("In part: {n} of the four rows cannot be judged.", n=len(unknown))
    if odd:
        return State.SUSPECTED, say("With care: all four rows can be judged, but something in the data is out of line.")
    return State.CLEAR, say("Yes: all four rows can be judged, and nothing in the data is out of line.")


def _why(verdict: Verdict) -> Message:
    reasons = verdict.missing or ((verdict.reason,) if verdict.reason else ())
    return say("{row}: {why}", row=ROWS[verdict.row], why=reasons[0] if reasons else say("not judged."))


def line(readings: Readings, reading: Reading) -> Line:
    """A signal with its other names, and the rows that suffer where it is not measured."""
    found = set((reading.metric or "").split(" / "))
    return Line(reading, tuple(name for name in reading.looked_for if name not in found), suffers(readings, reading))


def suffers(readings: Readings, reading: Reading) -> tuple[Suffers, ...]:
    """The rows that lack something without this signal; none where it is measured, or another of its kind is."""
    if reading.status in (Status.MEASURED, Status.NO_TRAFFIC):
        return ()
    signal, found = reading.signal.id, []
    for row in ROWS:
        groups = [group for group in NEEDS[row] if signal in group]
        if any(all(readings.signals[each].status in (Status.ABSENT, Status.STALE) for each in group) for group in groups):
            found.append(Suffers(row, needed=True, since=reading.status is Status.STALE))
        elif signal in HELPS[row]:
            found.append(Suffers(row, needed=False))
    return tuple(found)


def _rank(each: Line) -> tuple[bool, bool, int]:
    return not any(one.needed for one in each.suffers), not each.suffers, _ORDER.index(each.reading.status)


def engines(replicas: tuple[Replica, ...], systems: Mapping[str, str]) -> tuple[Engine, ...]:
    """What runs, by what it shows of itself: most of it first."""
    kinds = Counter((r.system, r.image, r.since, r.until) for r in replicas)
    return tuple(
        Engine(systems.get(system, system) or "?", _version(image, since, until), count)
        for (system, image, since, until), count in kinds.most_common()
    )


def _version(image: str, since: str, until: str) -> Message:
    if image:
        return say("image {image}", image=Names((image,)))
    if since and until:
        return say("version {since} to {until}, by its metric names", since=since, until=until)
    if since:
        return say("version {since} or newer, by its metric names", since=since)
    if until:
        return say("version {until} or older, by its metric names", until=until)
    return say("a version that neither an image nor its metric names tell")


def _measured(readings: Readings) -> Figure:
    statuses = [reading.status for reading in readings.signals.values()]
    says = say("of {all}; the others are listed first", all=len(statuses))
    if ended := statuses.count(Status.STALE):
        says = say("of {all}; {ended} ended before this window did", all=len(statuses), ended=ended)
    state = State.SUSPECTED if ended else None
    return Figure(say("Signals measured"), statuses.count(Status.MEASURED), "count", says, state=state)


def _scrape(readings: Readings) -> Figure:
    says = say("found, not assumed; rates over {rate}", rate=Quantity(readings.rate_seconds, "seconds"))
    return Figure(say("Scrape interval"), readings.scrape_seconds if readings.engine_seen else None, "seconds", says)


def _failed(readings: Readings) -> Figure:
    title = say("Scrapes that failed")
    inside = readings.grid.times >= readings.start
    up = readings.signals["up"].values[:, inside]
    known = np.isfinite(up)
    if not known.any():
        return Figure(title, None, "ratio", say("no series `up` for these replicas: nobody knows"))
    failed = (up < 0.5) & known
    share = failed.sum() / known.sum()
    if not failed.any():
        return Figure(title, 0.0, "ratio", say("none in this window"))
    each = failed.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    worst = int(each.argmax())
    says = say("most on {replica}: {share}", replica=Names((readings.replicas[worst].name,)), share=Quantity(float(each[worst]), "ratio"))
    return Figure(title, float(share), "ratio", says, state=State.SUSPECTED if each[worst] > FAILED_RATIO else None)


def _clock(about: About, inspection: Inspection) -> Figure:
    title = say("Clock difference")
    if about.flavor == "bundle":
        return Figure(title, None, "seconds", say("a recording has no clock of its own"))
    ahead = inspection.clock_seconds
    if ahead is None:
        return Figure(title, None, "seconds", say("the source sends no date"))
    if abs(ahead) < CLOCK_SECONDS:
        return Figure(title, 0.0, "seconds", say("the source and this machine agree to the second"))
    says = say("the source is ahead: what is newest there is not read")
    if ahead < 0:
        says = say("the source is behind: its newest samples look old")
    return Figure(title, round(abs(ahead)), "seconds", says, state=State.SUSPECTED)


def _reach(readings: Readings, inspection: Inspection) -> Figure:
    oldest = min((at for at in (inspection.oldest, _first(readings)) if at is not None), default=None)  # the search is coarse
    if oldest is None:
        return Figure(say("Samples reach back"), None, "seconds", say("no sample was found"))
    says = say("before this window's end, to {moment}", moment=Moment(oldest, dated=True))
    if inspection.at_least:
        says = say("before this window's end, and further: it was not looked beyond")
    if inspection.oldest is None and inspection.requests is not None:
        says = say("before this window's end, at least: it was not looked further back")
    short = oldest > readings.start
    if short:
        says = say("that is less than the window: it begins {moment}", moment=Moment(oldest, dated=True))
    return Figure(say("Samples reach back"), readings.end - oldest, "seconds", says, state=State.SUSPECTED if short else None)


def _first(readings: Readings) -> float | None:
    seen = np.zeros(readings.grid.count, dtype=np.bool_)
    for signal in ("requests_running", "requests_waiting", "kv_use", "generation_tokens"):
        seen |= np.isfinite(readings.signals[signal].values).any(axis=0)
    return float(readings.grid.times[seen.argmax()]) if seen.any() else None


def _asked(inspection: Inspection) -> Figure:
    title = say("Requests to the source")
    if inspection.requests is None:
        return Figure(title, 0, "count", say("a recording is read from its file"))
    says = say(
        "since obs began; the slowest took {slowest}, all {total}",
        slowest=Quantity(inspection.slowest_seconds, "seconds"), total=Quantity(inspection.total_seconds, "seconds"),
    )  # fmt: skip
    return Figure(title, inspection.requests, "count", says)


def _facts(readings: Readings, about: About, inspection: Inspection) -> tuple[tuple[Message, Message], ...]:
    kept = say("{retention}, as it says itself", retention=inspection.retention) if inspection.retention else say("it does not say")
    if about.flavor == "bundle":
        kept = say("for good: it is a file")
    before = max(0.0, readings.start - readings.grid.start)
    whose: dict[str, Value] = {"name": Names((about.name,)), "flavor": about.flavor}
    source = (
        say("{name}: {flavor} {version}", **whose, version=about.version)
        if about.version
        else say("{name}: {flavor}; it does not say which version", **whose)
    )
    return (
        (say("Source"), source),
        *([(say("What differs"), say("{sentences}", sentences=Sentences(differs)))] if (differs := remarks(about)) else []),
        (say("Kept"), kept),
        (say("Read"), say(
            "{window} at {step}, and {before} before it as the baseline",
            window=Quantity(readings.end - readings.start, "seconds"), step=Quantity(readings.grid.step, "seconds"),
            before=Quantity(before, "seconds"),
        )),
    )  # fmt: skip

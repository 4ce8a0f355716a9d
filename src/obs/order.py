"""How the rows hang together: what belongs to one incident, which row explains the others, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from obs.text import Message, Moment, Names, Sentences, Value, say, say_n
from obs.titles import ROWS, STAGES
from obs.verdict import Episode, Finding, Incident, Peak

LEAD_SECONDS = 300.0  # pressure that began this long before the time-outs is their cause, not their consequence
APART_SECONDS = 60.0  # what begins this long after all else has ended is another incident
DAY_SECONDS = 64800.0  # in a window this long a time of day does not say which day
MORE_SHOWN = 3


@dataclass(frozen=True)
class Applying:
    """One episode of one row, as the order sees it."""

    row: str
    episode: Episode
    memory: bool = False  # a full KV pool or preemptions are among the reasons
    stage: str | None = None
    peaks: tuple[Peak, ...] = ()
    memory_told: bool = True  # whether each of its replicas tells its KV use at all

    @property
    def start(self) -> float:
        """The onset."""
        return self.episode.start


@dataclass(frozen=True)
class Group:
    """Episodes that overlap or follow each other at once."""

    parts: tuple[Applying, ...]

    @property
    def start(self) -> float:
        """The first onset."""
        return min(part.start for part in self.parts)

    @property
    def end(self) -> float | None:
        """When the last part ended; None where one lasts."""
        ends = [part.episode.end for part in self.parts]
        return None if None in ends else max(end for end in ends if end is not None)

    @property
    def primary(self) -> str:
        """The row that explains the others. Retries before the growth they make; KV space before the queue it makes; else the stage."""
        first = {part.row: part for part in sorted(self.parts, key=lambda p: -p.start)}
        memory = [part.start for part in self.parts if part.memory]
        if "gpu_oom" in first:
            return "gpu_oom"
        load = first.get("load_after_timeouts")
        if load and not (memory and min(memory) < load.start - LEAD_SECONDS):
            return "load_after_timeouts"
        if memory or "slow_first_token" not in first:
            return "latency_without_errors"
        return "slow_first_token"

    def of(self, row: str) -> tuple[Applying, ...]:
        """The parts of a row."""
        return tuple(part for part in self.parts if part.row == row)

    def others(self) -> tuple[str, ...]:
        """The other rows, by their onset."""
        rows = sorted({part.row for part in self.parts} - {self.primary}, key=lambda row: min(p.start for p in self.of(row)))
        return tuple(rows)


def incidents(applying: Sequence[Applying]) -> tuple[Group, ...]:
    """The episodes of all rows, put together by time, in order."""
    groups: list[list[Applying]] = []
    until = float("-inf")
    for part in sorted(applying, key=lambda p: p.start):
        if part.start > until + APART_SECONDS:
            groups.append([])
        groups[-1].append(part)
        until = max(until, float("inf") if part.episode.end is None else part.episode.end)
    return tuple(Group(tuple(group)) for group in groups)


def highest(peaks: Iterable[Peak]) -> tuple[Peak, ...]:
    """The highest of each kind, in the order in which the kinds come."""
    found: dict[str, Peak] = {}
    for peak in peaks:
        if peak.id not in found or peak.value > found[peak.id].value:
            found[peak.id] = peak
    return tuple(found.values())


def told(group: Group) -> Incident:
    """The incident as data: which row explains the others, where, and the highest figure of each kind, the explaining row's first."""
    mine = group.of(group.primary)
    rest = [part for row in group.others() for part in group.of(row)]
    return Incident(
        group.primary, group.start, group.end,
        replicas=tuple(sorted({name for part in mine for name in part.episode.replicas})),
        others=group.others(),
        stage=next((part.stage for part in mine if part.stage), None),
        peaks=highest(peak for part in (*mine, *rest) for peak in part.peaks),
    )  # fmt: skip


def main_incident(found: Sequence[Group]) -> Group | None:
    """The one that lasts, else the longest."""
    return max(found, key=lambda i: float("inf") if i.end is None else i.end - i.start, default=None)


_FOLLOWS: Mapping[tuple[str, str], Message] = {
    ("load_after_timeouts", "latency_without_errors"): say("The latency comes of the retries: they send the work again."),
    ("load_after_timeouts", "slow_first_token"): say("The slow first token comes of the retries: they queue up before everybody else."),
    ("latency_without_errors", "slow_first_token"): say("The first token is slow because requests queue for KV space."),
    ("latency_without_errors", "load_after_timeouts"): say("The time-outs and retries come of the latency."),
    ("slow_first_token", "latency_without_errors"): say("The latency is the first token's; KV space is not the reason."),
    ("gpu_oom", "latency_without_errors"): say("The latency belongs to the replicas that are left."),
    ("gpu_oom", "slow_first_token"): say("The slow first token belongs to the replicas that are left."),
    ("gpu_oom", "load_after_timeouts"): say("The time-outs and retries come of the out-of-memory error."),
}


def _follows(incident: Group, row: str) -> Message:
    """How a row hangs on the primary one."""
    if (incident.primary, row) == ("slow_first_token", "latency_without_errors") and not all(p.memory_told for p in incident.of(row)):
        return say("The latency is the first token's; whether KV space is the reason, nobody can tell: KV use is not measured.")
    return _FOLLOWS[incident.primary, row]


def headline(incident: Group | None, total: int, seconds: float, insufficient: Message | None, lacking: Message | None = None) -> Message:
    """What applied, when, where: one line. `seconds` is the window's length: a long one needs the day too. `lacking` is the title of what
    would tell most where there is not enough."""
    if incident is None and insufficient and lacking:
        return say("Not enough data to tell. What is missing most: {title}.", title=lacking)
    if incident is None:
        return say("Not enough data to tell: {why}", why=insufficient) if insufficient else say("No row of the table applies.")
    dated = seconds > DAY_SECONDS
    parts = incident.of(incident.primary)
    where = {name for part in parts for name in part.episode.replicas}
    ends = [part.episode.end for part in parts]
    values: dict[str, Value] = {"row": ROWS[incident.primary], "start": Moment(min(part.start for part in parts), dated)}
    counted = bool(where) and total > 1  # of a single replica the name is enough
    if None in ends:
        if not counted:
            return say("{row} since {start}.", **values)
        return say_n(
            "{row} since {start}, on {count} of {n} replica.",
            "{row} since {start}, on {count} of {n} replicas.",
            total,
            count=len(where),
            **values,
        )
    values["end"] = Moment(max(end for end in ends if end is not None), dated)
    if not counted:
        return say("{row}, {start} - {end}.", **values)
    return say_n(
        "{row}, {start} - {end}, on {count} of {n} replica.",
        "{row}, {start} - {end}, on {count} of {n} replicas.",
        total,
        count=len(where),
        **values,
    )


def summary(
    incident: Group | None,
    others: Sequence[Group],
    findings: Sequence[Finding],
    line: Message,
    seconds: float,
    blind_now: Message | None,
    remedy: Message | None = None,
) -> Message:
    """The headline, how the rows hang together, and what else there was. `blind_now`: why nothing is known at the end; `remedy`: what
    gives that which is missing most."""
    said = [line]
    if incident is None:
        said += [remedy] if remedy else []
        said += [finding.says for finding in findings[:2]]
    else:
        parts = incident.of(incident.primary)
        stage = next((part.stage for part in parts if part.stage), None)
        if stage:
            said.append(say("The slow stage is: {stage}.", stage=STAGES[stage]))
        where = sorted({name for part in parts for name in part.episode.replicas})
        if where:
            said.append(say("Where: {replicas}.", replicas=Names(tuple(where))))
        said += [_follows(incident, row) for row in incident.others() if (incident.primary, row) in _FOLLOWS]
    if blind_now:
        said.append(say("At the end: {why}", why=blind_now))
    for other in others[:MORE_SHOWN]:
        said.append(say("Also: {row} at {start}.", row=ROWS[other.primary], start=Moment(other.start, seconds > DAY_SECONDS)))
    if len(others) > MORE_SHOWN:
        said.append(say_n("And {n} more incident.", "And {n} more incidents.", len(others) - MORE_SHOWN))
    return say("{sentences}", sentences=Sentences(tuple(said))) if len(said) > 1 else line

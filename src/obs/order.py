"""How the rows hang together: which applies first, which is another's consequence, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from obs.text import Message, Moment, Names, Sentences, Value, say, say_n
from obs.titles import ROWS, STAGES
from obs.verdict import Episode, Finding

LEAD_SECONDS = 300.0  # pressure that began this long before the time-outs is their cause, not their consequence


@dataclass(frozen=True)
class Applying:
    """A row that applies, as the order sees it."""

    row: str
    start: float
    memory: bool = False  # latency: a full KV pool or preemptions are among the reasons
    stage: str | None = None


def primary(rows: Sequence[Applying]) -> str | None:
    """The row that explains the others. Retries before the growth they make; KV space before the queue it makes; else the stage."""
    by = {row.row: row for row in rows}
    if "gpu_oom" in by:
        return "gpu_oom"
    load, latency, first = by.get("load_after_timeouts"), by.get("latency_without_errors"), by.get("slow_first_token")
    if load and not (latency and latency.memory and latency.start < load.start - LEAD_SECONDS):
        return "load_after_timeouts"
    if latency and (latency.memory or not first):
        return "latency_without_errors"
    if first:
        return "slow_first_token"
    return rows[0].row if rows else None


def follows(rows: Sequence[Applying]) -> dict[str, str]:
    """Row -> the row whose consequence it is."""
    first = primary(rows)
    return {row.row: first for row in rows if first and row.row != first}


_FOLLOWS: Mapping[tuple[str, str], Message] = {
    ("load_after_timeouts", "latency_without_errors"): say("The latency follows the retries: it is their doing."),
    ("load_after_timeouts", "slow_first_token"): say("The slow first token follows the retries: it is their doing."),
    ("latency_without_errors", "slow_first_token"): say("The slow first token is the doing of the queue that the full KV space makes."),
    ("latency_without_errors", "load_after_timeouts"): say("The time-outs and retries follow the latency."),
    ("slow_first_token", "latency_without_errors"): say("The latency is the first token's: KV space is not the reason."),
    ("gpu_oom", "latency_without_errors"): say("The latency belongs to the replicas that are left."),
    ("gpu_oom", "slow_first_token"): say("The slow first token belongs to the replicas that are left."),
    ("gpu_oom", "load_after_timeouts"): say("The time-outs and retries follow the out-of-memory error."),
}


def headline(row: str | None, episodes: Sequence[Episode], total: int, insufficient: Message | None) -> Message:
    """What applied, when, where: one line."""
    if row is None:
        return say("Not enough data to tell: {why}.", why=insufficient) if insufficient else say("No row of the table applies.")
    first, last = episodes[0], episodes[-1]
    where = {name for episode in episodes for name in episode.replicas}
    values: dict[str, Value] = {"row": ROWS[row], "start": Moment(first.start)}
    if last.end is None and not where:
        return say("{row} since {start}.", **values)
    if last.end is None:
        return say_n(
            "{row} since {start}, on {count} of {n} replica.",
            "{row} since {start}, on {count} of {n} replicas.",
            total,
            count=len(where),
            **values,
        )
    values["end"] = Moment(last.end)
    if not where:
        return say("{row}, {start} - {end}.", **values)
    return say_n(
        "{row}, {start} - {end}, on {count} of {n} replica.",
        "{row}, {start} - {end}, on {count} of {n} replicas.",
        total,
        count=len(where),
        **values,
    )


def summary(row: str | None, rows: Sequence[Applying], episodes: Sequence[Episode], findings: Sequence[Finding], line: Message) -> Message:
    """The headline, and how the rows hang together."""
    parts = [line]
    if row is not None:
        where = sorted({name for episode in episodes for name in episode.replicas})
        stage = next((r.stage for r in rows if r.row == row), None)
        if stage:
            parts.append(say("The slow stage is: {stage}.", stage=STAGES[stage]))
        if where:
            parts.append(say("Where: {replicas}.", replicas=Names(tuple(where))))
        parts += [_FOLLOWS[(row, other.row)] for other in rows if (row, other.row) in _FOLLOWS]
    else:
        parts += [finding.says for finding in findings[:2]]
    return say("{sentences}", sentences=Sentences(tuple(parts))) if len(parts) > 1 else line

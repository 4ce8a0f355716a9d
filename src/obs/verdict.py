"""What a diagnosis says: evidence, verdicts on the four rows, findings outside the table. Pure data, no rule lives here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from obs.series import Array, Mask
from obs.text import Message

ROW_IDS = ("gpu_oom", "latency_without_errors", "slow_first_token", "load_after_timeouts")  # the article's order


class State(StrEnum):
    """`unknown` is never `clear`: clear needs everything measured."""

    APPLIES = "applies"
    SUSPECTED = "suspected"
    CLEAR = "clear"
    UNKNOWN = "unknown"


class Stance(StrEnum):
    """How one condition bears on its row."""

    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    NEUTRAL = "neutral"
    MISSING = "missing"


@dataclass(frozen=True)
class Episode:
    """A stretch in which something applied. Unix seconds; `start` is the onset and may lie before the window; `end` None = it lasts."""

    start: float
    end: float | None
    replicas: tuple[str, ...]

    def shown_at(self, times: Array) -> Mask:
        """Which of these moments (Unix seconds) show it: those after its start, since a scrape shows what was since the one before."""
        return np.asarray((times > self.start) & (times <= (np.inf if self.end is None else self.end)), dtype=np.bool_)


@dataclass(frozen=True)
class Evidence:
    """One condition held against its reading. Figures are in `unit`, NaN-free: None where there is none."""

    signal: str  # id in obs.signals.SIGNALS, or of a derived figure (`retry_ratio`, `ttft_remainder`, ...)
    title: Message
    stance: Stance
    unit: str
    says: Message
    value: float | None = None
    baseline: float | None = None
    threshold: float | None = None
    onset: float | None = None  # Unix seconds
    replicas: tuple[str, ...] = ()
    metric: str | None = None
    promql: str | None = None
    of: Message | None = None  # what the figure is: the highest and when, or the mean of which stretch; `says` has it too


@dataclass(frozen=True)
class Change:
    """A change to test, with this window's figures, and the article's caveats to it."""

    title: Message
    detail: Message | None = None
    caveats: tuple[Message, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """One row of the symptom table over the window."""

    row: str  # one of ROW_IDS
    state: State
    state_now: State
    confidence: float | None  # 0-1, None for unknown
    stage: str | None  # slow_first_token: queue | tokenization | prefill | network
    episodes: tuple[Episode, ...]
    evidence: tuple[Evidence, ...]
    missing: tuple[Message, ...]
    changes: tuple[Change, ...]
    reason: Message | None = None  # why unknown or suspected, or which row it follows from
    follows_from: str | None = None  # the row whose consequence this one is


@dataclass(frozen=True)
class Finding:
    """Something outside the table. `replicas` may be empty where it concerns the whole view."""

    id: str
    title: Message
    says: Message
    start: float
    end: float | None
    replicas: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peak:
    """The highest figure of an incident: of one replica or gateway, on the grid that it was read on."""

    id: str  # of a condition of the table, or of a signal
    title: Message
    value: float
    unit: str


@dataclass(frozen=True)
class Incident:
    """Episodes that overlap or follow each other at once, of whatever rows. Unix seconds; `end` None = it lasts."""

    row: str  # the one that explains the others
    start: float
    end: float | None
    replicas: tuple[str, ...]
    others: tuple[str, ...] = ()  # the other rows, by their onset
    stage: str | None = None  # slow_first_token: the slow stage
    peaks: tuple[Peak, ...] = ()  # those of `row` first


@dataclass(frozen=True)
class Threshold:
    """One figure that a rule uses, with where it comes from."""

    id: str
    value: float
    unit: str
    source: str
    reason: Message


@dataclass(frozen=True)
class Diagnosis:
    """The answer for one view. `primary` and `now` are a row id, "none" or "insufficient"."""

    start: float
    end: float
    step_seconds: float
    primary: str
    now: str
    headline: Message  # what applied, when, where: one line
    summary: Message  # one sentence: the headline and how the rows hang together
    verdicts: tuple[Verdict, ...]  # four, in the table's order
    findings: tuple[Finding, ...]
    thresholds: Mapping[str, Threshold]
    replicas: tuple[str, ...]  # all in view
    incidents: tuple[Incident, ...] = ()  # in the order of time

    def verdict(self, row: str) -> Verdict:
        """The verdict on one row."""
        return self.verdicts[ROW_IDS.index(row)]

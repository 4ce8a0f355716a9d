"""Readings made by hand, a few steps of a few signals: for what a rule does at one edge. Everything not named is absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tests.scrapes import absent

from obs.diagnosis import diagnose
from obs.facts import Facts
from obs.series import Array, Grid, nothing
from obs.signals import SIGNALS, Level, Reading, Readings, Replica, Status
from obs.thresholds import in_force
from obs.verdict import Diagnosis

START = 1_800_000_000.0
Course = float | Sequence[float] | Array


def by_hand(
    steps: int = 240, *, step: float = 15.0, replicas: int = 1, before: int = 120, means: Mapping[str, Course] | None = None,
    per_second: float = 1.0, **levels: Course,
) -> Readings:  # fmt: skip
    """`levels` are values by signal (a figure, a course, or one course a replica); `means` likewise, observed `per_second`."""
    grid = Grid(START, step, steps)
    signals = {}
    for signal in SIGNALS.values():
        rows = ("llm",) if signal.level is Level.GATEWAY else tuple(f"pod-{i}" for i in range(replicas))
        shape = (len(rows), steps)
        total = counted = None
        if signal.id in (means or {}):
            values = np.broadcast_to(np.asarray((means or {})[signal.id], float), shape).copy()
            counted = np.where(np.isnan(values), 0.0, per_second)
            total = np.nan_to_num(values) * counted
        elif signal.id in levels:
            values = np.broadcast_to(np.asarray(levels[signal.id], float), shape).copy()
        else:
            values = nothing(shape)
        reading = Reading(
            signal, Status.MEASURED, rows, values, total, counted, signal.id, f"{signal.id}{{}}", row_labels=({},) * len(rows)
        )
        signals[signal.id] = reading if signal.id in levels or signal.id in (means or {}) else absent(reading)
    names = tuple(Replica(f"pod-{i}", "prod", "llama", "vllm") for i in range(replicas))
    return Readings(grid, START + before * step, grid.end, step, 60.0, names, signals)


def facts(readings: Readings, **thresholds: float) -> Facts:
    """The facts that the rules read."""
    return Facts(readings, in_force(thresholds))


def course(steps: int, *parts: tuple[int, float]) -> Array:
    """Steps of a level: (from this step on, figure)."""
    out = np.full(steps, np.nan)
    for first, figure in parts:
        out[first:] = figure
    return out


HEALTHY: Mapping[str, Course] = {
    "kv_use": 0.3, "requests_running": 4.0, "requests_waiting": 0.0, "preemptions": 0.0, "requests_finished": 1.0, "engine_errors": 0.0,
    "generation_tokens": 100.0, "engine_steps": 50.0, "up": 1.0,
    "gateway_attempts": 1.0, "gateway_retries": 0.0, "gateway_timeouts": 0.0, "gateway_responses": 1.0, "gateway_errors": 0.0,
}  # fmt: skip
HEALTHY_MEANS: Mapping[str, Course] = {
    "ttft": 0.1, "itl": 0.02, "e2e_latency": 3.0, "queue_time": 0.005, "prefill_time": 0.05, "prompt_length": 300.0, "output_length": 100.0,
    "gateway_ttft": 0.11,
}  # fmt: skip


def verdicts(means: Mapping[str, Course] | None = None, *, replicas: int = 1, steps: int = 240, **levels: Course) -> Diagnosis:
    """The diagnosis of a healthy replica on which these figures are different."""
    both = {**HEALTHY_MEANS, **(means or {})}
    return diagnose(by_hand(steps, replicas=replicas, means=both, **{**HEALTHY, **levels}))

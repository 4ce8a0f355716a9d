"""What changes nothing: ways to alter readings that must leave the verdict as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from tests.scrapes import absent

from obs.series import Array
from obs.signals import Level, Reading, Readings, Replica, Status
from obs.verdict import Diagnosis

# Signals that come from one metric are lost together.
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("kv_use",), ("requests_running",), ("requests_waiting",), ("preemptions",), ("engine_steps",),
    ("requests_finished", "engine_errors", "engine_aborts"), ("prompt_tokens",), ("generation_tokens", "counter_resets"),
    ("ttft",), ("itl",), ("e2e_latency",), ("queue_time",), ("prefill_time",), ("prompt_length",), ("output_length",),
    ("up",), ("container_restarts", "container_oom_killed"), ("host_memory",), ("gpu_memory",), ("gpu_oom_events",),
    ("gateway_attempts",), ("gateway_retries",), ("gateway_timeouts",), ("gateway_responses", "gateway_errors"), ("gateway_active",),
    ("gateway_ttft",), ("gateway_duration",),
)  # fmt: skip


def essence(diagnosis: Diagnosis, *, findings: bool = False) -> dict[str, object]:
    """What must stay: primary, states over the window and at its end, stage."""
    found: dict[str, object] = {"primary": diagnosis.primary, "now": diagnosis.now}
    for verdict in diagnosis.verdicts:
        found[verdict.row] = (str(verdict.state), str(verdict.state_now), verdict.stage)
    if findings:
        found["findings"] = sorted({f.id for f in diagnosis.findings})
    return found


def states(diagnosis: Diagnosis) -> dict[str, str]:
    """The states over the window."""
    return {verdict.row: str(verdict.state) for verdict in diagnosis.verdicts}


def _each(readings: Readings, change: Callable[[Reading], Reading], **fields: object) -> Readings:
    return replace(readings, signals={id: change(reading) for id, reading in readings.signals.items()}, **fields)  # type: ignore[arg-type]


def _arrays(reading: Reading, change: Callable[[Array], Array], **fields: object) -> Reading:
    total, count = (None if array is None else change(array) for array in (reading.total, reading.count))
    return replace(reading, values=change(reading.values), total=total, count=count, **fields)  # type: ignore[arg-type]


def without(readings: Readings, family: Iterable[str]) -> Readings:
    """The same where this site has none of these signals."""
    gone = set(family)
    return _each(readings, lambda reading: absent(reading) if reading.signal.id in gone else reading)


def renamed(readings: Readings, names: tuple[str, ...]) -> Readings:
    """Other names; the order of the rows is that of the names."""
    order = np.argsort(np.array(names, dtype=object), kind="stable")
    named = tuple(names[i] for i in order)

    def change(reading: Reading) -> Reading:
        return reading if reading.signal.level is Level.GATEWAY else _arrays(reading, lambda a: a[order], rows=named)

    return _each(readings, change, replicas=tuple(Replica(name, "prod", "llama", "vllm") for name in named))


def beside(one: Readings, other: Readings, *, gateway: bool = True, namespace: str = "prod") -> Readings:
    """Both fleets in one view: the other one's replicas, in their own namespace or in the same, and its gateway with a row of its own."""

    def change(reading: Reading) -> Reading:
        second = other.signals[reading.signal.id]
        if reading.signal.level is Level.GATEWAY and not gateway:
            return reading
        rows = (*reading.rows, *(f"{name}-2" for name in second.rows))

        def both(a: Array | None, b: Array | None) -> Array | None:
            if a is None and b is None:
                return None
            blank = np.full_like(reading.values if a is None else second.values, np.nan)
            return np.concatenate([blank if a is None else a, blank if b is None else b])

        status = Status.MEASURED if Status.MEASURED in (reading.status, second.status) else reading.status
        labels = (*reading.row_labels, *({**label, "namespace": namespace} for label in second.row_labels))
        return replace(
            reading, status=status, rows=rows, values=np.concatenate([reading.values, second.values]),
            total=both(reading.total, second.total), count=both(reading.count, second.count), row_labels=labels,
            metric=reading.metric or second.metric,
        )  # fmt: skip

    return _each(one, change, replicas=(*one.replicas, *(replace(r, name=f"{r.name}-2", namespace=namespace) for r in other.replicas)))


def idle(readings: Readings, replicas: int) -> Readings:
    """Replicas that no request reaches, in the same grid: levels at 0, counters that stand still."""
    names = tuple(f"idle-{i}" for i in range(replicas))

    def change(reading: Reading) -> Reading:
        if reading.signal.level is Level.GATEWAY:
            return replace(absent(reading), rows=(), values=np.empty((0, readings.grid.count)), row_labels=(), total=None, count=None)
        if not reading.present:
            return absent(_arrays(reading, lambda a: np.full((replicas, readings.grid.count), np.nan), rows=names))
        level = {"up": 1.0, "gpu_memory": 0.9, "host_memory": 0.5}.get(reading.signal.id, 0.0)
        still = np.full((replicas, readings.grid.count), level)
        if reading.total is None:
            return replace(reading, values=still, rows=names)
        return replace(reading, values=np.full_like(still, np.nan), total=np.zeros_like(still), count=np.zeros_like(still), rows=names)

    return _each(readings, change, replicas=tuple(Replica(name, "prod", "llama", "vllm") for name in names))


def doubled(readings: Readings) -> Readings:
    """Twice the traffic on twice the replicas, behind the same gateway."""
    twice = (*readings.replicas, *(replace(r, name=f"{r.name}-twin") for r in readings.replicas))
    names = tuple(r.name for r in twice)

    def change(reading: Reading) -> Reading:
        if reading.signal.level is not Level.GATEWAY:
            return _arrays(reading, lambda a: np.concatenate([a, a]), rows=names)
        total, count = (None if array is None else 2 * array for array in (reading.total, reading.count))
        values = reading.values if reading.total is not None else 2 * reading.values
        return replace(reading, values=values, total=total, count=count)

    return _each(readings, change, replicas=twice)

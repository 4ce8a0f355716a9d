"""Parts of a view, cut out of readings that are already there: one (namespace, model), one replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from obs.combined import added
from obs.series import Array
from obs.signals import Buckets, Level, Reading, Readings, Status


def groups(readings: Readings) -> list[tuple[str, str]]:
    """The (namespace, model) pairs in view, sorted. A target that left no model goes with its namespace's only model, else stands alone."""
    named = sorted({(r.namespace, r.model) for r in readings.replicas if r.model})
    for replica in readings.replicas:
        if (
            not replica.model
            and sum(namespace == replica.namespace for namespace, _ in named) != 1
            and (replica.namespace, "") not in named
        ):
            named.append((replica.namespace, ""))
    return sorted(named)


def narrow(readings: Readings, *, namespace: str | None = None, model: str | None = None, replica: str | None = None) -> Readings:
    """The readings of a part of the view; None = any. Gateway rows go by the labels they carry: one without a namespace belongs to all."""
    only_model = {
        ns: {r.model for r in readings.replicas if r.namespace == ns and r.model} for ns in {r.namespace for r in readings.replicas}
    }
    kept = [
        i
        for i, r in enumerate(readings.replicas)
        if (namespace is None or r.namespace == namespace)
        and (model is None or r.model == model or (not r.model and only_model[r.namespace] == {model}))
        and (replica is None or r.name == replica)
    ]

    def wanted(ns: str, of: str) -> bool:
        return (namespace is None or not ns or ns == namespace) and (model is None or not of or of == model)

    signals = {
        name: _rows(reading, kept)
        if reading.signal.level is Level.REPLICA
        else _rows(
            reading, [i for i, labels in enumerate(reading.row_labels) if wanted(labels.get("namespace", ""), labels.get("model", ""))]
        )
        for name, reading in readings.signals.items()
    }
    buckets = {} if replica is not None else _buckets(readings, wanted)
    replicas = tuple(readings.replicas[i] for i in kept)
    return replace(readings, replicas=replicas, signals=signals, buckets=buckets, engine_seen=any(r.system for r in replicas))


def _rows(reading: Reading, kept: list[int]) -> Reading:
    if len(kept) == len(reading.rows):
        return reading

    def cut(values: Array | None) -> Array | None:
        return None if values is None else values[kept]

    values, total, count = reading.values[kept], cut(reading.total), cut(reading.count)
    empty = not np.isfinite(values).any() and (count is None or not np.isfinite(count).any())
    labels = tuple(reading.row_labels[i] for i in kept) if reading.row_labels else ()
    parts = {name: each[kept] for name, each in reading.parts.items()}
    status = Status.ABSENT if empty else reading.status
    return replace(
        reading,
        status=status,
        rows=tuple(reading.rows[i] for i in kept),
        values=values,
        total=total,
        count=count,
        row_labels=labels,
        parts=parts,
    )


def _buckets(readings: Readings, wanted: Callable[[str, str], bool]) -> dict[str, Buckets]:
    found = {}
    for name, buckets in readings.buckets.items():
        parts = {place: rates for place, rates in buckets.parts.items() if wanted(*place)}
        if parts:
            found[name] = replace(buckets, rates=added(parts.values()), parts=parts)
    return found

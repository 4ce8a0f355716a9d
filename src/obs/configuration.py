"""Versions and configuration: what changed, from what to what. Pure.

An info metric says what it says by its labels, so a series that ends and another that begins in its place is a change, from one set of
labels to the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from obs.events import Event
from obs.facts import Facts
from obs.seen import Shown, Span
from obs.signals import Replica
from obs.text import Names, Quantity, say

TOGETHER_SECONDS = 900.0  # a rollout: the same change on another replica so soon after is the same change
VERSIONS: Mapping[str, tuple[str, ...]] = {"kube_pod_container_info": ("image",), "python_info": ("implementation", "version")}
_PROCESS = (
    "engine",
    "container",
    "model_name",
    "rank",
    "dp_rank",
    "tp_rank",
    "pp_rank",
    "engine_type",
    "gpu",
    "pid",
)  # tells processes apart
_TARGET = frozenset((
    *_PROCESS, "job", "instance", "namespace", "pod", "node", "service", "endpoint", "cluster", "prometheus", "replica", "host", "uid",
    "exported_namespace", "exported_pod", "exported_job", "exported_instance", "exported_container", "kubernetes_namespace",
    "kubernetes_pod_name", "kv_cache_max_concurrency",  # of the length limit and the blocks, which are labels too
))  # fmt: skip


def configuration(infos: Iterable[Shown], replicas: Sequence[Replica], start: float) -> tuple[Event, ...]:
    """Where the labels of an info metric changed, on a replica, or between a new replica and those that were there before it."""
    by_process: dict[tuple[str, str], dict[tuple[str, ...], list[tuple[Span, dict[str, str], str]]]] = {}
    for shown in infos:
        replica = of_replica(shown.labels, replicas)
        if replica is None:
            continue
        pool = (shown.metric, f"{replica.namespace}/{replica.model}/{shown.labels.get('container', '')}")
        process = (replica.name, *(shown.labels.get(label, "") for label in _PROCESS))
        told = _told(shown)
        lives = by_process.setdefault(pool, {}).setdefault(process, [])
        lives += [(span, told, replica.name) for span in shown.spans]
    found: list[tuple[Event, tuple[str, ...]]] = []
    for (metric, _), processes in by_process.items():
        ordered = [sorted(lives, key=lambda life: life[0].start) for lives in processes.values()]
        for lives in ordered:
            before = _usual([other for other in ordered if other is not lives], lives[0][0].start) if lives[0][0].start > start else None
            for span, told, name in lives:
                if before is not None and before != told:
                    found.append(_changed(metric, before, told, span, name))
                before = told
    return _together(found)


def of_replica(labels: Mapping[str, str], replicas: Sequence[Replica]) -> Replica | None:
    """The replica that a series is of, by its pod or instance; None where it is of none in view."""
    nodes = {labels.get(label, "") for label in ("pod", "exported_pod", "kubernetes_pod_name", "instance")} - {""}
    spaces = {labels.get(label, "") for label in ("namespace", "exported_namespace", "kubernetes_namespace")} - {""}
    for replica in replicas:
        if node(replica) in nodes and (not replica.namespace or not spaces or replica.namespace in spaces):
            return replica
    return None


def node(replica: Replica) -> str:
    """The pod or instance in a replica's name: without its namespace, rank or model."""
    name = replica.name.removeprefix(f"{replica.namespace}/").removesuffix(f" {replica.model}")
    head, slash, rank = name.rpartition("/")
    return head if slash and rank.isdigit() else name


def _told(shown: Shown) -> dict[str, str]:
    """The labels that say something of the process, and not which process it is."""
    only = VERSIONS.get(shown.metric)
    return {label: value for label, value in shown.labels.items() if (label in only if only else label not in _TARGET)}


def _usual(others: Sequence[Sequence[tuple[Span, dict[str, str], str]]], at: float) -> dict[str, str] | None:
    """What most of the others said just before; None where there was none."""
    latest = [tuple(sorted(said[-1].items())) for lives in others if (said := [told for span, told, _ in lives if span.start < at])]
    return dict(Counter(latest).most_common(1)[0][0]) if latest else None


def _changed(metric: str, before: Mapping[str, str], after: Mapping[str, str], span: Span, name: str) -> tuple[Event, tuple[str, ...]]:
    words = tuple(
        f"{label} {before.get(label, '–')} → {after.get(label, '–')}"
        for label in sorted({*before, *after})
        if before.get(label) != after.get(label)
    )
    kind = "version" if metric in VERSIONS else "configuration"
    return Event(kind, span.start, say("{metric}: {changes}", metric=Names((metric,)), changes=Names(words)), (name,), span.doubt), words


def _together(found: Sequence[tuple[Event, tuple[str, ...]]]) -> tuple[Event, ...]:
    """The same change on several replicas, one after the other, is one: it begins with the first."""
    kept: list[tuple[Event, tuple[str, ...], float]] = []
    for event, words in sorted(found, key=lambda item: item[0].at):
        same = next(
            (i for i, (e, w, last) in enumerate(kept) if (e.kind, w) == (event.kind, words) and event.at - last <= TOGETHER_SECONDS), None
        )
        if same is None:
            kept.append((event, words, event.at))
        else:
            names = tuple(sorted({*kept[same][0].replicas, *event.replicas}))
            kept[same] = (replace(kept[same][0], replicas=names), words, event.at)
    return tuple(event for event, _, _ in kept)


def capacity(facts: Facts) -> tuple[Event, ...]:
    """What the readings say of the configuration where a source does not show the labels: KV capacity and GPU memory share."""
    found: list[tuple[Event, tuple[str, ...]]] = []
    for signal in ("kv_capacity_tokens", "gpu_memory_share"):
        reading = facts.reading(signal)
        for row, replica in enumerate(facts.readings.replicas):
            steps = np.flatnonzero(np.isfinite(reading.values[row]))
            levels = reading.values[row, steps]
            for i in np.flatnonzero(np.diff(levels) != 0).tolist():
                at, old, new = float(facts.grid.times[steps[i + 1]]), float(levels[i]), float(levels[i + 1])
                unit = reading.signal.unit
                says = say("{title}: {old} → {new}", title=reading.signal.title, old=Quantity(old, unit), new=Quantity(new, unit))
                if facts.readings.start <= at <= facts.readings.end:
                    found.append((Event("configuration", at, says, (replica.name,)), (signal, f"{old:g}", f"{new:g}")))
    return _together(found)

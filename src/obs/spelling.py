"""How a source spells a metric's name: as the exporter does, with underscores for colons (a collector on the way), or dotted (OTLP).

Vocabularies hold one spelling. What the source has is looked up in the names that it listed in its one metadata answer, so a spelling
that is not there costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from obs.promql import series
from obs.signals import SIGNALS, Kind
from obs.vocabulary import Candidate, Vocabulary

_PLAIN = str.maketrans({":": "_", ".": "_"})


def plain(name: str) -> str:
    """A name as every spelling of it is the same."""
    return name.translate(_PLAIN)


@lru_cache(maxsize=16)
def _spellings(names: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Every name of a source by its plain form (underscores only)."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(plain(name), []).append(name)
    return {plain: tuple(spelled) for plain, spelled in found.items()}


def spelled(candidate: Candidate, kind: Kind, names: Collection[str]) -> tuple[Candidate, ...]:
    """The candidate once for each spelling that the source has of it, the vocabulary's own first; () where it lacks one of its metrics."""
    there = names if isinstance(names, frozenset) else frozenset(names)
    found = {name: _of(name, there) for name in candidate.metrics(kind)}
    if not all(found.values()):
        return _native(candidate, kind, there)
    if candidate.zero_where:  # the counter itself need not be there
        found[candidate.metric] = _of(candidate.metric, there) or (candidate.metric,)
    ways = max((len(each) for each in found.values()), default=1)
    return tuple(_renamed(candidate, kind, {name: each[min(i, len(each) - 1)] for name, each in found.items()}) for i in range(ways))


def present(vocabulary: Vocabulary, names: Collection[str]) -> frozenset[str]:
    """The source's own names of what this vocabulary may ask for; empty where it has nothing of this system."""
    return frozenset(
        name
        for signal, naming in vocabulary.signals.items()
        for candidate in naming.candidates
        for way in spelled(candidate, SIGNALS[signal].kind, names)
        for name in (*way.metrics(SIGNALS[signal].kind), way.metric)
        if name in names
    )


def _of(name: str, there: frozenset[str]) -> tuple[str, ...]:
    """The source's spellings of a name, the vocabulary's own first."""
    return tuple(sorted(_spellings(there).get(plain(name), ()), key=lambda other: (other != name, other)))


def _renamed(candidate: Candidate, kind: Kind, names: Mapping[str, str]) -> Candidate:
    if all(name == other for name, other in names.items()):
        return candidate
    needs = tuple(names[name] for name in candidate.needs)
    if candidate.metric:
        metric = names[f"{candidate.metric}_sum"].removesuffix("_sum") if kind is Kind.MEAN else names[candidate.metric]
        zero = names.get(candidate.zero_where, "")
        name = candidate.name.replace(candidate.metric, metric)
        return candidate.model_copy(update={"metric": metric, "needs": needs, "zero_where": zero, "name": name})
    texts = {field: _replaced(getattr(candidate, field), names, field == "name") for field in ("expr", "count", "name")}
    return candidate.model_copy(update={**texts, "needs": needs})


def _replaced(text: str, names: Mapping[str, str], bare: bool) -> str:
    """A text with the source's names: in PromQL only where matchers follow, so that no label value is touched."""
    for name, other in names.items():
        found = re.compile(rf"(?<![\w:.]){re.escape(name)}" + ("" if bare else r"\{"))
        whole = other if bare else series(other, "")[:-1]
        text = found.sub(whole.replace("\\", "\\\\"), text)
    return text


def _native(candidate: Candidate, kind: Kind, there: frozenset[str]) -> tuple[Candidate, ...]:
    """A histogram that the source keeps as a native one: its `_sum`, `_count` and `_bucket` are gone, and its plain name is there."""
    if kind is not Kind.MEAN or not candidate.metric or not set(candidate.needs) <= there:
        return ()
    return tuple(candidate.model_copy(update={"metric": name, "native": True}) for name in _of(candidate.metric, there))

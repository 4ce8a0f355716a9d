"""Rows of answers -> Readings' signals: one array for each signal, its rows in the order of the replicas or of the gateway's clusters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from obs import absence, promql
from obs.combined import added, both, other, taken_over
from obs.order import DAY_SECONDS
from obs.plan import Ask
from obs.replicas import Row, Seating
from obs.series import Array, Grid, Mask, nothing
from obs.signals import Buckets, Kind, Level, Reading, Signal, Status
from obs.spelling import plain
from obs.text import Message
from obs.vocabulary import Vocabulary, vocabularies


@dataclass(frozen=True)
class Span:
    """The grid, the judged window within it, and when the last sample must have been for a signal not to be stale."""

    grid: Grid
    start: float
    end: float
    stale_seconds: float
    rate_seconds: float = 60.0

    @property
    def judged(self) -> slice:
        """The window's steps."""
        return slice(self.grid.index(self.start), self.grid.index(self.end) + 1)

    @property
    def recent(self) -> slice:
        """The steps at the window's end in which a sample is still fresh."""
        return slice(self.grid.index(self.end - self.stale_seconds), self.grid.index(self.end) + 1)


@dataclass
class _Found:
    """What the candidates gave, combined so far. Arrays of shape [rows, steps]."""

    values: Array
    total: Array | None
    count: Array | None
    metrics: list[str]
    promql: dict[tuple[str, str], dict[str, None]]  # by system and the plain name of what is added up there; ("", "") where nothing is
    parts: dict[str, Array] = field(default_factory=dict)
    own: Array | None = None  # what the site's settings give: the system's own names fill in, and are not added to it
    spelled: dict[str, Array] = field(default_factory=dict)  # of what is added up, each quantity so far, by its plain name


@dataclass(frozen=True)
class Shared:
    """What several gateways have in common, so that a row's name must say more, as their figures are never one: (namespace, name) of
    several systems, and whether there are several clusters."""

    names: frozenset[tuple[str, str]] = frozenset()
    clusters: bool = False


ALONE = Shared()


def reading(
    signal: Signal,
    rows: Sequence[Row],
    asked: Sequence[Ask],
    refused: Mapping[str, Message],
    seating: Seating,
    systems: Sequence[Vocabulary],
    span: Span,
    shared: Shared = ALONE,
) -> Reading:
    """One signal. `rows` are its rows, `asked` its queries, `refused` the reasons by query key; `shared` as `shared_names` gives it."""
    gateway = signal.level is Level.GATEWAY
    names, labels, places = _gateway_rows(rows, shared) if gateway else (tuple(s.replica.name for s in seating.seats), (), {})
    empty = nothing((len(names), span.grid.count))
    found = _Found(empty, None, None, [], {})
    if signal.kind is Kind.MEAN:
        found.total, found.count = empty, empty
    for vocabulary in dict.fromkeys(ask.vocabulary.id for ask in asked):
        mine = [r for r in rows if r.ask.vocabulary.id == vocabulary]
        for title in dict.fromkeys(ask.candidate.title for ask in asked if ask.vocabulary.id == vocabulary):
            members = [(r, [places[_place(r, shared)]] if gateway else seating.tied(r)) for r in mine if r.ask.candidate.title == title]
            _add(found, signal, members, empty.shape, max(2, span.grid.steps(span.rate_seconds)), seating.ranks)
    if signal.kind is Kind.MEAN and found.total is not None and found.count is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(found.count > 0, found.total / found.count, np.nan)
        found.values = np.where(np.isfinite(mean), mean, found.values)
    status, why = _status(signal, found, span)
    looked_for = _looked_for(signal, systems)
    gaps = _gaps(signal, systems, found.metrics)
    if status is Status.ABSENT:
        engines = tuple(v.title for v in systems if v.role == "engine")
        no = next((refused[ask.query.key] for ask in asked if ask.query.key in refused), None)
        why = no or absence.absent(signal.id, looked_for, engines or tuple(v.title for v in systems), bool(engines), gaps)
    elif status is Status.MEASURED and gaps:
        why = absence.told(gaps)  # some of the replicas or gateways have no figure, or theirs leaves something out
    return Reading(signal, status, names, found.values, found.total, found.count, " / ".join(dict.fromkeys(found.metrics)) or None,
                   _asked(found.promql), looked_for, labels, why, found.parts)  # fmt: skip


def _asked(promql: Mapping[tuple[str, str], Iterable[str]]) -> str | None:
    """The queries as one, ready to paste: what stands for another by `or`, what one system adds up by `+`."""
    systems: dict[str, list[str]] = {}
    for (system, _), queries in promql.items():
        systems.setdefault(system, []).append(" or ".join(queries))
    sums = (" + ".join(f"({term})" if " or " in term and len(terms) > 1 else term for term in terms) for terms in systems.values())
    return " or ".join(sums) or None


def _looked_for(signal: Signal, systems: Sequence[Vocabulary]) -> tuple[str, ...]:
    roles = ("gateway",) if signal.level is Level.GATEWAY else ("engine",)
    known = [v for v in systems if v.role in roles] or [v for v in vocabularies() if v.role in roles]
    others = [v for v in vocabularies() if v.role in ("hardware", "target")]
    return tuple(dict.fromkeys(c.title for v in (*known, *others) if signal.id in v.signals for c in v.signals[signal.id].candidates))


def _gaps(signal: Signal, systems: Sequence[Vocabulary], metrics: Sequence[str]) -> dict[str, str]:
    """What the systems that are there do not tell of a signal, by title: all of it, or what their figure leaves out."""
    role = "gateway" if signal.level is Level.GATEWAY else "engine"
    told = {v.title: v.gaps[signal.id] for v in systems if v.role == role and signal.id in v.gaps}
    found = {plain(title) for title in metrics}
    for v in systems:
        if v.role == role and (naming := v.signals.get(signal.id)):
            there = any(plain(c.title) in found for c in naming.candidates)
            text = naming.lacks if there else naming.without
            told.update({v.title: text} if text else {})
    return told


def shared_names(rows: Iterable[Row]) -> Shared:
    """What the gateways' rows share. `rows` may hold others' too."""
    systems: dict[tuple[str, str], set[str]] = {}
    clusters = set()
    for r in rows:
        if r.ask.vocabulary.role == "gateway":
            systems.setdefault(_place(r), set()).add(r.ask.vocabulary.id)
            clusters.add(r.cluster)
    return Shared(frozenset(place for place, ids in systems.items() if len(ids) > 1), len(clusters - {""}) > 1)


def _gateway_rows(rows: Iterable[Row], shared: Shared) -> tuple[tuple[str, ...], tuple[Mapping[str, str], ...], dict[tuple[str, str], int]]:
    """The rows of a gateway's signal: (names, labels, number by place)."""
    places: dict[tuple[str, str], dict[str, str]] = {}
    for r in rows:
        places.setdefault(_place(r, shared), {"namespace": r.namespace, "model": r.model, "system": r.ask.vocabulary.id})
    ordered = sorted(places)
    several = len({namespace for namespace, _ in ordered}) > 1
    names = tuple(f"{namespace}/{name}" if several and namespace else name for namespace, name in ordered)
    return names, tuple(places[place] for place in ordered), {place: i for i, place in enumerate(ordered)}


def _place(r: Row, shared: Shared = ALONE) -> tuple[str, str]:
    name = next((r.labels[label] for label in r.ask.vocabulary.labels.row if r.labels.get(label)), r.node)
    named = f"{r.ask.vocabulary.title} {name}" if (r.namespace, name) in shared.names else name
    return r.namespace, f"{r.cluster}/{named}" if shared.clusters and r.cluster else named


def _add(
    found: _Found,
    signal: Signal,
    members: Sequence[tuple[Row, Sequence[int]]],
    shape: tuple[int, ...],
    steps: int,
    ranks: Callable[[Row], int],
) -> None:
    """Adds one candidate's rows: within it they are combined, with the candidates before it picked. A rate looks back `steps` steps."""
    parts: dict[str, Array] = {}
    asked: dict[str, dict[str, None]] = {}  # the queries behind the figures, by part, in order
    naming = None
    for r, seats in members:
        values, kind = _scaled(r, ranks(r)), signal.kind
        naming = r.ask.vocabulary.signals.get(signal.id)
        if not seats or not np.isfinite(values).any():
            continue
        share = (
            values / len(seats) if kind in (Kind.RATE, Kind.MEAN) and r.ask.vocabulary.role == "engine" else values
        )  # a pod's rate over its ranks
        into = parts.setdefault(r.ask.part, np.full(shape, np.nan))
        summed = kind in (Kind.RATE, Kind.MEAN) or r.ask.candidate.combine == "sum"
        for seat in seats:
            into[seat] = both(into[seat], share, "sum" if summed else r.ask.candidate.combine or "max")
        if r.ask.part in ("value", "sum"):
            found.metrics.append(r.ask.candidate.title)
        asked.setdefault(r.ask.part, {})[promql.tidy(r.ask.query.promql)] = None
    pick, first = naming.pick if naming else "first", members[0][0].ask if members else None
    if first is not None and asked:
        summed = pick == "sum" and not first.candidate.own
        queries = found.promql.setdefault((first.vocabulary.id, plain(first.candidate.title)) if summed else ("", ""), {})
        means = zip(asked.get("sum", {}), asked.get("count", {}), strict=False)
        queries |= dict.fromkeys((*asked.get("value", {}), *(f"{total} / {count}" for total, count in means)))
    if "value" in parts and first is not None:
        title = first.candidate.title
        renamed = pick == "first" and signal.kind is Kind.RATE
        if first.candidate.own:
            found.own = parts["value"]
        elif found.own is not None and pick != "first":
            parts["value"] = np.where(np.isnan(found.own), parts["value"], np.nan)
        if pick == "sum":
            parts["value"] = other(found.spelled, plain(title), parts["value"])
        found.values = taken_over(found.values, parts["value"], steps) if renamed else both(found.values, parts["value"], pick)
        if pick == "sum" and signal.level is Level.GATEWAY:
            found.parts[title] = parts["value"]
    if "sum" in parts and "count" in parts and found.total is not None and found.count is not None:
        found.total = taken_over(found.total, parts["sum"], steps)
        found.count = taken_over(found.count, parts["count"], steps)


def _scaled(r: Row, ranks: int) -> Array:
    """The row in the signal's unit; blanks and impossible figures are none. `ranks` are those of its process."""
    candidate = r.ask.candidate
    if candidate.from_labels:
        for product in candidate.from_labels:
            words = product.split(" * ")
            try:
                figure = float(np.prod([float(r.labels[word]) for word in words])) / (ranks if {*words} & {*candidate.of_all_ranks} else 1)
            except (KeyError, ValueError):
                continue
            if np.isfinite(figure) and figure > 0:
                return np.where(np.isfinite(r.values), figure, np.nan)
        return np.full_like(r.values, np.nan)
    values = r.values if candidate.most is None else np.where(r.values <= candidate.most, r.values, np.nan)
    return values * candidate.scale if candidate.scale != 1.0 and r.ask.part != "count" else values


def _status(signal: Signal, found: _Found, span: Span) -> tuple[Status, Message | None]:
    seen: Mask = np.isfinite(found.values if found.count is None else np.fmax(found.values, found.count))
    if not seen.any():
        return Status.ABSENT, None
    if not seen[:, span.recent].any():
        steps = np.flatnonzero(np.asarray(seen.any(axis=0))[: span.judged.stop])
        if not steps.size:
            return Status.ABSENT, None
        return Status.STALE, absence.stale(float(span.grid.times[steps[-1]]), span.end - span.start > DAY_SECONDS)
    if signal.kind is Kind.MEAN and not np.isfinite(found.values[:, span.judged]).any():
        return Status.NO_TRAFFIC, absence.no_traffic()
    return Status.MEASURED, None


def idle_clusters(rows: Sequence[Row]) -> set[tuple[str, str, str]]:
    """Gateway clusters that never see a request, as (vocabulary, namespace, name): not among the LLM's. Empty where none sees any."""
    seen: dict[tuple[str, str, str], bool] = {}
    for r in rows:
        if r.ask.signal == "gateway_attempts":
            place = (r.ask.vocabulary.id, *_place(r))
            seen[place] = seen.get(place, False) or bool(np.nanmax(r.values, initial=0.0) > 0)
    return {place for place, busy in seen.items() if not busy} if any(seen.values()) else set()


def busy(r: Row, idle: set[tuple[str, str, str]]) -> bool:
    """Whether a gateway row is of a cluster that is kept. A site's own PromQL is asked for each gateway: the others' rows are not its."""
    row = r.ask.vocabulary.labels.row
    if r.ask.candidate.own and row and not any(r.labels.get(label) for label in row):
        return False
    return (r.ask.vocabulary.id, *_place(r)) not in idle


def buckets(signal: Signal, rows: Sequence[Row]) -> Buckets | None:
    """A histogram of the whole view. Systems with other bounds than the busiest one's are left out: their counts cannot be added."""
    by_bounds: dict[tuple[float, ...], list[tuple[Row, float]]] = {}
    for vocabulary in dict.fromkeys((r.ask.vocabulary.id, r.ask.candidate.title) for r in rows):
        mine = [(r, _bound(r)) for r in rows if (r.ask.vocabulary.id, r.ask.candidate.title) == vocabulary]
        bounds = tuple(sorted({bound for _, bound in mine if not np.isnan(bound)}))
        by_bounds.setdefault(bounds, []).extend(mine)
    if not by_bounds:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an all-empty histogram
        bounds, members = max(
            by_bounds.items(), key=lambda item: sum(float(np.nansum(r.values)) for r, bound in item[1] if np.isinf(bound))
        )
    if len(bounds) < 2:
        return None
    parts: dict[tuple[str, str], Array] = {}
    for r, bound in members:
        if not np.isnan(bound):
            part = parts.setdefault((r.namespace, r.model), np.full((len(bounds), r.values.size), np.nan))
            i = bounds.index(bound)
            part[i] = both(part[i], r.values, "sum")
    first = members[0][0].ask
    scale = first.candidate.scale
    return Buckets(signal, np.array(bounds) * scale, added(parts.values()), first.candidate.title, promql.tidy(first.query.promql), parts)


def _bound(r: Row) -> float:
    try:
        return float(r.labels.get("le", "nan"))
    except ValueError:
        return float("nan")

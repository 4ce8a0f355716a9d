"""The buckets of each replica's first tokens over a whole window, as one moment: what its own p95 is read from.

Every step of them would be every bucket of every replica; of one moment it is one question that a Prometheus answers quickly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from obs import promql, replicas
from obs.errors import CallError
from obs.plan import Ask, Scope, pairs
from obs.series import Array
from obs.signals import Buckets, Kind, Readings
from obs.source import Instant, Query, Source
from obs.spelling import spelled
from obs.text import say
from obs.vocabulary import Vocabulary, vocabularies

SIGNAL, PART = "ttft", "tails"
MOST_SAMPLES = 30_000_000  # that the source reads for it: 1,000 replicas over six hours each 15 s
BUCKETS = 20  # about as many as an engine has

NOT_ASKED = say("a recording holds the buckets of all replicas together.")
NOT_THERE = say("no engine here has buckets of its own for it.")
TOO_MUCH = say("in so long a window that would be tens of millions of samples to read.")


def tails(source: Source, readings: Readings, scope: Scope, end: float) -> dict[str, Buckets]:
    """By the replica's name; `end` is the moment, Unix seconds, up to which as many seconds are read as the window has. A replica that
    cannot be told for sure has none. Raises CallError where they are not asked for, with the reason, and SourceError."""
    seconds = readings.end - readings.start
    if not isinstance(source, Instant):
        raise CallError(NOT_ASKED)
    if len(readings.replicas) * BUCKETS * seconds / readings.scrape_seconds > MOST_SAMPLES:
        raise CallError(TOO_MUCH)
    asked = list(asks(readings, {promql.label_name(word): values for word, values in scope.items()}, seconds))
    if not asked:
        raise CallError(NOT_THERE)
    answers = source.at([each.query for each in asked], end)
    rows = [
        replicas.row(ask, labels, values)
        for ask, answer in zip(asked, answers, strict=True)
        for labels, values in zip(answer.labels, answer.values, strict=True)
    ]
    if refused := [answer.refused for answer in answers if answer.refused]:
        raise CallError(refused[0])
    return by_replica(rows, readings)


def asks(readings: Readings, scope: Scope, seconds: float) -> Iterable[Ask]:
    """One question for each histogram that the reading was made of."""
    titles = (readings.signals[SIGNAL].metric or "").split(" / ")
    names = frozenset(f"{title}_{part}" for title in titles for part in ("sum", "count"))
    systems = {replica.system for replica in readings.replicas}
    for vocabulary in vocabularies():
        if vocabulary.id in systems and SIGNAL in vocabulary.signals:
            yield from _asks(vocabulary, names, scope, seconds, len(readings.replicas))


def _asks(vocabulary: Vocabulary, names: frozenset[str], scope: Scope, seconds: float, rows: int) -> Iterable[Ask]:
    for candidate in vocabulary.signals[SIGNAL].candidates:
        for way in spelled(candidate, Kind.MEAN, names):
            if not way.metric or way.native or "." in way.metric:
                continue
            for number, variant in enumerate(vocabulary.variants):
                wanted = pairs(vocabulary, scope, variant)
                braces = promql.selector(wanted, vocabulary.match, variant.match, way.match)
                by = ("le", *vocabulary.identity(variant))
                rate = f"rate({promql.series(f'{way.metric}_bucket', braces)}[{promql.duration(seconds)}])"
                text = f"sum by ({', '.join(map(promql.name, by))}) ({rate})"
                query = Query(f"{SIGNAL}|{way.title}|{vocabulary.id}|{number}|{PART}", text, wanted, by, rows * BUCKETS)
                yield Ask(SIGNAL, vocabulary, way, PART, query)


def by_replica(rows: list[replicas.Row], readings: Readings) -> dict[str, Buckets]:
    """The rows as a histogram for each replica; of several metrics the first one that it has."""
    seating = replicas.Seating(replicas.seats(rows))
    known = {(replica.name, replica.system) for replica in readings.replicas}
    made: dict[str, dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    scales: dict[str, float] = {}
    for r in rows:
        seats = seating.tied(r)
        if len(seats) != 1 or not np.isfinite(r.values[-1]) or not r.labels.get("le"):
            continue
        replica = seating.seats[seats[0]].replica
        if (replica.name, replica.system) in known:
            made[replica.name][r.ask.candidate.title][float(r.labels["le"])] += float(r.values[-1])
            scales[r.ask.candidate.title] = r.ask.candidate.scale
    signal = readings.signals[SIGNAL].signal
    found = {}
    for name, metrics in made.items():
        title, counts = next(iter(metrics.items()))
        bounds: Array = np.array(sorted(counts))
        if len(bounds) > 1 and np.isinf(bounds[-1]):
            rates = np.array([counts[bound] for bound in bounds])[:, None]
            found[name] = Buckets(signal, bounds * scales[title], rates, title)
    return found

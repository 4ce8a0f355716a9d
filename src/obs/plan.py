"""From vocabulary, scope and grid to queries: what is asked, under which key, in which words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from obs import promql
from obs.counters import matchers
from obs.errors import CallError
from obs.overrides import named
from obs.signals import SIGNALS, Kind
from obs.source import Counter, Query
from obs.spelling import spelled
from obs.text import say
from obs.vocabulary import Candidate, Naming, Variant, Vocabulary, vocabularies

Scope = Mapping[str, tuple[str, ...]]
Pairs = tuple[tuple[str, tuple[str, ...]], ...]

BUCKETED = ("ttft", "e2e_latency", "itl", "tpot", "queue_time", "prompt_length", "output_length", "gateway_ttft")  # shown as distributions
# Labels that rows keep if they have them, so that a bundle can be asked for them; hardware exporters have their own `service`.
KEEP = ("cluster", "service")
_ADDRESS = re.compile(r".*:\d+")
_RANKED = re.compile(r"(.+)/(\d+)")
STAYS = ("counter_resets", "container_oom_killed", "gpu_memory_total")  # looks back itself, or stays as it is: once a step will do
SAMPLED_SECONDS = 300.0  # up to this step a counter's growth from step to step tells; over longer ones too much may begin and end between
SPREAD_SECONDS = 300.0  # over long windows, distributions are read this coarsely: they are most of the work there (measured)


@dataclass(frozen=True)
class Ranges:
    """The lengths behind one collection, in seconds."""

    step: float
    scrape: float  # the engine's scrape interval
    rates: Mapping[str, float]  # by vocabulary: each system is scraped at its own interval
    resets: float
    rows: int = 1  # about how many replicas there are
    spread: float = 0.0  # seconds for which one distribution is enough, whatever the step
    twice: frozenset[str] = frozenset()  # vocabularies of which several jobs scrape one target (`obs.replicas.scraped_twice`)
    by_name: bool = False  # whether a source that can may take the rates of many counters at once

    @property
    def coarse(self) -> bool:
        """Whether a step is longer than a scrape, so that a level must be looked for inside the step."""
        return self.step > 1.5 * self.scrape

    @property
    def inner(self) -> float:
        """How finely an expression is looked at inside a coarse step: each look costs as much as a step of its own, so over days every
        five minutes have to do (each minute of a month was two thirds of all that a Prometheus was asked: docs/performance.md)."""
        return max(self.scrape, min(60.0, self.step / 6) if self.step <= SAMPLED_SECONDS else SAMPLED_SECONDS)

    @property
    def stride(self) -> int:
        """The steps for which one distribution is enough."""
        return max(1, int(max(self.spread, SPREAD_SECONDS if self.coarse else 0.0) // self.step))

    def rate(self, vocabulary: str) -> float:
        """The window of a rate: at least four scrapes and 60 s, and no gap between two steps."""
        return max(60.0, self.rates.get(vocabulary, 60.0), self.step if self.coarse else 0.0)


@dataclass(frozen=True)
class Ask:
    """One query with what it is for."""

    signal: str
    vocabulary: Vocabulary
    candidate: Candidate
    part: str  # "value", "sum", "count", "buckets"
    query: Query


def asks(
    vocabulary: Vocabulary,
    names: Collection[str],
    scope: Scope,
    ranges: Ranges,
    only: Pairs = (),
    overrides: Mapping[str, str] | None = None,
) -> list[Ask]:
    """Every query of this vocabulary whose metrics exist. `only` narrows further: ("pod" or "job", values)."""
    found: list[Ask] = []
    for signal, naming in named(vocabulary, overrides or {}, names).items():
        ways = [c for candidate in naming.candidates for c in spelled(candidate, SIGNALS[signal].kind, names)]
        for place, candidate in enumerate(ways):
            before = tuple(c for c in ways[:place] if c.metric and not c.native) if naming.pick == "first" else ()
            for number, variant in enumerate(vocabulary.variants):
                found += _ask(vocabulary, signal, naming, candidate, before, variant, number, scope, ranges, only)
    return found


def pairs(vocabulary: Vocabulary, scope: Scope, variant: Variant) -> Pairs:
    """The scope in this vocabulary's labels. Words that it has no label for are left out (`left_out` names them)."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for word, values in scope.items():
        if word == "replica":
            found += _replica(vocabulary, values, variant)
            continue
        label = vocabulary.scope_label(word, variant)
        if label and (word in ("namespace", "model") or label in vocabulary.identity(variant) or label not in _owned()):
            found.append((label, values))
    return tuple(found)


def scraped_as(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The labels that tell which job scraped a target, and nothing of the target. (Kong's rows are called `service`.)"""
    return tuple(dict.fromkeys(label for label in (*vocabulary.labels.job, "service") if label not in vocabulary.labels.row))


def left_out(vocabulary: Vocabulary, scope: Scope) -> tuple[str, ...]:
    """The scope's words that this vocabulary cannot follow."""
    has_replicas = vocabulary.role != "gateway"
    return tuple(
        word
        for word in scope
        if (word == "model" and not vocabulary.labels.model and vocabulary.role == "gateway") or (word == "replica" and not has_replicas)
    )


def _owned() -> frozenset[str]:
    """Labels that are one system's own (a cluster of Envoy, a rank): a scope that names one does not apply to the others."""
    own = frozenset(label for v in vocabularies() for label in (*v.labels.row, *v.labels.model, *v.labels.rank, *v.labels.host))
    return own - set(KEEP)  # a site's own labels, whatever a gateway calls so too


def _replica(vocabulary: Vocabulary, values: Sequence[str], variant: Variant) -> Pairs:
    """Replica names as matchers: all of them pods, or all of them addresses; a mixture is sorted out afterwards."""
    if vocabulary.role == "gateway":
        return ()
    nodes = tuple(dict.fromkeys(node(value) for value in values))
    addresses = [bool(_ADDRESS.fullmatch(name)) for name in nodes]
    if all(addresses):
        return () if vocabulary.role == "hardware" else ((vocabulary.labels.instance[0], nodes),)
    if vocabulary.labels.process:  # the name is the process's, and the pod or node may be anything
        return ()
    return () if any(addresses) else ((variant.labels[1], nodes),)


def node(name: str) -> str:
    """The pod or instance in a replica's name: without its rank and, where two namespaces share it, without the namespace."""
    ranked = _RANKED.fullmatch(name)
    return (ranked[1] if ranked else name).rpartition("/")[2]


def _ask(
    vocabulary: Vocabulary,
    signal: str,
    naming: Naming,
    candidate: Candidate,
    before: tuple[Candidate, ...],
    variant: Variant,
    number: int,
    scope: Scope,
    ranges: Ranges,
    only: Pairs,
) -> Iterable[Ask]:
    kind = SIGNALS[signal].kind
    tied = tuple((variant.labels[1] if label == "pod" else label, values) for label, values in only)
    dotted = any("." in metric for metric in candidate.metrics(kind))
    wanted = tuple((_spelled(vocabulary, label, dotted), values) for label, values in (*pairs(vocabulary, scope, variant), *tied))
    own_match = _matched(vocabulary, candidate.match) if dotted else candidate.match
    sel = promql.selector(wanted, vocabulary.match, variant.match, own_match)
    keep = [label for label in KEEP if label != "service" or vocabulary.role != "hardware"] + [
        word for word in scope if word not in ("namespace", "model", "replica")
    ]
    own = tuple(dict.fromkeys(label for label in (*vocabulary.identity(variant), *keep) if dotted or "." not in label))
    by = ", ".join(map(promql.name, own))
    rate = promql.duration(ranges.rate(vocabulary.id))
    step = promql.duration(ranges.step)
    thin = ("min" if naming.worst == "low" else "max") if kind is Kind.GAUGE else "last"
    base = f"{signal}|{candidate.title}" + (f"|{vocabulary.id}" if candidate.own else "")  # the same text may be asked for several systems
    suffix = f"|{number}" if number else ""

    def ask(part: str, text: str, carried: tuple[str, ...] = own, counter: Counter | None = None, stride: int = 1) -> Ask:
        key = f"{base}{suffix}|{part}"
        return Ask(signal, vocabulary, candidate, part, Query(key, text, wanted, carried, ranges.rows, thin, counter, stride))

    def counted(metric: str, combine: str) -> Counter | None:
        match = [promql.selector((), vocabulary.match, variant.match, last) for last in (candidate.match, "")]
        if not ranges.by_name or dotted or (ranges.coarse and ranges.step > SAMPLED_SECONDS) or None in map(matchers, match):
            return None
        return Counter(metric, match[0], ranges.rate(vocabulary.id), combine, ranges.coarse, candidate.zero_where, match[1])

    if candidate.expr:
        holes = {"sel": sel, "by": by, "rate": rate, "resets": promql.duration(ranges.resets)}
        text = _filled(signal, candidate.expr, **holes)
        if candidate.count:
            return [ask("sum", text), ask("count", _filled(signal, candidate.count, **holes))]
        stays = signal in STAYS or (vocabulary.role == "hardware" and ranges.step > SAMPLED_SECONDS)  # beside an event, which is seen
        if ranges.coarse and kind is Kind.GAUGE and not stays:
            text = f"{thin}_over_time(({text})[{step}:{promql.duration(ranges.inner)}])"
        return [ask("value", text)]
    metric = candidate.metric
    if kind is Kind.MEAN:
        if candidate.native:
            whole = f"rate({promql.series(metric, sel)}[{rate}])"
            return [ask(part, f"sum by ({by}) (histogram_{part}({whole}))") for part in ("sum", "count")]
        parts = [
            ask(part, f"sum by ({by}) (rate({promql.series(f'{metric}_{part}', sel)}[{rate}]))", counter=counted(f"{metric}_{part}", "sum"))
            for part in ("sum", "count")
        ]
        if signal in BUCKETED:
            view = ("le", *(label for label in (variant.labels[0], *vocabulary.labels.model) if dotted or "." not in label))
            long = promql.duration(max(ranges.rate(vocabulary.id), ranges.stride * ranges.step))
            whole = f"rate({promql.series(f'{metric}_bucket', sel)}[{long}])"
            for other in before:  # whose rows are not told apart by replica here: what has a preferred name too would count twice
                same = promql.selector(wanted, vocabulary.match, variant.match, other.match)
                whole += f" unless on (le, {by}) rate({promql.series(f'{other.metric}_bucket', same)}[{long}])"
            if vocabulary.id in ranges.twice:
                whole = f"max without ({', '.join(scraped_as(vocabulary))}) ({whole})"
            parts.append(ask("buckets", f"sum by ({', '.join(map(promql.name, view))}) ({whole})", view, stride=ranges.stride))
        return parts
    if kind is Kind.RATE:
        text = f"{candidate.combine or 'sum'} by ({by}) (rate({promql.series(metric, sel)}[{rate}]))"
        if candidate.zero_where:
            beside = promql.series(candidate.zero_where, promql.selector(wanted, vocabulary.match, variant.match))
            text += f" or 0 * sum by ({by}) (rate({beside}[{rate}]))"
        return [ask("value", text, counter=counted(metric, candidate.combine or "sum"))]
    if candidate.from_labels:
        by = ", ".join(dict.fromkeys((by, *(word for product in candidate.from_labels for word in product.split(" * ")))))
    by = ", ".join(dict.fromkeys((by, *candidate.carries)))
    inner = promql.series(metric, sel)
    if ranges.coarse and kind is Kind.GAUGE and not candidate.from_labels:
        inner = f"{thin}_over_time({inner}[{step}])"
    if candidate.most is not None:  # before it is combined, or one GPU's blank would hide the others
        inner += f" <= {candidate.most:.12g}"
    return [ask("value", f"{candidate.combine or 'max'} by ({by}) ({inner})")]


def _spelled(vocabulary: Vocabulary, label: str, dotted: bool) -> str:
    """A label as the source writes it: dotted, where the metric is and the vocabulary knows it so."""
    known = (*vocabulary.labels.model, *vocabulary.labels.row, *vocabulary.labels.dotted) if dotted else ()
    return next((other for other in known if "." in other and other.replace(".", "_") == label), label)


def _matched(vocabulary: Vocabulary, match: str) -> str:
    """Matchers of a dotted metric, their labels as the source writes them; what stands in quotes stays."""
    return re.sub(
        r'"(?:[^"\\]|\\.)*"|[a-zA-Z_]\w*',
        lambda found: found[0] if found[0][0] == '"' else promql.name(_spelled(vocabulary, found[0], True)),
        match,
    )


def _filled(signal: str, template: str, **holes: str) -> str:
    try:
        return promql.fill(template, **holes)
    except (KeyError, ValueError) as error:
        raise CallError(
            say(
                "OBS_PROMQL__{signal} has a hole that is unknown: {hole}. Known are $sel, $by, $rate and $resets.",
                signal=signal.upper(),
                hole=str(error),
            )
        ) from error

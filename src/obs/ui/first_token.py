"""The first token page: which stage is slow?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from obs import first_token, first_token_figures, first_token_interference, first_token_relations, histogram, inside
from obs.course import Course
from obs.facts import Facts
from obs.first_token_interference import Interference
from obs.first_token_spread import spread
from obs.first_token_stages import TITLES, breakdown
from obs.palette import COLORS, MUTE
from obs.series import Array
from obs.text import Quantity
from obs.ui import first_token_heat, page
from obs.ui.markup import show, tag
from obs.ui.panel import panel, threshold
from obs.ui.plot import Rule
from obs.ui.reader import Reader
from obs.ui.scatter import Axis, scatter
from obs.ui.screen import Screen
from obs.verdict import Verdict
from obs.wording import where_words

ROW = "slow_first_token"
_COLORS = dict(zip(TITLES, (COLORS[1], COLORS[0], COLORS[4], MUTE, COLORS[2]), strict=True))
QUANTILES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


@dataclass(frozen=True)
class _Page:
    """What all parts of the page need."""

    screen: Screen
    facts: Facts
    verdict: Verdict
    met: Interference | None

    @property
    def reader(self) -> Reader:
        return self.screen.reader


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    answer = page.begin(screen, _("Which stage is slow?"))
    if answer is None:
        return
    facts = answer.courses.facts
    here = _Page(screen, facts, answer.diagnosis.verdict(ROW), first_token_interference.interference(facts))
    page.says(first_token.answer(facts, here.verdict, here.met), screen)
    _stages(here)
    first, second = st.columns(2, gap="small"), st.columns(2, gap="small")
    with first[0]:
        _percentiles(here, "ttft", _("Time to first token, percentiles"), "ttft_objective")
    with first[1]:
        _shares(here)
    with second[0]:
        note = _("A field is a bucket of the engine's histogram, the darker the more of a moment's first tokens fell into it.")
        onset = here.verdict.episodes[0].start if here.verdict.episodes else None
        title, objective = _("Time to first token, its distribution"), facts.limit("ttft_objective")
        first_token_heat.draw(screen, title, spread(facts), objective, onset, note)
    with second[1]:
        lines = Course(tuple(replica.name for replica in facts.readings.replicas), facts.mean("ttft"))
        panel(
            screen, "ttft-replicas", _("Time to first token, mean by replica"), lines, "seconds", signals=("ttft",), row=ROW,
            height=first_token_heat.HEIGHT,
        )  # fmt: skip
    _relations(here)
    _interferes(here)


def _stages(here: _Page) -> None:
    """The stack, of the replicas that the verdict names: beside many healthy ones a sick one would not be seen."""
    _, facts = here.reader, here.facts
    rows = first_token.named(facts, here.verdict)
    found = breakdown(facts, rows)
    known, window = np.isfinite(found.ttft), inside.inside(facts)
    stages = {
        name: np.where(known, np.nan_to_num(values), np.nan)
        for name, values in zip(TITLES, found.stages, strict=True)
        if (np.nan_to_num(values)[window] > 0).any()
    }
    title = _("Mean time to first token, by stage")
    if not rows.all():
        names = [replica.name for replica, wanted in zip(facts.readings.replicas, rows, strict=True) if wanted]
        title = _("Mean time to first token, by stage, on {where}", where=where_words(facts, names))
    note = _(
        "The stages add up to the mean that was measured. No engine measures tokenization: it is what is neither queue nor prefill. While "
        "requests queue up, those that still wait are in it too, and it is called the remainder. The network, where known, stands on top."
    )
    lines = Course(tuple(_.tell(TITLES[name]) for name in stages), np.stack(list(stages.values()))) if stages else None
    network = ("gateway_duration", "e2e_latency") if not facts.has("gateway_ttft") and facts.network_told else ("gateway_ttft",)
    panel(
        here.screen, "stages", title, lines, "seconds", signals=("ttft", "queue_time", "prefill_time", *network), replicas=False,
        form="stack", row=ROW, note=note, colors=[_COLORS[name] for name in stages],
    )  # fmt: skip


def _percentiles(here: _Page, signal: str, title: str, objective: str, mean: bool = False) -> None:
    """p50, p95 and p99 of the whole view, each by itself."""
    _, buckets = here.reader, here.facts.readings.buckets.get(signal)
    lines = []
    if buckets is not None:
        lines = [(name, histogram.quantile(buckets.bounds, buckets.rates, q)[0]) for q, name in QUANTILES]
    if mean or not lines:
        lines.insert(0, (_("mean"), here.facts.joint_mean(signal)))
    limit = here.facts.limit(objective)
    rule = Rule(limit, _("objective {figure}", figure=_.figure(limit, "seconds")))
    note = _("Of all replicas together, from the buckets. In the first or last bucket a percentile is drawn at the bucket's edge.")
    _panel(here, signal, title, lines, "seconds", (rule,), note)


def _panel(
    here: _Page, signal: str, title: str, lines: list[tuple[str, Array]], unit: str, rules: tuple[Rule, ...], note: str
) -> None:  # fmt: skip
    course = Course(tuple(name for name, _values in lines), np.stack([values for _name, values in lines]))
    panel(here.screen, f"percentiles-{signal}", title, course, unit, signals=(signal,), replicas=False, rules=rules, row=ROW, note=note)


def _shares(here: _Page) -> None:
    """The parts within the objectives; a range where the objective lies between two edges, and then its upper end is dashed."""
    _, facts = here.reader, here.facts
    lines: list[tuple[str, Array]] = []
    colors = []
    pace = first_token_figures.pace(facts)
    for signal, limit, color in (("ttft", "ttft_objective", COLORS[0]), (pace, "itl_objective", COLORS[1])):
        buckets = facts.readings.buckets.get(signal)
        if buckets is None:
            continue
        objective = facts.limit(limit)
        low, high = histogram.within(buckets.bounds, buckets.rates, objective)
        if not np.isfinite(low).any():
            continue
        figure = _.figure(objective, "seconds")
        name = {
            "ttft": _("first tokens within {figure}", figure=figure),
            "tpot": _("requests within {figure} a token", figure=figure),
            "itl": _("tokens within {figure}", figure=figure),
        }[signal]
        exact = len(set(histogram.edges(buckets.bounds, objective))) == 1
        lines += [(name, low)] if exact else [(_("{name}: at least", name=name), low), (_("{name}: at most", name=name), high)]
        colors += [color] if exact else [color, color]
    course = Course(tuple(name for name, _values in lines), np.stack([values for _name, values in lines])) if lines else None
    both = _(
        "Both are shares of the requests: of each its first token, and at its finish its own mean time per token. Buckets tell the part "
        "under their own edges; for an objective between two of them it lies between the two lines."
    )
    tokens = _(
        "First tokens are a share of the requests, tokens a share of the tokens: of no request its own time per token is told here. "
        "Buckets tell the part under their own edges; for an objective between two of them it lies between the two lines."
    )
    note = both if pace == "tpot" else tokens
    panel(
        here.screen, "shares", _("Within the objectives"), course, "ratio", signals=("ttft", pace), replicas=False, low=True, row=ROW,
        rules=(threshold(here.screen, "objective_share"),), note=note, colors=colors,
    )  # fmt: skip


def _relations(here: _Page) -> None:
    _ = here.reader
    found = first_token_relations.relations(here.facts)
    if found is None:
        return
    words = _(
        "One dot for each {length} on {replica}, the replica on which most time was waited. vLLM counts a prompt's length when its request "
        "is finished, so it may come late.",
        length=Quantity(found.seconds, "seconds"), replica=found.replica,
    )  # fmt: skip
    _heading(_("What goes with the time to first token"), words)
    titles = {
        "prompt_length": _("Time to first token against prompt length"),
        "prefix_cache_hits": _("Time to first token against prefix cache hits"),
    }
    for column, item in zip(st.columns(2, gap="small"), found.items, strict=True):
        with column:
            y = Axis(_("Time to first token"), "seconds", item.y)
            name, signals = f"relation-{item.signal.replace('_', '-')}", ("ttft", item.signal)
            scatter(
                here.screen,
                name,
                titles[item.signal],
                Axis(_.tell(item.title), item.unit, item.x),
                y,
                item.times,
                _.tell(item.says),
                signals,
            )


def _interferes(here: _Page) -> None:
    """Inter-token latency beside the prefill that may slow it down."""
    _, met = here.reader, here.met
    words = _(
        "A long prompt is computed in the same steps in which the others' next tokens are made. Chunked prefill cuts it into parts, so "
        "that they wait less. All replicas together; one dot for each minute, or for more where the window is long."
    )
    _heading(_("Does prefill hold up who already streams?"), words)
    left, right = st.columns(2, gap="small")
    with left:
        _percentiles(here, "itl", _("Inter-token latency"), "itl_objective", mean=True)
    with right:
        if met is not None:
            prefill = Axis(_("Prompt tokens computed"), "tokens_per_second", met.prefill)
            itl = Axis(_("Inter-token latency, p99") if met.tail else _("Inter-token latency, mean"), "seconds", met.itl)
            title, signals = _("Inter-token latency against prefill"), ("itl", "prompt_tokens", "prefix_cache_hits")
            scatter(here.screen, "interference", title, prefill, itl, met.times, _.tell(met.says), signals)


def _heading(title: str, words: str) -> None:
    show(tag("div", tag("div", title, cls="title", role="heading", aria_level=2), tag("div", words, cls="note"), cls="panel sheet-head"))

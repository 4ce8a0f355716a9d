"""The retries page: are we doing work twice, or for nobody?"""

from __future__ import annotations

import numpy as np
import streamlit as st

from obs import retries, retries_flow
from obs.course import Course
from obs.facts import Facts
from obs.palette import COLORS
from obs.retries_flow import Layer
from obs.series import Array, total_of
from obs.ui import page, retries_layers, retries_what_if
from obs.ui.panel import panel, threshold
from obs.ui.plot import LINES, Rule
from obs.ui.screen import Screen

ROW = "load_after_timeouts"
QUIET = 0.1  # the least that a scale reaches: a line of nothing lies at its foot and not in the middle
Lines = list[tuple[str, Array]]


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    answer = page.begin(screen, _("Are we doing work twice, or for nobody?"))
    if answer is None:
        return
    facts, verdict = answer.courses.facts, answer.diagnosis.verdict(ROW)
    found = retries_flow.layers(facts)
    page.says(retries.answer(facts, verdict, answer.diagnosis.findings), screen)
    first, second, third = (st.columns(2, gap="small") for _row in range(3))
    with first[0]:
        _attempts(screen, facts, found)
    with first[1]:
        _ratio(screen, facts)
    with second[0]:
        _given_up(screen, facts)
    with second[1]:
        _left(screen, facts)
    with third[0]:
        _held(screen, facts)
    with third[1]:
        _tokens(screen, facts)
    retries_layers.draw(screen, facts, retries.during(facts, verdict.episodes))
    retries_what_if.draw(screen, facts, found)


def _panel(
    screen: Screen, key: str, title: str, lines: Lines, unit: str, signals: tuple[str, ...], note: str | None = None, stack: bool = False,
    colors: list[str] | None = None,
) -> None:  # fmt: skip
    known = [(name, values) for name, values in lines if np.isfinite(values).any()]
    course = Course(tuple(name for name, _values in known), np.stack([values for _name, values in known])) if known else None
    panel(
        screen, key, title, course, unit, signals=signals, replicas=False, form="stack" if stack else "line", row=ROW, note=note,
        colors=colors, least_top=QUIET,
    )  # fmt: skip


def _attempts(screen: Screen, facts: Facts, found: tuple[Layer, ...]) -> None:
    """What came in, what was sent, and what the engines finished; layers are not added up."""
    _ = screen.reader
    lines: Lines = []
    for layer in found:
        where = f" · {retries_layers.title(layer.system)}" if len(found) > 1 else ""
        lines += [(_("attempts") + where, layer.attempts), (_("originals") + where, layer.originals)]
    lines.append((_("finished by the engines"), total_of(facts.values("requests_finished"))))
    note = _("Attempts are what the gateway sends to the engines; originals are the attempts less the retries.")
    _panel(
        screen, "attempts", _("Originals and attempts, per second"), lines, "per_second",
        ("gateway_attempts", "gateway_retries", "requests_finished"), note,
    )  # fmt: skip


def _ratio(screen: Screen, facts: Facts) -> None:
    """Each gateway row by itself, under both budgets."""
    _ = screen.reader
    told = [i for i, values in enumerate(facts.retry_ratio) if np.isfinite(values).any()]
    names = tuple("/".join(part for part in facts.gateways[i] if part) or _("gateway") for i in told)
    client, gateway = threshold(screen, "retry_ratio"), threshold(screen, "gateway_retry_budget")
    budgets = [_.figure(rule.value, "ratio") for rule in (client, gateway)]
    rules = (
        Rule(client.value, ""),  # so near the other one that two lines of words would lie on each other
        Rule(gateway.value, _("budgets: client {client}, gateway {gateway}", client=budgets[0], gateway=budgets[1])),
    )
    note = _("Retries over original requests. At 100 % each request is sent twice.")
    panel(
        screen, "retry-ratio", _("Retries per request, by gateway row"), Course(names, facts.retry_ratio[told]) if told else None, "ratio",
        signals=("gateway_retries", "gateway_attempts"), replicas=len(told) > LINES, rules=rules, row=ROW, note=note,
    )  # fmt: skip


def _given_up(screen: Screen, facts: Facts) -> None:
    _ = screen.reader
    over, used = retries_flow.refused(facts)
    lines = [
        (_("time-outs"), facts.over_layers("gateway_timeouts")),
        (_("retries refused by a budget"), over),
        (_("retries used up"), used),
        (_("5xx answers"), facts.over_layers("gateway_errors")),
    ]
    signals = ("gateway_timeouts", "gateway_retry_overflow", "gateway_errors")
    _panel(screen, "given-up", _("Time-outs, and retries that were not made, per second"), lines, "per_second", signals)


def _left(screen: Screen, facts: Facts) -> None:
    _ = screen.reader
    lines = [
        (_("time-outs"), facts.over_layers("gateway_timeouts")),
        (_("cancelled by the client"), facts.over_layers("gateway_cancelled")),
        (_("aborted in the engines"), total_of(facts.values("engine_aborts"))),
    ]
    note = _("Each caller that leaves should become an abort in an engine. vLLM does not count those, so there the tokens tell.")
    signals = ("gateway_timeouts", "gateway_cancelled", "engine_aborts")
    _panel(screen, "left", _("Callers that left, and aborts in the engines, per second"), lines, "per_second", signals, note)


def _held(screen: Screen, facts: Facts) -> None:
    _ = screen.reader
    lines = [
        (_("running or waiting in the engines"), facts.work[0]),
        (_("held open by the gateways"), facts.over_layers("gateway_active")),
        (_("held for nobody"), facts.unattended[0]),
    ]
    note = _("What the engines hold and no gateway holds open is work that nobody waits for, over two minutes.")
    signals = ("requests_running", "requests_waiting", "gateway_active")
    _panel(screen, "held", _("Work that somebody waits for, and work that nobody does"), lines, "count", signals, note)


def _tokens(screen: Screen, facts: Facts) -> None:
    _ = screen.reader
    made = retries_flow.tokens(facts)
    lines = [(_("for somebody"), made.useful), (_("for nobody"), made.wasted)]
    note = _("For nobody is what neither a finished request delivered nor a running one holds.")
    signals = ("generation_tokens", "output_length")
    _panel(screen, "tokens", _("Generated tokens per second"), lines, "tokens_per_second", signals, note, True, [COLORS[0], COLORS[1]])

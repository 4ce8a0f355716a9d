"""The queue page: is more work admitted than we finish?"""

from __future__ import annotations

import numpy as np
import streamlit as st

from obs import histogram, inside, queue, queue_figures
from obs.course import Course
from obs.facts import Facts
from obs.flow import flow
from obs.series import Array, total_of
from obs.ui import page
from obs.ui.panel import panel, threshold
from obs.ui.plot import Rule
from obs.ui.screen import Screen


def draw(screen: Screen) -> None:
    """The page, or the sentence that stands in its place."""
    _ = screen.reader
    answer = page.begin(screen, _("Is more work admitted than we finish?"))
    if answer is None:
        return
    facts = answer.courses.facts
    page.says(queue.answer(facts), screen)
    _flow(screen, facts)
    first, second = st.columns(2, gap="small"), st.columns(2, gap="small")
    with first[0]:
        held = Course((_("running"), _("waiting")), np.stack([total_of(facts.values(s)) for s in ("requests_running", "requests_waiting")]))
        panel(
            screen, "held", _("Running and waiting requests, all replicas"), held, "count",
            signals=("requests_running", "requests_waiting"), replicas=False, form="stack",
        )  # fmt: skip
    with first[1]:
        _waits(screen, facts)
    with second[0]:
        _running(screen, facts)
    with second[1]:
        waiting = Course(tuple(replica.name for replica in facts.readings.replicas), facts.values("requests_waiting"))
        panel(
            screen, "waiting", _("Waiting requests, by replica"), waiting, "count",
            signals=("requests_waiting",), rules=(threshold(screen, "waiting"),),
        )  # fmt: skip


def _flow(screen: Screen, facts: Facts) -> None:
    """In and out on one axis."""
    _ = screen.reader
    work = flow(facts)
    lines: list[tuple[str, Array]] = [(_("admitted"), work.admitted), (_("completed"), work.completed), (_("rejected"), work.rejected)]
    if work.at_gateway:
        lines.insert(0, (_("arrivals: attempts at the gateway"), work.arrivals))
    signals = ("requests_finished", "requests_running", "requests_waiting", "admission_rejections")
    note = _(
        "Engines count what they finish, not what they admit: admitted is what was finished, failed or aborted, and the growth of what is "
        "held. Requests whose client left are missing in it where the engine does not count them, as vLLM does not."
    )
    panel(
        screen, "flow", _("In and out, per second"), Course(tuple(name for name, _v in lines), np.stack([v for _n, v in lines])),
        "per_second", signals=(*(("gateway_attempts",) if work.at_gateway else ()), *signals), replicas=False, note=note,
    )  # fmt: skip


def _waits(screen: Screen, facts: Facts) -> None:
    """The queue time that was measured, and the one that follows from the queue's length."""
    _ = screen.reader
    lines = [(_("mean"), queue.mean_wait(facts)[0])]
    buckets = facts.readings.buckets.get("queue_time")
    if buckets is not None:
        lines.append((_("p95"), histogram.quantile(buckets.bounds, buckets.rates, 0.95)[0]))
    law = queue.little(facts)[0]
    lines.append((_("by Little's law"), np.where(np.isinf(law), np.nan, law)))
    note = _("An engine measures a wait when the request is finished. Little's law tells it earlier: waiting by completed per second.")
    panel(
        screen, "queue-time", _("Queue time"), Course(tuple(name for name, _v in lines), np.stack([v for _n, v in lines])), "seconds",
        signals=("queue_time",), replicas=False, note=note,
    )  # fmt: skip


def _running(screen: Screen, facts: Facts) -> None:
    """Concurrency reached; the engine's limit is not exposed, so the highest that was seen is drawn instead."""
    _ = screen.reader
    reached = queue_figures.concurrency(facts, inside.inside(facts))
    rules: tuple[Rule, ...] = ()
    if reached.value is not None:
        rules = (Rule(reached.value, _("highest seen: {figure}", figure=_.figure(reached.value, "count"))),)
    lines = Course(tuple(replica.name for replica in facts.readings.replicas), facts.values("requests_running"))
    panel(
        screen, "running", _("Running requests, by replica"), lines, "count", signals=("requests_running",), rules=rules,
        note=_.tell(reached.says) if reached.says and reached.value is not None else None,
    )  # fmt: skip

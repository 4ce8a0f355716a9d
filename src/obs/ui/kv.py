"""The KV cache page."""

from __future__ import annotations

from obs.ui import page
from obs.ui.course import Course
from obs.ui.panel import panel, threshold
from obs.ui.screen import Screen

ROW = "latency_without_errors"


def draw(screen: Screen) -> None:
    """The page."""
    _ = screen.reader
    answer = page.begin(screen, _("Is KV space short, and for whom?"))
    if answer is None:
        return
    facts = answer.courses.facts
    names = tuple(replica.name for replica in answer.readings.replicas)
    panel(screen, "kv-use", _("KV cache use"), Course(names, facts.values("kv_use")), "ratio", signals=("kv_use",), row=ROW,
          rules=(threshold(screen, "kv_use"),))  # fmt: skip
    panel(
        screen,
        "kv-preemptions",
        _("Preemptions"),
        Course(names, facts.values("preemptions")),
        "per_second",
        signals=("preemptions",),
        row=ROW,
    )

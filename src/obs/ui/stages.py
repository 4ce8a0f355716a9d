"""Where the first token's time went: its stages as one bar, in the order in which a request passes them."""

from __future__ import annotations

from obs.stage_evidence import MIXED
from obs.titles import REMAINDER, STAGES
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader
from obs.verdict import State, Verdict

# The stage and the evidence that has its mean, in the order in which a request passes them.
_ORDER = (("network", "network_time"), ("tokenization", "ttft_remainder"), ("queue", "queue_time"), ("prefill", "prefill_time"))


def stage_bar(verdict: Verdict, _: Reader) -> Html | None:
    """The bar of a row that says which stage is slow, each stage with its mean; None for other rows, and where no stage was measured."""
    if verdict.state not in (State.APPLIES, State.SUSPECTED):
        return None
    figures = {piece.signal: piece.value for piece in verdict.evidence if piece.value is not None}
    stages = [(stage, figures[signal]) for stage, signal in _ORDER if signal in figures]
    total = sum(seconds for _stage, seconds in stages)
    rest = next((piece.title for piece in verdict.evidence if piece.signal == "ttft_remainder"), None)
    names = {**STAGES, "tokenization": REMAINDER} if rest == MIXED else STAGES
    if len(stages) < 2 or total <= 0:
        return None
    told = ", ".join(f"{_.tell(names[stage])} {_.figure(seconds, 'seconds')}" for stage, seconds in stages)
    parts, legend = [], []
    for stage, seconds in stages:
        look = f"part {stage}{' slow' if stage == verdict.stage else ''}"
        parts.append(tag("span", cls=look, style=f"width:{seconds / total * 100:.2f}%"))
        legend.append(tag("span", tag("i", cls=look), _.tell(names[stage]), " ", tag("b", _.figure(seconds, "seconds"))))
    return tag("div", tag("div", parts, cls="parts", role="img", aria_label=told), tag("div", legend, cls="legend"), cls="stages")

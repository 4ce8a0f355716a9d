"""What a derived figure is computed from, and how: for these no single query gives the figure that stands on the page.

The figures themselves are made in `obs.facts`, `obs.edge` and `obs.means`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from obs.signals import Reading, Readings
from obs.text import Message, say
from obs.verdict import Evidence


@dataclass(frozen=True)
class Recipe:
    """The signals that are read, in alternatives of which the first that is measured counts, and how they become the figure."""

    reads: tuple[tuple[str, ...], ...]
    how: Message


_RETRIES = (("gateway_retries", "gateway_attempts"),)
_NETWORK = Recipe(
    (("gateway_ttft", "ttft"), ("gateway_duration", "e2e_latency")),
    say("The mean at the gateway less the mean of the engines behind it, over the same minutes."),
)
RECIPES: Mapping[str, Recipe] = {
    "retry_ratio": Recipe(_RETRIES, say("Retries over original requests, which are the attempts less the retries.")),
    "amplification": Recipe(_RETRIES, say("One, and the retries over original requests.")),
    "layers": Recipe(_RETRIES, say("Attempts for each request, multiplied over the layers that retry.")),
    "timeouts": Recipe((("gateway_timeouts",),), say("The rate of time-outs, counted up over the last ten minutes.")),
    "error_ratio": Recipe(
        (("gateway_errors", "gateway_timeouts", "gateway_responses"), ("engine_errors", "requests_finished")),
        say("Errors without time-outs over all answers, each over two minutes."),
    ),
    "preemptions": Recipe((("preemptions",),), say("The mean rate over three minutes; 0 once none was counted in the rate window.")),
    "expected_wait": Recipe(
        (("requests_waiting", "requests_finished"),), say("Little's law: waiting requests over completions per second, over two minutes.")
    ),
    "ttft_remainder": Recipe(
        (("ttft", "queue_time", "prefill_time"),), say("The mean time to first token less the mean queue time and the mean prefill time.")
    ),
    "network": _NETWORK,
    "network_time": _NETWORK,
    "work_left": Recipe((("requests_running", "requests_waiting"),), say("Running and waiting requests of all replicas together.")),
    "waste": Recipe(
        (("generation_tokens", "output_length", "requests_running"),),
        say("The part of the generated tokens that neither a finished request delivered nor a running one holds."),
    ),
    "abandoned_requests": Recipe(
        (("requests_running", "requests_waiting", "gateway_active"),),
        say("Running and waiting requests less those that the gateways hold open, over two minutes."),
    ),
    "engine_aborts": Recipe((("engine_aborts", "gateway_timeouts"),), say("Aborted requests over time-outs, each over two minutes.")),
}


def reads(piece: Evidence, readings: Readings) -> tuple[Reading, ...]:
    """The readings that a derived figure is computed from; none for a figure that its own query gives."""
    recipe = RECIPES.get(piece.signal)
    if recipe is None:
        return ()
    for alternative in recipe.reads:
        found = [readings.signals[signal] for signal in alternative if signal in readings.signals]
        if found and found[0].present:
            return tuple(reading for reading in found if reading.promql)
    return ()

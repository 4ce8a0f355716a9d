"""What a person reads for the ids in a diagnosis: rows, states, stances, stages. Row and stage names are the article's."""

from __future__ import annotations

from collections.abc import Mapping

from obs.signals import Status
from obs.text import Message, say
from obs.verdict import Stance, State

ROWS: Mapping[str, Message] = {
    "gpu_oom": say("GPU out-of-memory error"),
    "latency_without_errors": say("Latency rises without errors"),
    "slow_first_token": say("Slow first token"),
    "load_after_timeouts": say("Load increases after timeouts"),
}
PRIMARIES: Mapping[str, Message] = {**ROWS, "none": say("No row applies"), "insufficient": say("Not enough data")}
STATES: Mapping[State, Message] = {
    State.APPLIES: say("applies"),
    State.SUSPECTED: say("suspected"),
    State.CLEAR: say("clear"),
    State.UNKNOWN: say("unknown"),
}
STANCES: Mapping[Stance, Message] = {
    Stance.SUPPORTS: say("supports"),
    Stance.CONTRADICTS: say("contradicts"),
    Stance.NEUTRAL: say("neutral"),
    Stance.MISSING: say("missing"),
}
STAGES: Mapping[str, Message] = {
    "queue": say("queue"),
    "tokenization": say("tokenization and front end"),  # what is neither queue nor prefill, while no queue stands: no engine measures it
    "prefill": say("prefill"),
    "network": say("network"),
}
REMAINDER = say("remainder, not told apart")  # the same while a queue stands: the wait of who is not finished is in it
STATUSES: Mapping[Status, Message] = {
    Status.MEASURED: say("measured"),
    Status.NO_TRAFFIC: say("no traffic"),
    Status.ABSENT: say("absent"),
    Status.STALE: say("stale"),
}

"""What a site sets for a signal (`OBS_PROMQL__KV_USE`): PromQL of its own, or the name of a recording rule, beside the vocabularies' names.

A name alone is a recording rule: it comes first, and the vocabulary's own names fill in where it has nothing. PromQL stands alone. Both may
give what a system does not tell (retries that a log pipeline counts).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from obs.errors import CallError
from obs.signals import SIGNALS, Kind, Level, Signal
from obs.text import say
from obs.vocabulary import Candidate, Naming, Vocabulary

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_RULE = re.compile(rf"\s*({_NAME})\s*(?:/\s*({_NAME})\s*)?")


def named(vocabulary: Vocabulary, overrides: Mapping[str, str], names: Collection[str]) -> Mapping[str, Naming]:
    """The vocabulary's signals, with what the site sets. Raises CallError where a signal is unknown."""
    if not overrides or vocabulary.role not in ("engine", "gateway"):
        return vocabulary.signals
    level = Level.GATEWAY if vocabulary.role == "gateway" else Level.REPLICA
    found = dict(vocabulary.signals)
    for name, text in overrides.items():
        if name not in SIGNALS:
            known = ", ".join(SIGNALS)
            raise CallError(
                say("OBS_PROMQL__{signal} is wrong: there is no such signal. Known: {known}.", signal=name.upper(), known=known)
            )
        if SIGNALS[name].level is level:
            found[name] = _naming(SIGNALS[name], text, found.get(name), names)
    return found


def _naming(signal: Signal, text: str, usual: Naming | None, names: Collection[str]) -> Naming:
    rule = _RULE.fullmatch(text)
    if rule is None:
        return _with(usual, (Candidate(name=f"settings:{signal.id}", expr=text, own=True),))
    first, second = rule[1], rule[2]
    if second is not None and signal.kind is not Kind.MEAN:
        raise CallError(say("OBS_PROMQL__{signal} is wrong: only a mean is made of two recording rules.", signal=signal.id.upper()))
    if first not in names or (second is not None and second not in names):
        return usual or _with(None, (Candidate(name=first, expr=f"max by ($by) ({first}{{$sel}})", needs=(first,), own=True),))
    if second is not None:
        mean = Candidate(
            name=f"{first} / {second}", expr=f"sum by ($by) ({first}{{$sel}})", count=f"sum by ($by) ({second}{{$sel}})",
            needs=(first, second), own=True,
        )  # fmt: skip
        return _with(usual, (mean, *(usual.candidates if usual else ())))
    over = "sum" if signal.kind is Kind.RATE else "max"
    own = Candidate(name=first, expr=f"{over} by ($by) ({first}{{$sel}})", needs=(first,), own=True)
    return _with(usual, (own, *(usual.candidates if usual else ())))


def _with(usual: Naming | None, candidates: tuple[Candidate, ...]) -> Naming:
    return Naming(candidates=candidates, worst=usual.worst if usual else "high")

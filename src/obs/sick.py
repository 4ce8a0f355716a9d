"""Which replica is sick? The answer of the replicas page, from the diagnosis and the readings behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from obs.facts import Facts
from obs.outliers import LEAST_REPLICAS, Outlier, outliers
from obs.question import Said
from obs.sick_figures import advice, figures
from obs.standing import DOUBTFUL, SICK, UNSEEN, WORDS, Standing, Stands, Tails, standings
from obs.text import Message, Names, Sentences, say, say_n
from obs.verdict import Diagnosis, State

OTHERS = 2  # kinds of trouble beside the first that the sentence names


@dataclass(frozen=True)
class Fleet:
    """Every replica of the view, the sickest first, and those that stand far from the median."""

    standings: tuple[Standing, ...]
    outliers: tuple[Outlier, ...]
    said: Said


def fleet(facts: Facts, diagnosis: Diagnosis, tails: Tails | None = None) -> Fleet:
    """The answer with its figures and advice. `tails`: each replica's first tokens over the window, where they were read."""
    odd = outliers(facts)
    found = standings(facts, diagnosis, odd, tails or {})
    state, says = _answer(found, odd)
    return Fleet(found, odd, Said(state, says, figures(found, odd), advice(found, odd)))


def _answer(found: Sequence[Standing], odd: Sequence[Outlier]) -> tuple[State, Message]:
    n = len(found)
    if not found:
        return State.UNKNOWN, say("Nobody can tell: no replica of an engine is in this window and scope.")
    sick = [s for s in found if s.stands in SICK]
    if n == 1:
        return found[0].state, _only(found[0])
    if sick:
        return State.APPLIES, _sick(sick, n)
    if all(s.stands in UNSEEN for s in found):
        return State.UNKNOWN, say("Nobody can tell: of none of the {n} replicas anything is known at the end of the window.", n=n)
    if all(s.stands is Stands.IDLE for s in found):
        return State.UNKNOWN, say("No traffic: no replica had a request in this window, so nothing tells whether one is sick.")
    if odd:
        more = say_n("{n} more stands out.", "{n} more stand out.", len(odd) - 1)
        farthest = say("None is in trouble, but {name} stands out: {what}.", name=Names((odd[0].replica,)), what=odd[0].says)
        return State.SUSPECTED, Message("{all}", {"all": Sentences((farthest, more))}) if len(odd) > 1 else farthest
    if doubtful := [s for s in found if s.stands in DOUBTFUL]:
        first = doubtful[0]
        alike = [s for s in doubtful if s.stands is first.stands]
        return State.SUSPECTED, say("Perhaps {where}: {word} ({what}).", where=_names(alike), word=WORDS[first.stands], what=_what(first))
    if unseen := [s for s in found if s.stands in UNSEEN]:
        return State.UNKNOWN, say("None that is seen; of {where} nothing is known at the end of the window.", where=_names(unseen))
    if n < LEAST_REPLICAS:
        return State.CLEAR, say("None: both replicas work. Of two, nobody can tell which one is odd.")
    return State.CLEAR, say("None: all {n} replicas work, and none stands far from the others.", n=n)


def _only(standing: Standing) -> Message:
    name, word = Names((standing.replica.name,)), WORDS[standing.stands]
    if standing.says is None:
        return say("One replica is in view, {name}: {word}.", name=name, word=word)
    return say("One replica is in view, {name}: {word} ({what}).", name=name, word=word, what=standing.says)


def _sick(sick: Sequence[Standing], n: int) -> Message:
    """Who is in trouble and in which; where all are, that it is not one of them."""
    kinds = list(dict.fromkeys((s.stands, s.row) for s in sick))
    if len(sick) == n:
        return say("Not one of them: all {n} replicas are in trouble ({what}).", n=n, what=_what(sick[0]))
    parts = [
        say("{where}: {what}.", where=_names(group), what=_what(group[0]))
        for kind in kinds[: 1 + OTHERS]
        if (group := [s for s in sick if (s.stands, s.row) == kind])
    ]
    head = say_n("{n} of {all} replicas is sick.", "{n} of {all} replicas are sick.", len(sick), all=n)
    return Message("{all}", {"all": Sentences((head, *parts))})


def _what(standing: Standing) -> Message:
    return standing.says or WORDS[standing.stands]


def _names(group: Iterable[Standing]) -> Names:
    return Names(tuple(s.replica.name for s in group))

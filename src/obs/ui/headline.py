"""The answer as a sentence, over everything else."""

from __future__ import annotations

from dataclasses import replace

from obs import links
from obs.links import View
from obs.text import Names
from obs.ui.icons import icon
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader
from obs.verdict import Diagnosis

_SIGNS = {"none": "clear", "insufficient": "unknown"}


def unmatched(view: View, _: Reader) -> Html:
    """The sentence where nothing carries the labels of the link, and the way out of it."""
    scope = Names(tuple(f"{label}={', '.join(values)}" for label, values in sorted(view.scope.items())))
    link = tag("a", _("Remove the filter"), href=links.url("", replace(view, scope={})), target="_self")
    words = _("There is no series with {scope} in this window.", scope=scope)
    sign = tag("div", icon("unknown"), tag("span", words), cls="headline", role="heading", aria_level=1)
    return tag("div", sign, tag("div", link, cls="summary"), cls="answer quiet")


def answered(diagnosis: Diagnosis, _: Reader, *, past: bool = False) -> Html:
    """The headline, and how the rows hang together. Of the past, that all was well is no sign that it is."""
    headline, summary = _.tell(diagnosis.headline), _.tell(diagnosis.summary)
    rest = summary.removeprefix(headline).strip()
    sign = _SIGNS.get(diagnosis.primary, "applies")
    sign = "unknown" if past and sign == "clear" else sign
    return tag(
        "div",
        tag("div", icon(sign), tag("span", headline), cls="headline", role="heading", aria_level=1),
        tag("div", rest, cls="summary") if rest else None,
        cls=f"answer {'quiet' if diagnosis.primary in ('none', 'insufficient') else 'loud'}",
    )

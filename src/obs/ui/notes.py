"""The store of incidents for the pages, and what of an incident several of them need."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from obs import __version__, links, shelf
from obs.errors import CallError
from obs.links import View
from obs.notes.incident import Incident, Judged
from obs.notes.store import Store
from obs.ui import answer as answers
from obs.ui.answer import Answer
from obs.ui.bundles import verdict
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader


@st.cache_resource(show_spinner=False)
def store() -> Store | None:
    """The store of this process; None where `OBS_NOTES_DIR` is not set."""
    folder = answers.settings().notes_dir
    return Store(folder) if folder is not None else None


def judged(answer: Answer, _: Reader) -> Judged:
    """The verdict, to be kept."""
    found = answer.diagnosis
    states = {verdict.row: verdict.state.value for verdict in found.verdicts}
    return Judged(found.primary, states, _.tell(found.headline), f"obs {__version__}")


def has_bundle(one: Incident) -> bool:
    """Whether the bundle of an incident is known here."""
    if one.bundle is None:
        return False
    try:
        shelf.named(one.bundle, answers.settings().notes_dir, answers.settings().bundle_dir)
    except CallError:
        return False
    return True


def kept_view(one: Incident, _: Reader) -> View:
    """The view that was saved, for this reader: their zone and language, unless the link in the address bar says otherwise."""
    return replace(links.parse_url(one.link), zone="", lang="")


def opened(one: Incident, view: View, _: Reader) -> View:
    """The incident's page, with its window in the bar: from its bundle where that is known, which Prometheus cannot forget."""
    found = replace(
        kept_view(one, _), page="incidents", incident=one.id, zone=view.zone, lang=view.lang, row=None, compare=None, change=None
    )
    return replace(found, source=None, bundle=one.bundle) if has_bundle(one) else found


def facts(one: Incident, _: Reader) -> Html:
    """When it was, of what, and what the verdict was."""
    scope = ", ".join(value for _label, values in sorted(links.parse_url(one.link).scope.items()) for value in values)
    return tag(
        "span",
        verdict(one.judged.primary, _) if one.judged else None,
        tag("span", _.window(one.start, one.end)),
        tag("span", scope) if scope else None,
        cls="facts",
    )

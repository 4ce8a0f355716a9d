"""Namespace, model and replica: what the data has of each, to choose from. Any other label of a link can be taken away again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from obs.links import View
from obs.ui import address
from obs.ui.bar import escaped
from obs.ui.reader import Reader

LABELS = ("namespace", "model", "replica")


def draw(view: View, known: Mapping[str, Sequence[str]], _: Reader) -> None:
    """One choice a label. `known` holds the values in the data by label; a label without any is shown only while it is in the view."""
    titles = {"namespace": _("Namespace"), "model": _("Model"), "replica": _("Replica")}
    for label in LABELS:
        chosen = view.scope.get(label, ())
        options = list(dict.fromkeys([*chosen, *known.get(label, ())]))
        if options:
            _choice(view, label, titles[label], options, chosen, _)
    for label in sorted(set(view.scope) - set(LABELS)):
        _choice(view, label, label, list(view.scope[label]), view.scope[label], _)
    if view.scope:
        st.button(_("Show everything"), key="scope_clear", on_click=address.go, args=(replace(view, scope={}),))
    elif not any(known.values()):
        st.caption(_("There is nothing to choose from in this window."))


def _choice(view: View, label: str, title: str, options: list[str], chosen: tuple[str, ...], _: Reader) -> None:
    key = f"scope_{label}"
    st.session_state[key] = list(chosen)

    def choose() -> None:
        wanted = tuple(st.session_state[key])
        scope = {name: values for name, values in {**view.scope, label: wanted}.items() if values}
        address.go(replace(view, scope=scope))

    st.multiselect(escaped(title), options, list(chosen), key=key, on_change=choose, placeholder=_("any"))

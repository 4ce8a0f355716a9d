"""Share: the pinned link, the answer as one line of Markdown, and the report of the window as a file."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from obs import api, links, retrospective
from obs.report import Report, share_markdown
from obs.ui import address
from obs.ui import answer as answers
from obs.ui.markup import show, tag
from obs.ui.screen import Screen
from obs.window import rfc3339

_SCRIPT = """
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.onclick = async () => {
    let copied = false;
    try {
      await navigator.clipboard.writeText(data.text);
      copied = true;
    } catch {  // not allowed, or no secure origin: the old way
      const field = document.createElement("textarea");
      field.value = data.text;
      document.body.append(field);
      field.select();
      copied = document.execCommand("copy");
      field.remove();
    }
    button.textContent = copied ? data.done : data.failed;
    setTimeout(() => { button.textContent = data.label; }, 2500);
  };
}
"""
_LOOK = """
button { font: inherit; font-weight: 600; padding: .4rem .9rem; border-radius: 6px; border: 0; cursor: pointer;
         background: var(--accent, #0b57a8); color: light-dark(#fff, #0c1a2b); }
button:focus-visible { outline: 3px solid var(--accent, #0b57a8); outline-offset: 2px; }
"""


@lru_cache(maxsize=1)
def _copier() -> Any:
    """The one piece of script of the page: a button that copies. Its text arrives as data, never as markup."""
    return component("obs_copy", html="<button type='button'></button>", css=_LOOK, js=_SCRIPT)


def draw(screen: Screen) -> None:
    """The pinned link and the Markdown line; without an answer only the link."""
    _ = screen.reader
    if screen.window is None:
        st.caption(_("This window cannot be shared, because it cannot be shown."))
        return
    view = links.pinned(answers.lasting(screen.view), screen.window, zone=_.zone, lang=_.lang)
    link = links.url(address.base(view.page), view)
    st.caption(_("This link shows the same window to everybody, whenever it is opened."))
    _line(link, "link", screen)
    if screen.answer is not None:
        answer = screen.answer
        report = Report(answer.diagnosis, answer.readings, answer.about, view.scope, _.lang, _.zone, link)
        st.caption(_("The answer in one line of Markdown, with the link."))
        _line(share_markdown(report), "markdown", screen)
        st.caption(_("The report of this window for a retrospective, as a file that needs nothing else."))
        source = answers.source(screen.view)

        def whole() -> Report:
            """With changes and alerts, which are asked for when the file is."""
            return replace(report, happened=api.happened(source, report))

        name = f"obs-{rfc3339(round(answer.diagnosis.start)).replace(':', '')}"
        with st.container(horizontal=True):
            st.download_button(
                "HTML", lambda: retrospective.to_html(whole()), f"{name}.html", "text/html", key="report_html", on_click="ignore",
                icon=":material/description:",
            )  # fmt: skip
            st.download_button(
                "Markdown", lambda: retrospective.to_markdown(whole()), f"{name}.md", "text/markdown", key="report_md", on_click="ignore",
                icon=":material/description:",
            )  # fmt: skip
        _bundle(screen, f"{name}.obs.zip")
    if answers.settings().notes_dir is not None and view.page != "incidents":
        href = links.url("", replace(view, page="incidents", row=None))
        show(tag("a", _("Keep it as an incident, with notes"), href=href, target="_self"))


def _bundle(screen: Screen, name: str) -> None:
    """The readings as a file, made when the button is pressed."""
    _, window, view, settings = screen.reader, screen.window, screen.view, answers.settings()
    if window is None:
        return
    st.caption(_("The readings of this window in one file (a bundle): it opens in obs without Prometheus, under Incidents."))
    with st.container(horizontal=True, vertical_alignment="center"):
        hidden = st.checkbox(_("Other names for replicas, namespaces and models"), key="share_pseudonyms")
        source = answers.source(view)
        st.download_button(
            _("Readings"), lambda: api.packed(source, window, view.scope, settings, pseudonymise=hidden), name, "application/zip",
            key="share_bundle", on_click="ignore", icon=":material/inventory_2:",
        )  # fmt: skip


def _line(text: str, key: str, screen: Screen) -> None:
    _ = screen.reader
    st.code(text, language=None, wrap_lines=True)
    data = {"text": text, "label": _("Copy"), "done": _("Copied"), "failed": _("Select the text and copy it by hand")}
    _copier()(data=data, key=f"copy_{key}")

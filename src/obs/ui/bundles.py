"""Readings in files: the bundles that lie in the folders, one brought along, and those that hold what Prometheus has forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from obs import links, shelf
from obs.bundle import Bundle
from obs.errors import CallError
from obs.links import View
from obs.shelf import Kept
from obs.titles import PRIMARIES
from obs.ui import address, frame
from obs.ui import answer as answers
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.verdict import ROW_IDS
from obs.window import Window

_SHOWN = 50
_MOST_MB = 256
_OFFERED = 3


def draw(screen: Screen) -> None:
    """The list, and the field for a file."""
    _ = screen.reader
    settings = answers.settings()
    title = tag("div", _("Readings in files"), cls="title", role="heading", aria_level=2)
    what = _("A bundle holds all readings of a window. It opens on every page without Prometheus, and the diagnosis is derived again.")
    show(tag("div", title, tag("p", what, cls="about"), cls="panel shelf"))
    _upload(screen)
    found = shelf.kept(settings.bundle_dir, settings.notes_dir)
    if found:
        show(tag("div", [_line(one, screen) for one in found[:_SHOWN]], cls="kept"))
    if len(found) > _SHOWN:
        st.caption(_("The latest {shown} of {all}.", shown=_SHOWN, all=len(found)))


def offered(screen: Screen) -> None:
    """Where Prometheus has nothing of a pinned window: that sentence, and the files that hold it."""
    _ = screen.reader
    if screen.window is None or screen.window.live or screen.view.bundle or not _asks_prometheus(screen.view):
        return
    if screen.answer is not None and any(reading.present for reading in screen.answer.readings.signals.values()):
        return
    settings = answers.settings()
    found = [one for one in shelf.kept(settings.bundle_dir, settings.notes_dir) if one.covers(screen.window)]
    if screen.answer is None and not found:
        return  # why there is no answer is said in its place
    missing = _("Prometheus has no readings of this window: it may have forgotten them, or the scope names nothing.")
    if screen.answer is None:
        missing = _("Prometheus does not answer, but its readings were kept.")
    show(tag("div", tag("b", missing), " ", _ways(found, screen.window, screen), cls="sample", role="note"))


def verdict(primary: str, _: Reader) -> Html:
    """A primary row with its sign."""
    look = "applies" if primary in ROW_IDS else "clear" if primary == "none" else "unknown"
    words = _.tell(PRIMARIES[primary]) if primary in PRIMARIES else primary
    return tag("span", icon(look), tag("span", words), cls=f"verdict {look}")


def _asks_prometheus(view: View) -> bool:
    try:
        return not isinstance(answers.source(view), Bundle)
    except CallError:
        return False


def _ways(found: Sequence[Kept], window: Window, screen: Screen) -> list[Html | str]:
    _ = screen.reader
    if not found:
        incidents = links.url("", View(page="incidents", zone=screen.view.zone, lang=screen.view.lang))
        return [tag("a", _("Open a file with its readings"), href=incidents, target="_self")]
    ways: list[Html | str] = [_("These files hold it:"), " "]
    for one in found[:_OFFERED]:
        manifest = one.manifest
        if manifest is not None:
            part = Window(max(window.start, manifest.start), min(window.end, manifest.end))
            view = links.pinned(View(screen.view.page, bundle=one.id), part, zone=_.zone, lang=_.lang)
            ways += [tag("a", _.window(manifest.start, manifest.end), href=links.url("", view), target="_self"), " "]
    return ways


def _upload(screen: Screen) -> None:
    """A file from the reader's own disk. What is none says so; what is one opens at once."""
    _ = screen.reader
    folder = answers.settings().bundle_dir
    kept = (
        _("It is kept in the folder of OBS_BUNDLE_DIR.")
        if folder is not None
        else _("It is kept as long as obs runs; with OBS_BUNDLE_DIR set it would stay.")
    )
    file = st.file_uploader(
        _("Open a bundle from your disk"), type=["zip"], key="bundle_file", max_upload_size=_MOST_MB, help=kept
    )  # fmt: skip
    if file is None:
        return
    try:
        opened = shelf.upload(file.getvalue(), file.name, folder)
    except CallError as error:
        show(tag("div", _.tell(error.says), cls="off", role="alert"))
        return
    st.switch_page(
        frame.pages(frame.ROOT)[0], query_params=address.query(View(bundle=opened.id, zone=screen.view.zone, lang=screen.view.lang))
    )


def _line(one: Kept, screen: Screen) -> Html:
    _ = screen.reader
    size = _.figure(float(one.size), "bytes")
    manifest = one.manifest
    if manifest is None:
        wrong = _.tell(one.wrong) if one.wrong else ""
        return tag("div", tag("span", one.name, cls="title"), tag("span", wrong, cls="told"), cls="kept-line")
    scope = ", ".join(value for _label, values in sorted(manifest.scope.items()) for value in values)
    facts = [
        verdict(manifest.judged.primary, _) if manifest.judged else None,
        tag("span", scope) if scope else None,
        tag("span", f"{manifest.source.name} · {manifest.source.flavor} {manifest.source.version}"),
        tag("span", _("pseudonyms")) if manifest.pseudonyms else None,
        tag("span", size),
        tag("code", one.id),
    ]
    view = View(bundle=one.id, zone=screen.view.zone, lang=screen.view.lang)
    return tag(
        "a",
        tag("span", _.window(manifest.start, manifest.end), cls="title"),
        tag("span", facts, cls="facts"),
        href=links.url("", view),
        target="_self",
        cls="kept-line",
    )

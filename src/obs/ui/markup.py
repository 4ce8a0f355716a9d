"""HTML as values: every piece of text is escaped on its way in, so no label, name or sentence from outside can become markup.

A fragment is one line on purpose: it is shown through `st.markdown`, where a blank line would end the HTML block and a line
break inside a hostile label would let Markdown have a go at the rest. (`st.html` would be the obvious way, but it drops SVG.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

import streamlit as st

_VOID = frozenset({"br", "hr", "path", "line", "rect", "circle"})
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+", re.ASCII)  # a no-break space is meant
_LONGEST = 2_000  # characters of one text: a label of 10,000 is cut here, so that it cannot bury the page


class Html(str):
    """Markup that is safe to show. Only this module makes it; a plain `str` is text and is escaped."""

    __slots__ = ()


Child = Html | str | None


def text(words: str) -> Html:
    """Outside text made harmless: escaped, on one line, cut after 2,000 characters; Markdown's own signs become character references."""
    line = _SPACE.sub(" ", words)
    if len(line) > _LONGEST:
        line = line[:_LONGEST] + "…"
    return Html(escape(line, quote=True).replace("`", "&#96;").replace("\\", "&#92;").replace("$", "&#36;").replace("{", "&#123;"))


def tag(name: str, *children: Child | Iterable[Child], **attributes: str | float | None) -> Html:
    """An element. Attribute names: `cls` is class, `_` becomes `-`; a value of None leaves the attribute out. An href from
    the root is one of our own pages."""
    if str(attributes.get("href") or "").startswith("/"):
        attributes["href"] = f"{base_path()}{attributes['href']}"
    written = "".join(
        f' {"class" if key == "cls" else key.strip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[Child | Iterable[Child]]) -> Html:
    """Children one after the other: markup as it is, text escaped, nested sequences flattened, None left out."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(text(child))
        else:
            parts.append(join(child))
    return Html("".join(parts))


def base_path() -> str:
    """What comes before the path of our own addresses behind a proxy: "/obs", or nothing."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def show(fragment: Html) -> None:
    """Puts a fragment on the page."""
    st.markdown(tag("div", fragment, cls="obs"), unsafe_allow_html=True)

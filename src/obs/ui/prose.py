"""Notes as they are shown: Markdown without HTML and without images, so that a note can neither run anything nor call anywhere."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

_SCHEMES = ("http", "https", "mailto")


def written(notes: str) -> str:
    """The HTML of notes. Raw HTML is text, an image is a link to it, and a link leads to the web, to a mailbox or into obs."""
    return str(_markdown().render(notes))


def plain(notes: str) -> str:
    """The words of notes on one line, for a list."""
    found = (token for token in _markdown().parse(notes) if token.type in ("inline", "fence", "code_block"))
    return " ".join(" ".join(_words(token)).strip() for token in found)


def _words(token: Token) -> Iterator[str]:
    if token.children is None:
        yield from token.content.split()
    else:
        yield "".join(" " if child.type in ("softbreak", "hardbreak") else child.content for child in token.children)


def show(notes: str) -> None:
    """Puts notes on the page."""
    st.html(f'<div class="obs prose">{written(notes)}</div>')


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    parser.validateLink = _leads_somewhere_known  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _outside)
    return parser


def _leads_somewhere_known(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    return parts.scheme.lower() in _SCHEMES if parts.scheme or parts.netloc else url.startswith("/") and not url.startswith(("//", "/\\"))


def _outside(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: MutableMapping[str, Any]
) -> str:  # the form that markdown-it calls
    tokens[at].attrSet("target", "_blank")
    tokens[at].attrSet("rel", "noopener noreferrer nofollow")
    return renderer.renderToken(tokens, at, options, env)

"""The address bar: the view that it holds, and writing another one. Names and meaning of parameters belong to `obs.links`."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from obs import links
from obs.links import View
from obs.text import Message


def read(page: str) -> tuple[View, tuple[Message, ...]]:
    """The view in the address bar, and what in it did not parse."""
    return links.parse(page, {name: st.query_params.get_all(name) for name in st.query_params})


def go(view: View) -> None:
    """Show another view of the same page: the browser gets a new entry in its history, so that Back leads here again."""
    st.query_params.from_dict(query(view))


def query(view: View) -> dict[str, list[str]]:
    """A view's parameters in the form that Streamlit takes."""
    out: dict[str, list[str]] = {}
    for name, value in links.params(view):
        out.setdefault(name, []).append(value)
    return out


def base(page: str) -> str:
    """Where the dashboard is served, as the reader's browser sees it: the address without page and parameters."""
    parts = urlsplit(st.context.url or "")
    path = parts.path.rstrip("/").removesuffix(page).rstrip("/") if page else parts.path.rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))

"""All replicas, the sickest first: one line each, a page of them at a time; a replica's name leads to its own diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from obs import links
from obs.links import View
from obs.standing import WORDS, Cell, Standing
from obs.text import Message, Names
from obs.ui.icons import icon
from obs.ui.markup import Html, show, tag
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.versions import tag as version_tag

LINES = 25  # a page of the table
_FIND, _SORT, _PAGE = "replicas_find", "replicas_sort", "replicas_page"
_LEVELS = (("kv_use", "ratio"), ("requests_waiting", "count"), ("requests_running", "count"), ("generation_tokens", "count"))


def draw(screen: Screen, standings: Sequence[Standing], mean: Message | None) -> None:
    """The table. Where it has more lines than a page, it can be searched, sorted and turned over. `mean`: why the time to first token
    is one, where p95 of each replica was not read."""
    _ = screen.reader
    with st.container(key="panel-replicas"):
        note = _(
            "Over the window: the highest KV use, waiting and running requests; the mean tokens per second; p95 of the time to first "
            "token, of the replica's own buckets. The version is the image's tag, else what the metric names tell."
        )
        if mean is not None:
            note = _(
                "Over the window: the highest KV use, waiting and running requests; the mean tokens per second and time to first token. "
                "The mean and not p95 of each replica: {why} The version is the image's tag, else what the metric names tell.", why=mean,
            )  # fmt: skip
        title = tag("div", _("All replicas, sickest first"), cls="title", role="heading", aria_level=2)
        show(tag("div", title, tag("div", note, cls="note"), cls="panel"))
        column = "ttft_p95" if mean is None else "ttft"
        shown, first, count = _chosen(standings, screen, column)
        heads = _heads(_, column)
        head = tag("tr", [tag("th", words, scope="col") for words in heads])
        lines = [_line(standing, screen, heads, column) for standing in shown]
        show(tag("table", tag("thead", head), tag("tbody", lines), cls="table replicas"))
        if count > LINES and not screen.view.kiosk:
            _turn(first, len(shown), count, _)
        elif not shown:
            show(tag("div", _("No replica's name holds these letters."), cls="nothing"))


def _heads(_: Reader, column: str) -> list[str]:
    return [
        _("Replica"), _("State"), _("What"), _("KV use"), _("Waiting"), _("Running"), _("Tokens/s, mean"),
        _("TTFT, p95") if column == "ttft_p95" else _("TTFT, mean"), _("Restarts"), _("Version"),
    ]  # fmt: skip


def _chosen(standings: Sequence[Standing], screen: Screen, column: str) -> tuple[Sequence[Standing], int, int]:
    """(the lines of this page, the first one's number, how many there are in all). A wall screen shows the first page."""
    _ = screen.reader
    if len(standings) <= LINES or screen.view.kiosk:
        return standings[:LINES], 0, len(standings)
    orders = {
        "trouble": _("Sickest first"),
        "kv_use": _("KV use"),
        "requests_waiting": _("Waiting"),
        column: _heads(_, column)[7],
        "name": _("Name"),
    }
    with st.container(key="replicas-choice", horizontal=True, gap="small"):
        wanted = st.text_input(_("Find a replica"), key=_FIND, on_change=_begin, placeholder=_("part of its name")).strip().lower()
        order = st.selectbox(_("Order"), list(orders), key=_SORT, format_func=orders.__getitem__, on_change=_begin)
    found = [s for s in standings if wanted in s.replica.name.lower()]
    if order == "name":
        found.sort(key=lambda s: s.replica.name)
    elif order != "trouble":
        found.sort(key=lambda s: -1.0 if (value := s.cells[order].value) is None else value, reverse=True)
    first = min(st.session_state.get(_PAGE, 0), max(0, (len(found) - 1) // LINES)) * LINES
    return found[first : first + LINES], first, len(found)


def _begin() -> None:
    st.session_state[_PAGE] = 0


def _turn(first: int, shown: int, count: int, _: Reader) -> None:
    page = first // LINES

    def to(number: int) -> None:
        st.session_state[_PAGE] = number

    with st.container(key="replicas-turn", horizontal=True, vertical_alignment="center", gap="small"):
        st.button(_("Back"), key="replicas_back", icon=":material/chevron_left:", disabled=page == 0, on_click=to, args=(page - 1,))
        show(tag("span", _("{first} to {last} of {all}", first=first + 1, last=first + shown, all=count), cls="age", role="status"))
        last = first + shown >= count
        st.button(_("Next"), key="replicas_next", icon=":material/chevron_right:", disabled=last, on_click=to, args=(page + 1,))


def _line(standing: Standing, screen: Screen, heads: Sequence[str], column: str) -> Html:
    _, look = screen.reader, standing.state.value
    called = link(screen, standing.replica.name)
    state = tag("span", icon(look), tag("span", _.tell(WORDS[standing.stands])), cls=f"verdict {look}")
    columns = (*_LEVELS, (column, "seconds"), ("restarts", "count"))
    figures = [_cell(standing.cells[name], unit, head, _) for (name, unit), head in zip(columns, heads[3:9], strict=True)]
    return tag(
        "tr",
        tag("th", called, scope="row"),
        tag("td", state, cls="state-cell"),
        tag("td", _.tell(standing.says) if standing.says else None, cls="what-cell"),
        figures,
        tag("td", version(standing, _), data_head=heads[9], cls="version-cell", title=standing.replica.image or None),
        cls=look,
    )


def link(screen: Screen, name: str) -> Html:
    """A replica's name, cut where it is endless, as the way to its diagnosis."""
    return tag("a", screen.reader("{names}", names=Names((name,))), href=address(screen.view, name), target="_self")


def address(view: View, name: str) -> str:
    """The diagnosis of one replica: the scope of the view, and this replica in it. Relative, for an obs behind a path."""
    scope = {**view.scope, "replica": (name,)}
    return "./?" + links.url("", replace(view, page="", scope=scope, row=None)).partition("?")[2]


def _cell(cell: Cell, unit: str, head: str, _: Reader) -> Html:
    """A figure; where there is none a word, never an empty cell and never 0."""
    if cell.value is None:
        return tag("td", tag("span", _.tell(cell.why) if cell.why else "–", cls="none"), data_head=head, cls="number")
    return tag("td", _.tell(cell.says) if cell.says else _.figure(cell.value, unit), data_head=head, cls="number")


def version(standing: Standing, _: Reader) -> str:
    """The image's tag; without one what the metric names say: "0.20 or later"."""
    replica = standing.replica
    if found := version_tag(replica.image):
        return found
    if replica.since and replica.until:
        return _("{since} to {until}", since=replica.since, until=replica.until)
    if replica.since:
        return _("{since} or later", since=replica.since)
    return _("{until} or earlier", until=replica.until) if replica.until else _("not known")

"""The row under a chart: the metric that was found, its PromQL to copy, the way to Prometheus, and the drawn figures as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import StringIO
from urllib.parse import quote

import numpy as np
import streamlit as st

from obs.errors import ObsError
from obs.links import View
from obs.series import Array
from obs.signals import Reading
from obs.ui import answer as answers
from obs.ui.markup import Html, show, tag
from obs.ui.plot import Plot
from obs.ui.screen import Screen
from obs.window import rfc3339

_GRAPHS = ("prometheus", "thanos")  # flavours with Prometheus' own page at /graph
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # and their full-width forms
_SEVERAL = 2  # metrics named under a chart; all of them stand in the popover


def draw(screen: Screen, key: str, made: Callable[[], str], readings: Sequence[Reading]) -> None:
    """The row. PromQL, link and CSV (`made`) are made only while the popover is open."""
    _ = screen.reader
    start = screen.answer.readings.start if screen.answer else 0.0
    asked = [reading for reading in readings if reading.promql]
    with st.container(key=f"take-{key}", horizontal=True, vertical_alignment="center", gap="small"):
        named = list(dict.fromkeys(reading.metric for reading in asked if reading.metric))
        more = [tag("span", "+", str(len(named) - _SEVERAL))] if len(named) > _SEVERAL else []
        show(tag("div", [tag("code", metric) for metric in named[:_SEVERAL]], more, cls="metrics"))
        popover = st.popover("PromQL · CSV", key=f"open-{key}", type="tertiary", on_change="rerun")
        if popover.open:
            with popover:
                for reading in asked:
                    show(_asked(reading, screen))
                    st.code(reading.promql, language=None, wrap_lines=True)
                if not asked:
                    st.caption(_("Derived by obs from several metrics."))
                st.download_button(
                    _("The figures drawn, as CSV"),
                    made(),
                    file_name=f"{key}-{rfc3339(start)}.csv".replace(":", ""),
                    mime="text/csv",
                    key=f"csv-{key}",
                    on_click="ignore",
                    icon=":material/download:",
                )


def _asked(reading: Reading, screen: Screen) -> Html:
    _, answer = screen.reader, screen.answer
    address = prometheus_address(screen.view) if answer is not None and answer.about.flavor in _GRAPHS else None
    link = None
    if address and reading.promql and answer is not None:
        href = graph_link(address, reading.promql, answer.readings.start, answer.readings.end)
        link = tag("a", _("Open in Prometheus"), href=href, target="_blank", rel="noopener noreferrer")
    return tag("div", tag("b", _.tell(reading.signal.title)), " ", tag("code", reading.metric or ""), " ", link, cls="asked")


def prometheus_address(view: View) -> str | None:
    """Where a browser finds the source's own page: its address without user name and password. None for a recording, and
    where the settings want no link."""
    try:
        found = answers.settings().source(view.source) if view.bundle is None else None
    except ObsError:
        return None
    return found.address.replace("***@", "") if found is not None and found.link else None


def graph_link(address: str, promql: str, start: float, end: float) -> str:
    """Prometheus' graph of an expression over the window."""
    until = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{address}/graph?g0.expr={quote(promql)}&g0.tab=0&g0.range_input={max(1, round(end - start))}s&g0.end_input={quote(until)}"


def written(plot: Plot) -> str:
    """The figures as CSV: one line a moment, times in UTC, an empty field where there is no figure."""
    names = [_safe(name) or "value" for name in plot.names]
    band = [] if plot.low is None or plot.high is None else [plot.low, plot.high]
    head = [f"{name} [{plot.unit}]" for name in names] + (["others lowest", "others highest"] if band else [])
    return table(head, plot.times, [*plot.values, *band])


def table(head: Sequence[str], times: Array, columns: Sequence[Array]) -> str:
    """Columns over time as CSV."""
    out = StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["time", *head])
    for at, *figures in zip(times.tolist(), *columns, strict=True):
        lines.writerow([rfc3339(at), *(f"{figure:.6g}" if np.isfinite(figure) else "" for figure in figures)])
    return out.getvalue()


def _safe(name: str) -> str:
    """A label on one line that no spreadsheet takes for a formula."""
    name = " ".join(name.splitlines())  # the csv module leaves a lone carriage return outside quotes
    return f"'{name}" if name.lstrip().startswith(_FORMULA) or name.startswith("\t") else name

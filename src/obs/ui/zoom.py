"""A chart that can be dragged over: what is dragged becomes the window, in the link and so on every page."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyarrow as pa
import streamlit as st

from obs.links import View
from obs.ui import address
from obs.ui.kept import kept
from obs.ui.plot import Plot, Spec, plotted, told
from obs.ui.reader import Reader
from obs.window import rfc3339

_LEAST = 10.0  # seconds; a shorter drag was a click


def draw(plot: Plot, key: str, view: View, alt: str, _: Reader) -> None:
    """Draws a plot. Its key holds the link's times, so that a new window begins without the old selection, and a refresh keeps it."""
    put(*drawn(plot, _), key, view, alt, _)


@kept(128)  # 16 views of a page with eight charts, in about 100 kB each
def drawn(plot: Plot, _: Reader) -> tuple[pa.Table, Spec]:
    """What goes to the browser."""
    frame, spec = plotted(plot, _)
    return pa.Table.from_pandas(frame), told(spec, _)


def put(data: pa.Table | pd.DataFrame, spec: Spec, key: str, view: View, alt: str, _: Reader) -> None:
    """The same for any chart with a selection named `brush` over the times `at`, its times told (`plot.told`)."""
    name = f"chart-{key}-{view.start}-{view.end}"

    def zoom() -> None:
        zoomed(view, st.session_state.get(name), _)

    st.vega_lite_chart(data, spec, width="stretch", key=name, on_select=zoom, selection_mode="brush", alt=alt)


def zoomed(view: View, state: object, _: Reader) -> None:
    """Shows the window that was dragged over."""
    brush = getattr(getattr(state, "selection", None), "brush", None) or {}
    at = brush.get("at") if isinstance(brush, dict) else None
    if not at or len(at) != 2:
        return
    start, end = sorted(_.unwall(float(each) / 1000) for each in at)
    if end - start >= _LEAST:
        address.go(replace(view, start=rfc3339(round(start)), end=rfc3339(round(end))))

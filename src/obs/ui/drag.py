"""Dragging over the lanes of a page sets the window, as it does over a chart. Escape, or a drag of a few pixels, is none."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from obs.ui import address
from obs.ui.screen import Screen
from obs.window import rfc3339

_LEAST_SECONDS = 10.0
# Listens on the document, since a rerun may replace the lanes. By mouse or pen only: a finger that scrolls would select.
_SCRIPT = """
export default function ({ setTriggerValue }) {
  const box = document.createElement("div");
  box.style.cssText = "position:fixed;pointer-events:none;z-index:99;display:none;"
    + "background:rgb(128 128 128 / 0.28);border-inline:1.5px solid rgb(128 128 128)";
  document.body.append(box);
  let from = null;
  const lane = () => document.querySelector(".obs .tl .rules").getBoundingClientRect();
  const clamp = (x, at) => Math.min(Math.max(x, at.left), at.right);
  const down = (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !event.target.closest?.(".obs .tl") || event.clientX < lane().left) return;
    from = event.clientX;
    event.preventDefault();
  };
  const move = (event) => {
    if (from === null || (box.style.display === "none" && Math.abs(event.clientX - from) < 5)) return;
    const at = lane(), [left, right] = [from, event.clientX].map((x) => clamp(x, at)).sort((a, b) => a - b);
    const [width, top, height] = [right - left, at.top, at.height].map((length) => length + "px");
    Object.assign(box.style, { display: "block", left: left + "px", width, top, height });
  };
  const stop = () => { from = null; box.style.display = "none"; };
  const up = (event) => {
    if (from !== null && box.style.display !== "none") {
      const at = lane(), { start, end } = document.querySelector(".obs .tl").dataset;
      const time = (x) => Number(start) + (clamp(x, at) - at.left) / at.width * (Number(end) - Number(start));
      setTriggerValue("range", [time(from), time(event.clientX)].sort((a, b) => a - b));
      const swallow = (click) => { click.preventDefault(); click.stopPropagation(); };  // a drag over a block is no click on it
      document.addEventListener("click", swallow, { capture: true });
      setTimeout(() => document.removeEventListener("click", swallow, { capture: true }), 50);
    }
    stop();
  };
  const key = (event) => { if (event.key === "Escape") stop(); };
  const all = [["pointerdown", down], ["pointermove", move], ["pointerup", up], ["pointercancel", stop], ["keydown", key]];
  all.forEach(([name, act]) => document.addEventListener(name, act));
  return () => { all.forEach(([name, act]) => document.removeEventListener(name, act)); box.remove(); };
}
"""


@lru_cache(maxsize=1)
def _dragger() -> Any:
    return component("obs_drag", js=_SCRIPT)


def over(screen: Screen) -> None:
    """Makes the page's lanes (`.tl`, which carry the window in their data) something to drag over."""
    key = "drag-lanes"

    def zoom() -> None:
        times = getattr(st.session_state.get(key), "range", None)
        if isinstance(times, list | tuple) and len(times) == 2:
            start, end = sorted(float(at) for at in times)
            if end - start >= _LEAST_SECONDS:
                address.go(replace(screen.view, start=rfc3339(round(start)), end=rfc3339(round(end))))

    _dragger()(key=key, on_range_change=zoom, height=1)

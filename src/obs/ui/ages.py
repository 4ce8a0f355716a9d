"""How old something is, counting on by itself: an age that stands still between two refreshes, or behind a lost connection, would lie."""

from __future__ import annotations

import streamlit as st

from obs.ui.markup import Html, tag
from obs.ui.reader import Reader

_HOLE = "\u241f"

# One timer for all ages of the page, begun anew with each run of it. The server's clock counts, this machine's only how much went by.
# The lengths are those of `Reader.length`.
_SCRIPT = """<script>
(() => {
  clearInterval(window.obsAges);
  const began = Date.now();
  const length = seconds => {
    const whole = Math.round(seconds);
    for (const [size, unit, small, part] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
      if (whole >= size) {
        const rest = Math.floor(whole % size / small);
        return `${Math.floor(whole / size)}\\u00a0${unit}` + (rest ? ` ${rest}\\u00a0${part}` : "");
      }
    }
    return `${whole}\\u00a0s`;
  };
  const count = () => {
    const now = NOW + Math.max(0, Date.now() - began) / 1000;
    for (const each of document.querySelectorAll(".obs [data-since]")) each.textContent = length(Math.max(0, now - each.dataset.since));
  };
  window.obsAges = setInterval(count, 1000);
})();
</script>"""


def sentence(words: str, since: float, now: float, _: Reader) -> list[Html | str]:
    """`words` with the age of `since` in the place that `hole` has in them."""
    before, _hole, after = words.partition(_HOLE)
    # a screen reader is told the age once, and not each second
    counted = tag("span", _.length(max(0.0, now - since)), data_since=f"{since:.0f}", aria_live="off", cls="counting")
    return [before, counted, after]


def hole() -> str:
    """What stands for an age in a sentence, until `sentence` puts it there."""
    return _HOLE


def count(now: float) -> None:
    """Lets all ages of the page count on. `now` is the time by which they were written."""
    st.html(_SCRIPT.replace("NOW", f"{now:.1f}"), unsafe_allow_javascript=True)

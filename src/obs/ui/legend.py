"""What the lines of a chart are: colour, dash and name, in the order of the lines."""

from __future__ import annotations

from obs.palette import dashes
from obs.text import say_n
from obs.titles import ROWS
from obs.ui.markup import Html, tag
from obs.ui.plot import Plot
from obs.ui.reader import Reader


def keys(plot: Plot, others: int, row: str | None, _: Reader, *, named: bool = True) -> list[Html]:
    """One key a line where `named`, what the grey band is (`others` lines), and which row is shaded."""
    found = []
    for name, color, dash in zip(plot.names, plot.colors, dashes(plot.colors), strict=True):
        if name and named:
            found.append(_key(name, color, dash if plot.form == "line" else None))
    if plot.high is not None:
        words = say_n("{n} other, lowest to highest", "{n} others, lowest to highest", others)
        found.append(tag("span", tag("i", cls="band"), _.tell(words)))
    if row is not None:
        found.append(tag("span", tag("i", cls="shade"), _("shaded: {row}", row=ROWS[row])))
    return found


def _key(name: str, color: str, dash: tuple[int, int] | None) -> Html:
    """The colour is one of the palette's own."""
    if dash is None:
        return tag("span", tag("i", style=f"background:{color}"), name)
    pattern = " ".join(str(part) for part in dash) if dash[1] else None
    line = tag("line", x1=0, x2=18, y1=4, y2=4, stroke=color, stroke_width=3, stroke_dasharray=pattern)
    return tag("span", tag("svg", line, viewBox="0 0 18 8", cls="stroke", aria_hidden="true"), name)

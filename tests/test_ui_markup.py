"""Text from outside never becomes markup, and a small line shows what was measured, where it was measured."""

from __future__ import annotations

import math
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from obs.language import render
from obs.strokes import thinned
from obs.text import Moment, say
from obs.ui import plot
from obs.ui.bar import escaped
from obs.ui.markup import Html, tag, text
from obs.ui.reader import Reader
from obs.ui.spark import HEIGHT, WIDTH, sparkline
from obs.verdict import Episode

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "line\n\n# heading\n<b>",
    "&lt;b&gt; stays as it is",
    "`code` $math$ {{template}} \\escape",
    "\u2028\u0085\x00\x1b[31m",
]


class _Read(HTMLParser):
    """The elements and the text of a fragment, as a browser would see them."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(markup)

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_text_in_a_child_and_in_an_attribute(hostile: str) -> None:
    read = _Read(tag("div", hostile, title=hostile))
    assert [name for name, _ in read.elements] == ["div"]
    shown = read.elements[0][1]["title"]
    assert set(read.elements[0][1]) == {"title"}
    assert shown == read.words
    assert read.words.split() == "".join(" " if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in hostile).split()


def test_a_fragment_is_one_line_because_a_blank_line_would_end_the_html() -> None:
    fragment = tag("div", "a\n\n<b>\r\n\tc\x0bd", Html("<i></i>"))
    assert "\n" not in fragment
    assert "\r" not in fragment
    assert fragment == "<div>a &lt;b&gt; c d<i></i></div>"


def test_endless_text_is_cut() -> None:
    assert len(text("x" * 10_000)) < 2_100
    assert text("x" * 10_000).endswith("…")


def test_figures_keep_their_unit_on_the_same_line() -> None:
    assert Reader("en").figure(8.4e-3, "seconds") == "8.4\u00a0ms"
    assert "8.4\u00a0ms" in tag("b", Reader("en").figure(8.4e-3, "seconds"))
    assert Reader("es").figure(2.2, "per_second") == "2,2\u00a0/s"
    assert Reader("en").figure(None, "ratio") == "–"


def test_a_markdown_label_escapes_what_would_be_markup() -> None:
    assert escaped("*a* [b](c) :red[d] $x$ <e>") == r"\*a\* \[b\]\(c\) \:red\[d\] \$x\$ \<e\>"


def test_a_line_is_drawn_from_edge_to_edge_of_the_window_and_breaks_where_nothing_was_measured() -> None:
    times = np.arange(0.0, 101.0, 10.0)
    values = np.array([9, 0, 1, np.nan, np.nan, 1, 2, 2, 2, 2, 2], dtype=np.float64)
    read = _Read(sparkline(times, values, (10.0, 100.0), "KV", threshold=4.0, episodes=[Episode(50.0, None, ())]) or "")
    paths = {attrs["class"]: str(attrs["d"]) for name, attrs in read.elements if name == "path"}
    assert paths["course"].count("M") == 2  # the hole is a hole
    assert paths["course"].startswith("M0.0 ")
    assert paths["course"].endswith(f"L{WIDTH:.1f} 18.0")  # 2 of 4, the threshold being the top of the scale
    assert paths["limit"] == "M0 3.0H200"
    band = next(attrs for name, attrs in read.elements if name == "rect")
    assert (band["x"], band["width"], band["height"]) == ("88.9", "111.1", str(HEIGHT))


def test_no_line_is_drawn_where_nothing_was_measured_in_the_window() -> None:
    assert sparkline(np.array([0.0, 10.0]), np.array([5.0, np.nan]), (5.0, 10.0), "KV") is None


def test_a_short_peak_survives_when_a_long_line_is_thinned() -> None:
    times, values = np.arange(5000.0), np.zeros(5000)
    values[1234] = 7.0
    values[4000:] = np.nan
    at, lines = thinned(times, values[None, :], 100)
    shown = lines[0]
    assert shown.size <= 100
    assert np.nanmax(shown) == 7.0
    assert math.isnan(shown[-1])
    assert at[int(np.nanargmax(shown))] == pytest.approx(1234, abs=50)


def test_wall_clock_times_follow_the_zone_through_a_change_of_the_clocks() -> None:
    madrid = Reader("es", "Europe/Madrid")
    change = 1792890000.0  # 2026-10-25T01:00:00Z: 03:00 becomes 02:00
    assert (madrid.wall(np.array([change - 1, change])) - np.array([change - 1, change])).tolist() == [7200.0, 3600.0]


def test_in_a_window_in_which_the_clock_is_changed_a_chart_goes_on_evenly_and_its_labels_tell_the_clock() -> None:
    """Put back, an hour would be drawn over the one before it; put forward, an hour that never was would be a gap."""
    for zone, change, seconds in (("America/Los_Angeles", 1730624400.0, -3600.0), ("Australia/Sydney", 1728144000.0, 3600.0)):
        reader = Reader("en", zone, drawn=(change - 1800, change + 1800))
        times = change + np.arange(-1800.0, 1800.0, 15)
        assert np.diff(reader.wall(times)).tolist() == [15.0] * 239
        assert [reader.unwall(at) for at in reader.wall(times)] == times.tolist()
        ((place, by),) = reader.changes()
        assert (reader.unwall(place), by) == (change, seconds)
        asked: dict[str, Any] = {"x": {"field": "at", "axis": {"format": "%H:%M"}}, "clock": "utcFormat(datum.at, '%H:%M')"}
        moved = f"+ (time(AT) >= {place * 1000:.0f} ? {seconds * 1000:.0f} : 0)"
        told = plot.told(asked, reader)
        assert told["clock"] == f"utcFormat(time(datum.at) {moved.replace('AT', 'datum.at')}, '%H:%M')"
        assert told["x"]["axis"]["labelExpr"] == f"utcFormat(time(datum.value) {moved.replace('AT', 'datum.value')}, '%H:%M')"
        assert plot.told(asked, replace(reader, drawn=(change - 1800, change - 900))) is asked


def test_the_hour_that_the_clock_shows_twice_says_which_of_the_two_it_is() -> None:
    reader, change = Reader("en", "America/Los_Angeles"), 1730624400.0
    assert reader.span(change - 600, change + 600) == "01:50:00 PDT – 01:10:00 PST"
    assert reader.clock(change + 3600, seconds=False) == "02:00"
    assert render(say("{at}", at=Moment(change + 600)), "en", "America/Los_Angeles") == "01:10:00 PST"


def test_a_time_carries_its_date_where_the_window_has_more_than_one_day() -> None:
    reader = Reader("en", "Asia/Tokyo")
    start, end = 1796036500.0, 1796036990.0  # 2026-11-30T11:01:40Z
    assert reader.span(start, end) == "20:01:40 – 20:09:50"
    assert replace(reader, dated=True).span(start, end) == "30 Nov 20:01:40 – 30 Nov 20:09:50"
    assert replace(reader, dated=True).span(start, None) == "since 30 Nov 20:01:40"
    assert reader.span(start, end + 86400) == "30 Nov 20:01:40 – 1 Dec 20:09:50"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.6, "1 min"), (391, "6 min 31 s"), (4080, "1 h 8 min"), (2 * 86400 + 3600, "2 d 1 h")]
)
def test_a_length_has_its_two_leading_units(seconds: float, words: str) -> None:
    assert Reader("en").length(seconds) == words

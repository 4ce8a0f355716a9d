"""A clock that is off is said over every page that moves with the time, with its length and what it means."""

import re
from html import unescape

import pytest
from tests.fault_proxy import Fault, proxied

from obs.cache import Cached
from obs.config import SourceSettings
from obs.links import View
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.source import About, Query
from obs.ui import answer, stale
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import Window

LIVE = Window(1_000.0, 2_000.0, live=True)


def shown(monkeypatch, source, window=LIVE):
    """What the page says of the clock, as text."""
    said = []
    monkeypatch.setattr(answer, "source", lambda _view: source)
    monkeypatch.setattr(stale, "show", said.append)
    stale.clock(Screen(View(), Reader(), (), About("it", "prometheus", "2"), window, object()))  # type: ignore[arg-type]
    return " ".join(unescape(re.sub(r"<[^>]*>", "", str(each))).replace("\u00a0", " ").strip() for each in said)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, ""),
        (20.0, ""),
        (
            600.0,
            r"The clock of the source is (10 min|9 min 59 s|10 min 1 s) ahead of this machine's: what is newest there is not read\. .*",
        ),
        (-600.0, r"The clock of the source is (10 min|9 min 59 s|10 min 1 s) behind this machine's: its newest samples look old\. .*"),
    ],
)
def test_a_clock_that_is_off_by_minutes_is_said_and_a_few_seconds_are_not(seconds, words, lab_url, monkeypatch):
    with proxied(lab_url) as proxy:
        proxy._fault = Fault(clock=seconds)
        source = Cached(Prometheus(SourceSettings(url=proxy.url, name="it")))
        source.answer([Query("up", "up")], Grid(1796036544.0, 5.0, 3))
        assert re.fullmatch(words, shown(monkeypatch, source))


def test_a_window_that_does_not_move_says_nothing_of_clocks(lab_url, monkeypatch):
    with proxied(lab_url) as proxy:
        proxy._fault = Fault(clock=600.0)
        source = Cached(Prometheus(SourceSettings(url=proxy.url, name="it")))
        source.answer([Query("up", "up")], Grid(1796036544.0, 5.0, 3))
        assert shown(monkeypatch, source, Window(1_000.0, 2_000.0)) == ""

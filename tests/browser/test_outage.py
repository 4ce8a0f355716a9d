"""A live view while its source goes away and comes back: the last answer stays with its age, and all is as before by itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median_low

import pytest
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from tests.browser.conftest import answered, runs
from tests.browser.moving import Clock, ahead
from tests.fault_proxy import FAULTS, FINE, FaultProxy, proxied

REFRESH = 30


class Live:
    """A page that refreshes when the test says so, and what a refresh costs."""

    def __init__(self, page: Page, base: str, proxy: FaultProxy, clock: Clock) -> None:
        self.page, self.base, self.proxy, self.clock = page, base, proxy, clock

    def refresh(self) -> tuple[int, int]:
        """Lets half a minute pass: (runs of the page, requests that reached the source)."""
        drawn, asked, window = runs(self.base), len(self.proxy.seen), self.page.inner_text(".st-key-window")
        self.clock.move(REFRESH)
        for _ in range(5):
            if runs(self.base) == drawn:  # a timer that was due while the page was still being drawn is due again
                self.page.clock.fast_forward(REFRESH * 1000)
            with suppress(PlaywrightTimeout):
                self.page.wait_for_function(
                    "before => document.querySelector('.st-key-window').innerText !== before", arg=window, timeout=12_000
                )
                break
        assert self.page.inner_text(".st-key-window") != window
        until = time.monotonic() + 40  # a run is counted when it has ended, which is after its window is shown
        while runs(self.base) == drawn and time.monotonic() < until:
            self.page.wait_for_timeout(100)
        self.page.wait_for_timeout(500)  # a second timer would run now
        return runs(self.base) - drawn, len(self.proxy.seen) - asked

    def age(self) -> int:
        """Seconds that the answer says it is old."""
        words = self.page.inner_text(".asof .counting").replace("\u00a0", " ")
        found = re.fullmatch(r"(?:(\d+) min ?)?(?:(\d+) s)?", words)
        assert found, words
        return 60 * int(found[1] or 0) + int(found[2] or 0)


def test_a_live_view_outlives_its_source_with_the_last_answer_and_its_age(
    backfill: Callable[[str], str],
    dashboard: Callable[..., str],
    person: Callable[..., Page],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(tmp_path, monkeypatch)
    with proxied(backfill(ahead(1.0))) as proxy:
        base = dashboard(prometheus_url=proxy.url, prometheus_timeout_seconds="5")
        page = person()
        page.clock.install()
        answered(page, f"{base}/?from=now-30m&to=now")
        live = Live(page, base, proxy, clock)
        headline = page.inner_text(".headline")
        assert "busy-0" in page.inner_text(".stApp")
        live.refresh()
        before = [live.refresh() for _ in range(4)]  # names and the process are asked for once a minute: with every other refresh

        proxy.fault = FAULTS["refused"]
        assert [live.refresh()[0] for _ in range(2)] == [1, 1]
        assert page.inner_text(".st-key-past .headline") == headline
        assert re.match(r"No answer since \d\d:\d\d:\d\d: of what came after, nothing is known\.", page.inner_text(".failed"))
        assert "refused the connection" in page.inner_text(".failed")
        assert page.locator("[class*=st-key-card-unknown]").count() == 0
        old = live.age()
        assert 2 * REFRESH <= old <= 4 * REFRESH
        page.clock.fast_forward(7000)  # nothing is heard of the server meanwhile
        page.wait_for_function("old => document.querySelector('.asof .counting').innerText !== old", arg=page.inner_text(".asof .counting"))
        assert live.age() >= old + 7
        other = person()  # on a page of figures they stay too
        other.goto(f"{base}/kv?from=now-30m&to=now")
        other.locator(".obs .asof").wait_for()
        other.locator(".obs .stats .stat").first.wait_for()
        other.close()

        proxy.fault = FINE
        until = time.monotonic() + 60
        while page.locator(".asof").count():
            assert time.monotonic() < until, "it did not come back by itself"
            live.refresh()
        assert page.inner_text(".headline") == headline
        assert page.locator(".failed").count() == 0
        live.refresh()
        after = [live.refresh() for _ in range(4)]
        assert [drawn for drawn, _ in before + after] == [1] * 8  # one timer
        # every ten minutes scrape intervals are asked for too, which may be in one of these
        assert median_low(asked for _, asked in after) == median_low(asked for _, asked in before)
        assert max(asked for _, asked in after) <= max(asked for _, asked in before) + 1

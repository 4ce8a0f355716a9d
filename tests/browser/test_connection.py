"""What lasts: a view whose connection is lost and whose session is forgotten, and five viewers over eight hours of a moved clock."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from tests.browser.conftest import KV, answered, dashboard_process
from tests.browser.moving import Clock, ahead

import soak
from viewers import Viewer

FORGOTTEN_SECONDS = 2  # after which the server forgets a session that nobody is connected to; by default two minutes


def _events(base: str) -> dict[str, int]:
    """How often sessions were begun and taken up again, by Streamlit's own count."""
    with urllib.request.urlopen(f"{base}/_stcore/metrics", timeout=10) as answer:
        found = re.findall(r'session_events(?:_total)?{type="(\w+)"} (\S+)', answer.read().decode())
    return {name: int(float(count)) for name, count in found}


def test_a_view_is_the_same_after_its_connection_was_lost_and_after_its_session_was_forgotten(person: Callable[..., Page]) -> None:
    sockets: list[WebSocketRoute] = []
    cut = False

    def connect(socket: WebSocketRoute) -> None:
        if cut:
            socket.close()
        else:
            socket.connect_to_server()
            sockets.append(socket)

    with dashboard_process(streamlit=("--server.disconnectedSessionTTL", str(FORGOTTEN_SECONDS))) as base:
        page = person()
        page.route_web_socket(re.compile("/_stcore/stream"), connect)
        answered(page, f"{base}/?{KV}&row=latency_without_errors&tz=Asia/Tokyo")
        chart = page.locator("svg.marks .mark-line path").first
        chart.wait_for()
        shown, headline = page.url, page.inner_text(".headline")
        for lost_seconds in (0.5, 3.0 * FORGOTTEN_SECONDS):
            before = len(sockets)
            cut = True
            sockets[-1].close()
            page.wait_for_timeout(1000 * lost_seconds)
            cut = False
            for _ in range(300):
                if len(sockets) > before:
                    break
                page.wait_for_timeout(100)
            assert len(sockets) > before
            page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
            assert page.url == shown
            expect(page.locator(".headline")).to_have_text(headline)
            chart.wait_for()
        page.get_by_role("button", name="Half a window back").click()  # and it can be used
        page.wait_for_function("() => new URLSearchParams(location.search).get('from') === '2026-11-30T10:55:00Z'")
        expect(page.locator(".st-key-window")).to_contain_text("19:55")  # in the zone that was chosen
        events = _events(base)
        assert events["reconnect"] == 1  # the session of before,
        assert events["connect"] == 2  # and one that begins with the address alone


def test_five_viewers_over_eight_hours_keep_one_timer_each_and_the_process_stays_as_it_is(
    backfill: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(tmp_path, monkeypatch)
    url = backfill(ahead(11.0, scrape=30))
    step, hours = 2400, 8

    def asked(viewers: list[Viewer], times: int) -> list[int]:
        """Requests to the source in each of so many refreshes, in which time has moved by 40 minutes."""
        found = []
        for _ in range(times):
            clock.move(step)
            for viewer in viewers:
                assert "busy-0" in " ".join(viewer.tick())
                assert list(viewer.timers.values()) == [30.0]
            samples.append(soak.sample(base, pid, clock.ahead))
            found.append(samples[-1].requests - samples[-2].requests)
        return found

    with dashboard_process(prometheus_url=url) as base, ExitStack() as stack:
        viewers = [stack.enter_context(closing(Viewer(base, page, "from=now-30m&to=now"))) for page in soak.PAGES]
        for viewer in viewers:
            viewer.run()
        pid = soak.pid_of(base)
        samples = [soak.sample(base, pid, 0.0)]
        together = asked(viewers, hours * 3600 // step)
        first, last = samples[len(samples) // 4], samples[-1]
        alone = asked(viewers[:1], 3)
    # Five ask what one asks, in the eighth hour as in the first; but for a tick of 15 s that may pass in between, and for what is asked
    # for every ten minutes.
    assert median(together[-6:]) <= median(together[:6]) + 1
    assert median(together) <= median(alone) + 1
    assert (first.sessions, last.sessions) == (5, 5)
    assert last.threads <= first.threads + 2
    assert last.files <= first.files + 2
    assert last.resident <= 1.15 * first.resident

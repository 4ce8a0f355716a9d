"""A slow source: the page says how far its queries are, and moves nothing while it waits."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import answered
from tests.fault_proxy import FINE, Fault, proxied

_COUNT = "/[0-9] of [0-9]+ queries answered/.test(document.querySelector('.st-key-progress-window .reading')?.innerText)"


def test_a_slow_read_tells_how_many_queries_are_answered_and_moves_nothing(
    live: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    with proxied(live) as proxy:
        page = answered(person(), f"{dashboard(prometheus_url=proxy.url)}/?from=now-15m&to=now")
        assert page.locator(".st-key-progress-window .reading").count() == 0  # nothing of it stays
        before = page.locator(".obs .headline").first.bounding_box()
        proxy.fault = Fault(wait=1.5)
        page.get_by_role("button", name="Half a window back").click()
        page.wait_for_function(_COUNT)
        line = page.locator(".st-key-progress-window .reading")
        assert re.fullmatch(r"Reading the metrics of this window … \d of \d+ queries answered", line.inner_text().strip())
        assert page.locator(".obs .headline").first.bounding_box() == before
        proxy.fault = FINE
        line.wait_for(state="detached")

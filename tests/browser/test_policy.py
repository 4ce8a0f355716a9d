"""The browser is told what the pages may load and who may frame them, and no page asks for more."""

import urllib.request
from collections.abc import Callable

from playwright.sync_api import Browser, Page
from tests.browser.conftest import POLICY


def _headers(url: str) -> dict[str, str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return {name.lower(): value for name, value in answer.headers.items()}


def test_every_answer_carries_the_policy(sample: str) -> None:
    for path in ("/", "/kv", "/healthz", "/api/v1/diagnosis?from=2026-11-30T11:00:00Z&to=2026-11-30T11:10:00Z"):
        got = _headers(sample + path)
        assert got["content-security-policy"].startswith("default-src 'self'; script-src 'self'")
        assert got["content-security-policy"].endswith("frame-ancestors 'self'")
        assert "http" not in got["content-security-policy"]
        assert got["x-content-type-options"] == "nosniff"
        assert got["referrer-policy"] == "same-origin"


def test_what_the_policy_refuses_is_told_where_every_test_would_see_it(sample: str, chromium: Browser) -> None:
    page, told = chromium.new_page(), []
    page.on("console", lambda message: told.append(message.text) if POLICY in message.text else None)
    page.goto(f"{sample}/healthz")
    page.evaluate("document.body.innerHTML = '<img src=\"https://other.example/picture.png\">'")
    page.wait_for_timeout(500)
    page.close()
    assert len(told) == 1
    assert "other.example/picture.png" in told[0]


def test_a_page_of_another_origin_may_not_frame_it_unless_it_is_named(
    sample: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    page = person()
    page.route(
        "http://127.0.0.1:9999/", lambda route: route.fulfill(body=f"<iframe src='{sample}/healthz'></iframe>", content_type="text/html")
    )
    page.goto("http://127.0.0.1:9999/")
    page.wait_for_timeout(1500)
    assert [frame.url for frame in page.frames[1:]] == ["chrome-error://chromewebdata/"]
    named = dashboard(frame_ancestors="'self' https://grafana.example")
    assert _headers(f"{named}/healthz")["content-security-policy"].endswith("frame-ancestors 'self' https://grafana.example")

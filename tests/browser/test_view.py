"""The address bar holds the view: a link shows the same to everybody, and nothing that a person does loses it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, TimeoutError
from tests.browser.conftest import KV, answered, api, runs, states


def _query(page: Page) -> dict[str, list[str]]:
    return parse_qs(page.evaluate("location.search.slice(1)"))


def _wait_for(page: Page, name: str, value: str) -> None:
    page.wait_for_function("([name, value]) => new URLSearchParams(location.search).get(name) === value", arg=[name, value])


def test_the_shared_link_shows_the_same_verdicts_cold_in_another_browser(
    sample: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    sharer = answered(
        person(zone="America/New_York"), f"{sample}/?from=2026-11-30T11:17:30Z&to=2026-11-30T11:27:30Z&row=load_after_timeouts"
    )
    sharer.locator(".st-key-share button").first.click()
    link = sharer.locator("[data-testid=stPopoverBody] [data-testid=stCode]").first.inner_text()
    asked = parse_qs(urlsplit(link).query)
    assert asked["from"] == ["2026-11-30T11:17:30Z"]
    assert asked["to"] == ["2026-11-30T11:27:30Z"]
    assert (asked["tz"], asked["lang"], asked["row"]) == (["America/New_York"], ["en"], ["load_after_timeouts"])
    markdown = sharer.locator("[data-testid=stPopoverBody] [data-testid=stCode]").nth(1).inner_text()
    assert re.match(r"\[since 30 Nov 2026 06:20:\d\d America/New\\?_York, .*: Load increases after timeouts, Retries", markdown)
    assert markdown.endswith(f"]({link})")

    other = dashboard(prometheus_url="http://127.0.0.1:9")  # another process, another default source: the link names the recording
    reader = answered(person(zone="Asia/Tokyo", locale="es-ES"), link.replace(sample, other))
    assert states(reader) == states(sharer)
    assert reader.inner_text(".headline") == sharer.inner_text(".headline")
    reader.locator("[class*=st-key-card-applies-primary-load] svg.marks .mark-line path").first.wait_for()
    times = reader.locator("section.row.primary .when").first.inner_text()
    assert times.startswith("since 06:20:")  # the sharer's zone: both talk of the same minute


def test_the_link_is_copied_where_the_browser_allows(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(permissions=["clipboard-read", "clipboard-write"]), f"{sample}/?{KV}")
    page.locator(".st-key-share button").first.click()
    page.get_by_role("button", name="Copy", exact=True).first.click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("[data-testid=stPopoverBody] [data-testid=stCode]").first.inner_text()


def test_reload_page_change_back_and_forward_keep_the_view(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}&tz=Asia/Tokyo&instance=127.0.0.1:18000")
    page.get_by_role("link", name="Data").click()
    page.wait_for_selector(".obs .table")
    kept = {"from": ["2026-11-30T11:00:00Z"], "to": ["2026-11-30T11:10:00Z"], "tz": ["Asia/Tokyo"], "instance": ["127.0.0.1:18000"]}
    assert _query(page) == kept
    page.get_by_role("link", name="Diagnosis").click()
    page.wait_for_selector(".obs .strip")
    assert _query(page) == kept
    page.get_by_role("button", name="Half a window back").first.click()
    _wait_for(page, "from", "2026-11-30T10:55:00Z")
    page.go_back()
    _wait_for(page, "from", "2026-11-30T11:00:00Z")
    page.wait_for_function("document.querySelector('.headline').innerText.startsWith('Latency rises')")
    page.go_forward()
    _wait_for(page, "from", "2026-11-30T10:55:00Z")
    page.reload()
    page.wait_for_selector(".obs .strip")
    assert _query(page)["from"] == ["2026-11-30T10:55:00Z"]


def test_the_bar_changes_window_zone_language_and_scope(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}")
    page.get_by_role("button", name="Zoom out").first.click()
    _wait_for(page, "from", "2026-11-30T10:55:00Z")
    page.locator(".st-key-window button").first.click()
    page.get_by_label("From (UTC)").fill("2026-11-30 11:02:24")
    page.get_by_label("To (UTC)").fill("2026-11-30 11:08:55")
    page.get_by_role("button", name="Show this window").click()
    _wait_for(page, "from", "2026-11-30T11:02:24Z")
    assert _query(page)["to"] == ["2026-11-30T11:08:55Z"]
    page.wait_for_function("document.querySelector('.st-key-window').innerText.includes('11:02:24 – 11:08:55')")
    page.keyboard.press("Escape")
    page.get_by_label("From (UTC)").wait_for(state="hidden")
    page.locator(".st-key-window button").first.click()
    page.get_by_label("From (UTC)").fill("yesterday-ish")
    page.get_by_role("button", name="Show this window").click()
    page.get_by_text("yesterday-ish is no time").wait_for()
    assert _query(page)["from"] == ["2026-11-30T11:02:24Z"]
    page.keyboard.press("Escape")
    page.locator(".st-key-scope button").first.click()
    page.locator("[data-testid=stPopoverBody] [data-testid=stMultiSelect]").last.locator("input").click()
    page.get_by_role("option", name="127.0.0.1:18000").click()
    _wait_for(page, "replica", "127.0.0.1:18000")
    page.keyboard.press("Escape")
    page.locator(".st-key-reader button").first.click()
    page.get_by_role("button", name="Español").or_(page.get_by_role("radio", name="Español")).click()
    _wait_for(page, "lang", "es")
    page.wait_for_function("document.querySelector('.headline').innerText.startsWith('La latencia')")


def test_a_live_view_refreshes_by_itself_and_a_pinned_one_does_not(
    live: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    base = dashboard(prometheus_url=live)
    page = answered(person(), f"{base}/?from=now-15m&to=now")
    assert page.locator(".st-key-window").inner_text().count("LIVE") == 1
    page.locator(".st-key-reader button").first.click()
    for patience in (8_000, 30_000):
        page.get_by_role("button", name="15 s").or_(page.get_by_role("radio", name="15 s")).click()
        with suppress(TimeoutError):
            page.wait_for_function("location.search.includes('refresh=15s')", timeout=patience)
            break
    page.keyboard.press("Escape")
    first, axis = _age(page), page.inner_html(".strip .ticks")
    page.wait_for_function("before => document.querySelector('.strip .ticks').innerHTML !== before", arg=axis)  # the window moved
    assert _age(page) > first  # the recording has ended: what is shown grows old, and counts on between two refreshes
    shown = page.inner_text(".age")
    page.wait_for_function("before => document.querySelector('.age').innerText !== before", arg=shown, timeout=4000)
    assert parse_qs(urlsplit(page.url).query) == {"from": ["now-15m"], "to": ["now"], "refresh": ["15s"]}
    for patience in (10_000, 30_000):  # a click in the moment of a refresh may be lost
        page.get_by_role("link", name="Queue", exact=True).click()  # the wish stays, over the pages and a reload
        with suppress(TimeoutError):
            page.wait_for_function("location.pathname === '/queue'", timeout=patience)
            break
    page.wait_for_function("location.search.includes('refresh=15s')")
    page.reload()
    page.wait_for_selector(".obs .said .headline")
    page.locator(".st-key-reader button").first.click()
    page.wait_for_selector("[data-testid=stPopoverBody] [aria-checked=true] >> text=15 s")

    found = api(base, "from=now-15m&to=now")["window"]
    pinned = person()
    pinned.clock.install()
    answered(pinned, f"{base}/?from={found['from']}&to={found['to']}")
    assert pinned.locator(".st-key-window").inner_text().count("PINNED") == 1
    pinned.wait_for_selector("[data-testid=stStatusWidget]", state="detached")  # a run that still draws says so there
    page.close()
    before = runs(base)
    pinned.clock.fast_forward(60_000)
    pinned.wait_for_timeout(2500)
    assert runs(base) == before  # a live page would have been drawn again


def _age(page: Page) -> float:
    words = re.search(r"newest sample (?:(\d+) min)? ?(?:(\d+) s)? old", page.inner_text(".age").replace("\u00a0", " "))
    assert words is not None
    return 60 * int(words[1] or 0) + int(words[2] or 0)


def test_without_a_scope_each_namespace_has_a_line_the_worst_first(
    two_namespaces: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    page = answered(person(), f"{dashboard(prometheus_url=two_namespaces)}/?from=now-30m&to=now")
    lines = page.locator(".fleet-line")
    assert [line.split("\n")[1] for line in lines.all_inner_texts()] == ["busy · llama", "calm · llama"]
    lines.first.click()
    page.wait_for_selector(".obs .strip")
    page.wait_for_function("location.search.includes('namespace=busy')")
    assert _query(page)["from"] == ["now-30m"]
    assert page.locator(".fleet-line").count() == 0

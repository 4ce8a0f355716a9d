"""Where a person went wrong the page says so and offers the way out: a filter, an address, a typed window, a source that fell silent."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import KV, answered, none_is_judged, states


def _open_window(page: Page) -> None:
    boxes = "() => document.querySelectorAll('input[aria-label=\"To (UTC)\"]').length"
    page.wait_for_function(f"({boxes})() === 0")  # another window closes it
    page.locator(".st-key-window button").first.click()
    page.wait_for_timeout(2000)  # opening it draws it once more
    page.wait_for_function(f"({boxes})() === 1")


def _wait_for(page: Page, name: str, value: str) -> None:
    page.wait_for_function("([name, value]) => new URLSearchParams(location.search).get(name) === value", arg=[name, value])


def test_a_filter_that_matches_nothing_is_named_and_can_be_removed(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}&namespace=r2-1&utm_source=mail")
    assert page.inner_text(".headline") == "There is no series with namespace=r2-1 in this window."
    assert "utm_source" not in page.inner_text(".stApp")
    assert {state for _, state in states(page)} == {"unknown"}
    page.get_by_role("link", name="Remove the filter").click()
    page.locator(".headline", has_text="Latency rises").wait_for()
    assert "namespace" not in page.url


def test_every_label_in_force_is_a_chip_that_removes_it(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}&instance=127.0.0.1:18000&foo=bar")
    assert page.locator("[class*=st-key-chip-]").count() == 2
    page.get_by_role("button", name="foo=bar").click()
    page.wait_for_function("!location.search.includes('foo')")
    page.locator(".headline", has_text="Latency rises").wait_for()
    assert "instance=" in page.url


def test_an_address_that_is_no_page_is_said_in_the_readers_language(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(locale="es-ES"), f"{sample}/nothere?{KV}")
    assert page.inner_text(".notes") == "No hay ninguna página /nothere; este es el diagnóstico."
    assert page.locator("[role=dialog]").count() == 0
    page.wait_for_function("document.documentElement.lang === 'es'")  # a script in the page says it, a moment after it is drawn
    assert page.title() == "La latencia aumenta sin errores · obs"


def test_enter_applies_a_typed_window_every_time_and_what_was_typed_can_be_put_right(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}")
    for minute in ("06", "07", "08", "09"):
        _open_window(page)
        page.get_by_label("To (UTC)").fill(f"2026-11-30 11:{minute}:30")
        page.get_by_label("To (UTC)").press("Enter")
        _wait_for(page, "to", f"2026-11-30T11:{minute}:30Z")
        page.wait_for_function("m => document.querySelector('.st-key-window').innerText.includes(`– 11:${m}:30`)", arg=minute)
    _open_window(page)
    page.get_by_label("To (UTC)").fill("2026-11-30 10:09:30")
    page.get_by_label("To (UTC)").press("Enter")
    page.wait_for_selector(".obs .failed")
    none_is_judged(page)
    _open_window(page)
    assert page.get_by_label("From (UTC)").input_value() == "2026-11-30 11:00:00"
    assert page.get_by_label("To (UTC)").input_value() == "2026-11-30 10:09:30"
    page.get_by_label("From (UTC)").fill("https://grafana.example/d/x?orgId=1&from=1796036400000&to=1796037000000")  # both at once
    page.get_by_label("From (UTC)").press("Enter")
    page.wait_for_selector(".obs .strip")
    _wait_for(page, "from", "2026-11-30T11:00:00Z")
    _wait_for(page, "to", "2026-11-30T11:10:00Z")


def test_a_wall_screen_has_no_bar(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}&kiosk=1")
    page.locator(".st-key-share").wait_for(state="hidden")
    page.get_by_role("link", name="Data").wait_for(state="hidden")
    page.locator(".obs .age").wait_for()

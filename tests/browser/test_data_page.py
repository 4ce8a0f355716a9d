"""The Data page on the sample: what can be judged, what the figures rest on, and which row suffers without what is missing."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import KV, too_wide
from tests.browser.test_load_pages import figures, words


def opened(page: Page, url: str) -> Page:
    """Opens the page and waits for its tables."""
    page.goto(url)
    page.wait_for_selector(".table.signals td code")
    return page


def test_what_cannot_be_judged_is_the_first_thing_said(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/data?{KV}")
    assert words(page, ".said .headline") == "In part: three of the four rows can be judged, and “GPU out-of-memory error” cannot."
    shown = figures(page)
    assert shown["Scrape interval"] == "5 s"
    assert shown["Scrapes that failed"] == "0 %"
    assert shown["Clock difference"] == "–"  # a recording has none: no figure is not 0
    first = page.locator(".table.signals tbody tr").first
    assert first.locator("td").first.inner_text() == "GPU out-of-memory events"
    assert first.locator(".suffers.needed").inner_text() == "GPU out-of-memory error: unknown"
    kv = page.locator(".table.signals tr", has_text="KV cache use")
    assert kv.locator("code").inner_text() == "vllm:kv_cache_usage_perc"
    assert "also looked for: vllm:gpu_cache_usage_perc" in kv.inner_text()
    assert "version 0.32 or newer" in words(page, "dl.about")


def test_it_fits_390_pixels_in_spanish(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(width=390, locale="es-ES"), f"{sample}/data?{KV}")
    assert words(page, ".said .headline").startswith("En parte: se pueden evaluar tres de las cuatro filas")
    assert too_wide(page) == []


def test_without_its_source_the_page_says_so_and_lists_nothing(dashboard: Callable[..., str], person: Callable[..., Page]) -> None:
    page = person()
    page.goto(f"{dashboard(prometheus_url='http://127.0.0.1:9')}/data")
    assert "refused the connection" in words(page, ".failed")
    assert page.locator(".table.signals").count() == 0

"""The wall screen: all four rows on one screen, nothing to click, and it stays within 1920 by 1080."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import KV, answered, states, too_wide


def test_the_four_rows_of_an_incident_fit_a_wall_screen_without_controls(sample: str, person: Callable[..., Page]) -> None:
    page = person(width=1920)
    page.set_viewport_size({"width": 1920, "height": 1080})
    answered(page, f"{sample}/?{KV}&kiosk=1")
    page.wait_for_function("document.querySelectorAll('section.row').length === 4")
    assert [state for _name, state in states(page)] == ["unknown", "applies", "applies", "clear"]
    last = page.locator("section.row .state").last.bounding_box()
    assert last is not None
    assert last["y"] + last["height"] <= 1080
    assert page.locator("button:visible").count() == 0
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('.headline')).fontSize)") >= 40
    assert too_wide(page) == []

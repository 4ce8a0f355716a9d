"""The wall screen: all four rows on one screen, nothing to click, and it stays within 1920 by 1080."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

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


def test_a_page_on_a_wall_screen_has_its_question_over_its_answer_and_nothing_to_click(sample: str, person: Callable[..., Page]) -> None:
    page = person(width=1920)
    page.goto(f"{sample}/first-token?{KV}&kiosk=1")
    page.locator(".obs .said .headline").wait_for()
    page.locator("svg.marks .mark-line path").first.wait_for()
    question, answer = (page.locator(f".obs {name}").first.bounding_box() for name in (".question", ".said .headline"))
    assert question is not None
    assert answer is not None
    assert question["y"] + question["height"] <= answer["y"]
    assert page.locator("button:visible").count() == 0


def test_a_wall_screen_turns_to_the_next_page_after_its_seconds_and_keeps_the_view(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(width=1920), f"{sample}/?{KV}&kiosk=10")
    began = time.monotonic()
    page.wait_for_function("location.pathname === '/kv'")
    assert 5 < time.monotonic() - began < 25
    page.wait_for_function("document.querySelector('.obs .said .headline')?.innerText.startsWith('Yes: KV space is short')")
    assert parse_qs(urlsplit(page.url).query) == {**parse_qs(KV), "kiosk": ["10"]}
    page.wait_for_function("location.pathname === '/queue'")
    assert page.locator("button:visible").count() == 0

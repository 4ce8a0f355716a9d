"""The retries page on the sample's retry storm and abandoned work: the answer, the budgets, the parts, and the calculator."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect
from tests.browser.conftest import too_wide
from tests.browser.test_load_pages import figures, opened, words

STORM = "from=2026-11-30T11:18:00Z&to=2026-11-30T11:27:00Z"
NOBODY = "from=2026-11-30T11:38:00Z&to=2026-11-30T11:43:00Z"


def test_the_page_says_that_work_is_done_twice_and_for_nobody(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/retries?{STORM}")
    assert words(page, ".said .headline") == (
        "Yes, both: each request becomes up to 3.8 attempts, and 90 % of the generated tokens reach nobody, "
        "from 11:20:05 to 11:26:45, 7 min long."
    )
    assert "the engines count 0 aborts. That alone proves nothing" in words(page, ".advice")
    shown = figures(page)
    assert shown["Attempts for each request, most"] == "3.8 x"
    assert shown["Time-outs"] == "17,555"
    assert shown["Retries refused or used up"] == "13"
    assert shown["Tokens made for nobody"] == "88 %"
    assert "13 refused by a budget, 0 used up" in words(page, ".obs .stats")
    ratio = page.locator(".st-key-panel-retry-ratio svg.marks")
    assert "budgets: client 10 %, gateway 20 %" in (ratio.text_content() or "").replace("\u00a0", " ")
    assert ratio.locator(".mark-rule line[stroke-dasharray='5,4']").count() == 2
    layer = page.locator(".layers tbody tr").inner_text().replace("\u00a0", " ").split("\t")
    assert layer == ["Envoy", "18,392", "12,936", "3.4 x", "3.8 x"]


def test_what_if_tells_the_worst_and_the_measured_rate(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/retries?{STORM}")
    box = page.locator(".st-key-panel-what-if")
    assert "95 % of the attempts fail" in box.inner_text().replace("\u00a0", " ")
    for label, value in (("Layers that retry", "3"), ("Retries of each", "3"), ("Attempts that fail, in %", "50")):
        box.get_by_label(label).fill(value)
        box.get_by_label(label).press("Enter")
    made = box.locator(".stat .big")
    expect(made.nth(1)).to_have_text(re.compile(r"^\s*2\s*x"), timeout=30_000)  # the last of three runs
    assert [" ".join(each.split()) for each in made.all_inner_texts()[:4]] == ["64 x", "2 x", "0 %", "1.1 x"]
    assert "what-if" not in page.evaluate("location.search")


def test_abandoned_work_fits_390_pixels_in_spanish(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(width=390, locale="es-ES"), f"{sample}/retries?{NOBODY}")
    assert words(page, ".said .headline").startswith("Sí, para nadie: el 88 % ")
    assert words(page, ".advice").startswith("Cancela el trabajo abandonado")
    assert too_wide(page) == []

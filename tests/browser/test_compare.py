"""The Compare page on the sample recording: figures of both windows, the two diagnoses, and a trial, all in the link."""

from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import too_wide

PRESSURE = "from=2026-11-30T11:02:00Z&to=2026-11-30T11:08:30Z"
PREFILL = "compare_from=2026-11-30T11:10:30Z&compare_to=2026-11-30T11:16:30Z"


def _opened(page: Page, url: str) -> Page:
    page.goto(url)
    page.wait_for_selector(".obs .said .headline")
    page.wait_for_selector(".sides")
    return page


def _lines(page: Page) -> dict[str, list[str]]:
    rows = page.locator(".contrasts").first.locator("tbody tr")
    return {
        cells[0]: [cell.replace("\u00a0", " ") for cell in cells[1:]]
        for cells in (row.locator("td").all_inner_texts() for row in rows.all())
    }


def test_two_windows_are_compared_figure_by_figure(sample: str, person: Callable[..., Page]) -> None:
    page = _opened(person(), f"{sample}/compare?{PRESSURE}&{PREFILL}")
    page.locator(".contrasts").first.wait_for()
    assert not too_wide(page)
    assert page.inner_text(".said .headline") == "What rose most: Preemptions."
    lines = _lines(page)
    assert lines["KV cache use"][:2] == ["5.2 %", "97 %"]
    assert lines["KV cache use"][3:] == ["large (1)", "6 / 6"]
    assert lines["Time to first token"][1] == "13.6 s"
    sides = page.locator(".sides .side").all_inner_texts()
    assert "Slow first token" in sides[0]
    assert "Latency rises without errors since 11:01:50." in sides[1]
    page.locator(".sides a").first.click()
    page.locator(".headline", has_text="Slow first token").wait_for()
    assert "2026-11-30T11%3A10%3A30Z" in page.url
    assert "compare_from" not in page.url


def test_a_trial_says_what_it_rests_on_and_stands_in_the_link(sample: str, person: Callable[..., Page]) -> None:
    times = "from=2026-11-30T11:10:30Z&to=2026-11-30T11:16:30Z&compare_from=2026-11-30T11:02:00Z&compare_to=2026-11-30T11:08:30Z"
    page = _opened(person(), f"{sample}/compare?{times}&change=lower_admission")
    page.locator(".trial").wait_for()
    assert page.inner_text(".said .headline") == "Inconclusive."
    assert "The load was not the same" in page.inner_text(".said .advice")
    assert "Prompt length: different." in page.inner_text(".trial")
    page.locator(".st-key-versus").get_by_text("the stretch before").click()
    page.wait_for_function("location.search.includes('compare_from=2026-11-30T11%3A04%3A30Z')")
    assert "change=lower_admission" in page.url


def test_windows_that_are_too_short_are_said_to_be(sample: str, person: Callable[..., Page]) -> None:
    page = _opened(person(locale="es-ES"), f"{sample}/compare?from=2026-11-30T11:02:00Z&to=2026-11-30T11:04:00Z")
    page.locator(".sides").wait_for()
    assert page.inner_text(".said .headline") == "Estas ventanas no se pueden comparar."

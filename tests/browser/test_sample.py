"""Without any setting a newcomer sees rows of the table apply, with real figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import KV, answered, api, states, too_wide

from obs.language import quantity_text
from obs.text import Quantity

# What was done to the server, and the row that the recording's makers say it is.
INCIDENTS = [
    ("KV pressure", "Latency rises without errors"),
    ("Slow prefill", "Slow first token"),
    ("Retry storm", "Load increases after timeouts"),
    ("Slow tokenization", "Slow first token"),
    ("Slow network", "Slow first token"),
    ("Slow queue", "Slow first token"),
]


def test_the_dashboard_opens_on_the_kv_pressure_of_the_sample(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), sample)
    assert [name for name, _ in states(page)] == [
        "GPU out-of-memory error",
        "Latency rises without errors",
        "Slow first token",
        "Load increases after timeouts",
    ]
    assert dict(states(page))["Latency rises without errors"] == "applies"
    assert dict(states(page))["GPU out-of-memory error"] == "unknown"  # no GPU was there: never clear
    assert page.locator("section.row.primary").count() == 1
    assert page.inner_text(".headline") == api(sample)["headline"]
    assert "OBS_PROMETHEUS_URL" in page.inner_text(".sample")


def test_every_figure_on_the_page_is_the_one_that_the_api_gives(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}&row=latency_without_errors")
    found = api(sample, KV)["rows"][1]["evidence"]
    pieces = page.locator(".piece")
    pieces.nth(len(found) - 1).wait_for()
    assert pieces.count() == len(found) > 5
    for number, evidence in enumerate(found):
        shown = pieces.nth(number).locator(".figure").inner_text().replace("\u00a0", " ")
        value = float("nan") if evidence["value"] is None else evidence["value"]
        assert shown == quantity_text(Quantity(value, evidence["unit"])), evidence["signal"]
    closed = page.locator("section.row.primary .line").first
    assert closed.locator(".title").inner_text().endswith("KV cache use")
    assert closed.locator(".figure").inner_text().replace("\u00a0", " ") == "100 %"


@pytest.mark.parametrize(("incident", "row"), INCIDENTS)
def test_each_incident_is_one_click_away_and_its_row_applies(sample: str, person: Callable[..., Page], incident: str, row: str) -> None:
    page = answered(person(), f"{sample}/?from=2026-11-30T11:46:00Z&to=2026-11-30T11:47:00Z")
    page.get_by_role("button", name=incident, exact=True).click()
    page.wait_for_function("row => document.querySelector('section.row.primary .name')?.innerText === row", arg=row)
    window = page.evaluate("location.search.slice(1)")
    assert page.inner_text(".headline") == api(sample, window)["headline"]


def test_a_quiet_window_shows_no_row_that_applies(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?from=2026-11-30T11:45:00Z&to=2026-11-30T11:46:30Z")
    assert "applies" not in dict(states(page)).values()
    assert page.locator("section.row.primary").count() == 0


def test_opening_a_row_draws_its_charts_and_gives_the_promql_to_copy(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(zone="America/New_York"), f"{sample}/?{KV}&tz=Asia/Tokyo")
    assert page.locator("[data-testid=stVegaLiteChart]").count() == 0  # charts only for what is open
    card = page.locator("[class*=st-key-card-applies-primary]")
    summary = card.locator("summary")
    summary.focus()
    page.keyboard.press("Enter")
    card.locator("svg.marks .mark-line path").first.wait_for()
    page.wait_for_function("location.search.includes('row=latency_without_errors')")
    ticks = card.locator("svg.marks").first.locator(".role-axis-label text").all_text_contents()
    assert "20:05" in ticks  # 11:05 UTC in the chosen zone, whatever the browser's
    assert "threshold" in card.locator("svg.marks").first.text_content()
    assert "onset 20:0" in card.locator("svg.marks").first.text_content()
    card.get_by_text("PromQL", exact=True).first.click()  # folded away: a long query buries the figure
    code = card.locator("[data-testid=stCode]").first.inner_text()
    assert code == api(sample, KV)["rows"][1]["evidence"][0]["promql"]
    assert "vllm:e2e_request_latency_seconds" in card.inner_text()


@pytest.mark.parametrize("page_name", ["", "data"])
def test_at_390_pixels_nothing_scrolls_sideways_and_the_bar_is_folded(sample: str, person: Callable[..., Page], page_name: str) -> None:
    page = person(width=390)
    page.goto(f"{sample}/{page_name}?{KV}&row=slow_first_token")
    page.wait_for_selector(".obs .strip, .obs .table")
    if not page_name:
        page.wait_for_selector("svg.marks .mark-line path")
    assert too_wide(page) == []
    assert not page.locator(".st-key-bar").is_visible()
    page.locator(".fold summary").click()
    page.locator(".st-key-window button").first.click()
    page.get_by_text("Show this window").wait_for()
    assert too_wide(page) == []


def test_spanish_comes_from_the_browser_and_from_the_link(sample: str, person: Callable[..., Page]) -> None:
    for page in (answered(person(locale="es-ES"), f"{sample}/?{KV}"), answered(person(), f"{sample}/?{KV}&lang=es")):
        assert [name for name, _ in states(page)] == [
            "Error por falta de memoria en GPU",
            "La latencia aumenta sin errores",
            "Primer token lento",
            "La carga aumenta tras los tiempos de espera agotados",
        ]
        assert page.inner_text(".headline") == api(sample, f"{KV}&lang=es")["headline"]
        assert "2,2" in page.inner_text("section.row.primary")  # preemptions a second, with a decimal comma
    assert answered(person(locale="es-ES"), f"{sample}/?{KV}&lang=en").inner_text(".headline").startswith("Latency rises")

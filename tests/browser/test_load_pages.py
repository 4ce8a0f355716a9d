"""The KV cache and queue pages on the sample's KV pressure: their figures, their charts, and what a person can take away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page
from tests.browser.conftest import KV, drag, too_wide


def opened(page: Page, url: str) -> Page:
    """Opens a page beside the diagnosis and waits for its answer and its last chart."""
    page.goto(url)
    page.wait_for_selector(".obs .thin")
    page.wait_for_selector(".obs .said .headline")
    page.wait_for_selector("svg.marks .mark-line path")
    return page


def words(page: Page, selector: str) -> str:
    """What stands there; a figure's unit is not broken off its figure, which a comparison need not know."""
    return page.inner_text(selector).replace("\u00a0", " ")


def figures(page: Page) -> dict[str, str]:
    """The large figures by title."""
    found = page.eval_on_selector_all(
        ".obs .stat", "all => all.map(s => [s.querySelector('.label').textContent, s.querySelector('.big').innerText])"
    )
    return {title: " ".join(figure.split()) for title, figure in found}


def test_the_kv_page_says_that_space_is_short_and_for_whom(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/kv?{KV}")
    assert words(page, ".said .headline") == "Yes: KV space is short on 127.0.0.1:18000, from 11:02:35 to 11:08:55, 6 min long."
    shown = figures(page)
    assert shown["KV cache use, fullest replica"] == "100 %"
    assert shown["Preemptions, highest"] == "2.9 /s"
    assert shown["Preemptions per completed request"] == "0.76"
    assert shown["Waiting requests, highest"] == "67"
    assert shown["KV cache capacity"] == "25,600 tokens"
    assert "requests were preempted 781 times while up to 67 waited" in words(page, ".advice")
    assert page.locator(".table.fits tbody tr").nth(2).inner_text().replace("\u00a0", " ").split("\t")[1:] == [
        "at most 500 tokens",
        "at least 51",
        "at least 27",
    ]
    relation = page.locator(".st-key-panel-relation-kv-use")
    relation.locator("svg.marks .mark-symbol path").first.wait_for()
    assert "rank correlation 0.95, from 10 pairs" in relation.inner_text()
    assert relation.locator("svg.marks .mark-symbol path").count() == 10


def test_a_drag_over_a_chart_sets_the_window_of_every_page(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(zone="America/New_York"), f"{sample}/kv?{KV}&tz=Asia/Tokyo")
    chart = page.locator(".st-key-panel-kv-use [data-testid=stVegaLiteChart]")
    assert "20:05" in chart.locator(".role-axis-label text").all_text_contents()
    assert "onset 20:01:50" in (chart.locator("svg.marks").text_content() or "")
    drag(page, chart, 0.4, 0.7)
    page.wait_for_function("location.search.includes('from=2026-11-30T11%3A03')")  # on Tokyo's clock 20:03
    page.wait_for_function("document.querySelector('.st-key-window')?.innerText.includes('20:03')")
    page.get_by_role("link", name="Queue").click()
    page.wait_for_function("document.querySelector('.question')?.innerText.startsWith('Is more work')")
    assert "from=2026-11-30T11%3A03" in page.evaluate("location.search")


def test_promql_and_the_drawn_figures_can_be_taken_away(sample: str, person: Callable[..., Page], tmp_path: Path) -> None:
    page = opened(person(), f"{sample}/kv?{KV}")
    row = page.locator(".st-key-take-kv-use")
    assert row.locator("code").inner_text() == "vllm:kv_cache_usage_perc"
    row.get_by_role("button").click()
    body = page.locator("[data-testid=stPopoverBody]")
    assert body.locator("[data-testid=stCode]").inner_text().startswith("max by (")
    assert body.get_by_role("link").count() == 0  # a recording has no Prometheus to open
    with page.expect_download() as download:
        body.get_by_role("button", name="The figures drawn, as CSV").click()
    path = tmp_path / "kv.csv"
    download.value.save_as(path)
    lines = path.read_text().splitlines()
    assert lines[0] == "time,127.0.0.1:18000 [ratio]"
    assert len(lines) == 1 + 121  # ten minutes, every five seconds, both ends
    assert max(float(line.split(",")[1]) for line in lines[1:]) == 1.0


def test_the_queue_page_says_that_more_is_admitted_than_finished(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/queue?{KV}")
    assert words(page, ".said .headline") == (
        "Yes: requests queue up on 127.0.0.1:18000, from 11:02:35 to 11:08:50, 6 min long; up to 67 wait. "
        "While it grew, 1.2 /s were admitted and 0.88 /s completed."
    )
    assert "KV space is short meanwhile" in words(page, ".advice")
    shown = figures(page)
    assert shown["Waiting requests, highest"] == "67"
    assert shown["Running on one replica, highest"] == "64"
    assert shown["Until the queue is empty"] == "0 s"
    assert shown["Rejected at admission"] == "0"
    assert "highest seen: 64" in (page.locator(".st-key-panel-running svg.marks").text_content() or "")


def test_both_pages_fit_390_pixels_in_spanish(sample: str, person: Callable[..., Page]) -> None:
    page = person(width=390, locale="es-ES")
    for name, answer in (("kv", "Sí: falta espacio de KV"), ("queue", "Sí: las solicitudes hacen cola")):
        opened(page, f"{sample}/{name}?{KV}")
        assert words(page, ".said .headline").startswith(answer)
        assert too_wide(page) == []


def test_an_overload_without_kv_pressure_is_not_the_kv_caches(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/kv?from=2026-11-30T11:47:02Z&to=2026-11-30T11:50:35Z")
    assert words(page, ".said .headline") == "No: KV cache use stays under 90 %; it reached 24 % on 127.0.0.1:18000."
    assert "not for KV space" in words(page, ".advice")

"""The first token page on the sample's slow prefill and slow network: the answer, the stages, the objectives and the distribution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page
from tests.browser.conftest import too_wide
from tests.browser.test_load_pages import figures, opened, words

PREFILL = "from=2026-11-30T11:10:00Z&to=2026-11-30T11:20:00Z"
NETWORK = "from=2026-11-30T11:32:00Z&to=2026-11-30T11:38:00Z"


def test_the_page_says_that_prefill_is_slow_and_that_it_holds_up_the_others(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/first-token?{PREFILL}")
    assert words(page, ".said .headline") == (
        "Prefill: 0.27 s of the 0.41 s to the first token on 127.0.0.1:18000, from 11:11:40 to 11:17:45, 6 min long."
    )
    advice = words(page, ".advice")
    assert "whether 99 % are within 2 s cannot be told, the buckets have edges at 1 s and 2.5 s only" in advice
    assert "the slowest tokens (p99) take 0.16 s, with 171 tokens/s 46 ms: 3.5 x as long. Test chunked prefill" in advice
    shown = {title.replace("\u00a0", " "): figure for title, figure in figures(page).items()}
    assert shown["Slow stage: prefill"] == "0.27 s"
    assert shown["Time to first token, p95"] == "1.5 s"
    assert shown["First tokens within 2 s"] == "92 %"
    assert shown["Requests within 0.2 s a token"] == "99.8 %"
    scatter = page.locator(".st-key-panel-interference")
    scatter.locator("svg.marks .mark-symbol path").first.wait_for()
    assert "rank correlation 0.83, from 10 pairs" in scatter.inner_text()
    assert scatter.locator("svg.marks .mark-symbol path").count() == 10


def test_the_drawn_stages_add_up_and_the_distribution_can_be_taken_away(
    sample: str, person: Callable[..., Page], tmp_path: Path
) -> None:  # fmt: skip
    page = opened(person(), f"{sample}/first-token?{PREFILL}")
    fields = page.locator(".st-key-panel-spread svg.marks .mark-rect path[fill='#3b8fd4']")
    fields.first.wait_for()
    assert fields.count() == 414  # what is empty is not drawn
    marks = (page.locator(".st-key-panel-spread svg.marks").text_content() or "").replace("\u00a0", " ")
    assert "objective 2 s" in marks
    heads, rows = taken(page, "stages", tmp_path)
    assert heads == ["time", *(f"{stage} [seconds]" for stage in ("queue", "prefill", "tokenization and front end", "network"))]
    means = taken(page, "ttft-replicas", tmp_path)[1]
    sums = {at: sum(float(part) for part in parts[:3]) for at, *parts in rows}
    for at, mean in means:
        assert abs(sums[at] - float(mean)) < 1e-3 * float(mean)
    heads, rows = taken(page, "spread", tmp_path)
    assert heads[-1] == "1 s – 2.5 s [ratio]"
    assert all(abs(sum(map(float, parts)) - 1) < 1e-4 for _at, *parts in rows)


def taken(page: Page, key: str, folder: Path) -> tuple[list[str], list[list[str]]]:
    """Head and lines of a panel's CSV."""
    page.locator(f".st-key-take-{key}").get_by_role("button").click()
    with page.expect_download() as download:
        page.locator("[data-testid=stPopoverBody]").get_by_role("button", name="The figures drawn, as CSV").click()
    download.value.save_as(folder / key)
    page.keyboard.press("Escape")
    page.locator("[data-testid=stPopoverBody]").wait_for(state="detached")
    head, *lines = (folder / key).read_text().splitlines()
    return head.split(","), [line.split(",") for line in lines]


def test_a_slow_network_fits_390_pixels_in_spanish(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(width=390, locale="es-ES"), f"{sample}/first-token?{NETWORK}")
    assert words(page, ".said .headline").startswith("La red: 1,2 s además de los 22 ms")
    assert figures(page)["Etapa lenta: red"] == "1,2 s"
    assert too_wide(page) == []

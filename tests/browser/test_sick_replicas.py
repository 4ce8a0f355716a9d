"""The replicas page in a browser: the sick one, the table of many, the heat map, and the way to one replica."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import _until_now, too_wide
from tests.browser.test_load_pages import figures, opened, words
from tests.recordings import Recording

FIELDS = ".st-key-panel-heat svg.marks .mark-rect.role-mark path"


def lines(page: Page) -> list[list[str]]:
    """The cells of the table, line by line."""
    return page.eval_on_selector_all(
        ".table.replicas tbody tr", "rows => rows.map(r => [...r.children].map(c => c.innerText.replace(/\\u00a0/g, ' ').trim()))"
    )  # type: ignore[no-any-return]


def test_a_crash_is_a_restart_and_a_gap(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/replicas?from=2026-11-30T11:52:35Z&to=2026-11-30T11:57:35Z")
    assert words(page, ".said .headline") == "One replica is in view, 127.0.0.1:18000: restarted (1 time in this window)."
    assert figures(page)["Restarts"] == "1"
    (line,) = lines(page)
    assert line[:3] == ["127.0.0.1:18000", "restarted", "1 time in this window"]
    assert line[8:] == ["1", "0.32 or later"]
    assert (
        "not p95 of each replica: a recording holds the buckets of all replicas together."
        in page.locator(".st-key-panel-replicas").inner_text()
    )
    page.locator(FIELDS).first.wait_for(state="attached")
    assert page.locator(FIELDS).count() == 61 - 8  # a field every five seconds, and none while nothing was scraped


def test_the_doubtful_one_of_two_leads_to_its_own_diagnosis(
    two_namespaces: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    base = dashboard(prometheus_url=two_namespaces)
    page = opened(person(), f"{base}/replicas?from=now-40m")
    assert words(page, ".said .headline") == "Perhaps busy-0: suspected (Latency rises without errors)."  # errors are not measured
    found = lines(page)
    assert [line[:2] for line in found] == [["busy-0", "suspected"], ["calm-0", "works"]]
    assert found[0][3:6] == ["100 %", "60", "60"]
    assert found[1][3:6] == ["30 %", "0", "2"]
    assert found[1][7] == "not measured"
    page.locator(".table.replicas").get_by_role("link", name="busy-0").click()
    page.wait_for_selector("section.row.suspected")
    assert "replica=busy-0" in page.evaluate("location.search")
    assert page.evaluate("location.pathname") == "/"


def test_many_replicas_are_turned_over_found_and_opened_from_the_map(
    backfill: Callable[[str], str], dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    recording = Recording(1200, scrape=60)
    for number in range(60):
        use = 0.9 if number == 41 else 0.3
        pod = f"llama-{number:02d}"
        labels = {"job": "vllm", "namespace": "prod", "pod": pod, "instance": f"{pod}:8000", "model_name": "llama", "engine": "0"}
        recording.vllm(pod, kv_cache_usage_perc=lambda age, use=use: use - age % 120 / 12000)
        recording.mean("vllm:time_to_first_token_seconds", labels, 0.5, 1.0)
    base = dashboard(prometheus_url=backfill(_until_now(recording)))
    page = opened(person(), f"{base}/replicas?from=now-20m")
    assert words(page, ".said .headline") == ("None is in trouble, but llama-41 stands out: KV cache use 90 %, the median of all 30 %.")
    assert len(lines(page)) == 25
    assert lines(page)[0][:2] == ["llama-41", "stands out"]
    assert page.locator(".table.replicas th[scope=col]").all_inner_texts()[7] == "TTFT, p95"
    assert {line[7] for line in lines(page)} <= {"0.95 s", "0.96 s"}  # all between 0.1 s and 1 s: 95 % of the way
    page.get_by_role("button", name="Next").click()
    page.wait_for_function("document.querySelector('.st-key-replicas-turn').innerText.includes('26 to 50 of 60')")
    page.get_by_label("Find a replica").fill("-07")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('.table.replicas tbody tr').length === 1")
    assert lines(page)[0][0] == "llama-07"
    labels = page.locator(".st-key-panel-heat svg.marks .role-axis-label text").all_text_contents()
    assert next(label for label in labels if label.startswith("…")) == "…41"
    assert "31 to 33" in labels
    page.locator(".st-key-panel-heat [data-testid=stVegaLiteChart]").click(position={"x": 700, "y": 9})  # the first line
    page.wait_for_function("location.search.includes('replica=llama-41')")
    page.wait_for_function("document.querySelector('.said .headline')?.innerText.startsWith('One replica is in view, llama-41')")


def test_the_page_fits_390_pixels_in_spanish(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(width=390, locale="es-ES"), f"{sample}/replicas?from=2026-11-30T11:00:00Z&to=2026-11-30T11:10:00Z")
    assert words(page, ".said .headline").startswith("Hay una réplica a la vista, 127.0.0.1:18000: tuvo problemas (La latencia aumenta")
    assert "Uso de KV" in page.locator(".table.replicas td[data-head]").first.evaluate("e => e.dataset.head")
    assert too_wide(page) == []

"""The timeline page on the sample, whose 68 minutes hold all its incidents, and on a Prometheus with two days and an alert."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import answered, drag, too_wide
from tests.recordings import T0, Recording

AGO = 700 * 86400  # synthetic recordings are of the future; this one is of 14 February 2025
WHOLE = "from=2026-11-30T10:58:54Z&to=2026-11-30T12:06:46Z"


def opened(page: Page, url: str) -> Page:
    """Opens the page and waits until nothing is left to be read."""
    page.goto(url)
    page.wait_for_selector(".obs .tl")
    page.wait_for_function("document.querySelector('.obs .reading') && !document.querySelector('.obs .reading progress')")
    return page


def lane(page: Page, name: str) -> str:
    """What is written in a lane."""
    return page.locator(".tl .lane-row", has_text=name).locator(".lane").inner_text()


def test_the_recordings_incidents_are_listed_and_each_leads_to_its_window(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/timeline?{WHOLE}")
    said = page.inner_text(".said .headline").replace("\u00a0", " ")
    assert said == "7 incidents. The longest: Latency rises without errors at 11:01:50, 8 min long."
    lines = [line.replace("\u00a0", " ") for line in page.locator(".table.told tbody tr").all_inner_texts()]
    assert len(lines) == 7
    for words in ("11:01:50 – 11:09:50", "8 min", "KV cache use 100 %", "Waiting requests 67"):
        assert words in lines[0]
    assert "9 s before prompts of 265 tokens became 1,882 tokens on average" in lines[1]
    assert "3 min 55 s before 1 process started again" in lines[6]
    assert lane(page, "Alerts").startswith("Where this recording was made, no series ALERTS could be read")  # which is not "none fired"
    assert lane(page, "Replicas that came or went") == "none seen"
    page.locator(".table.told a").nth(1).click()
    page.wait_for_selector("section.row.primary")
    assert page.inner_text("section.row.primary .name") == "Slow first token"
    assert "from=2026-11-30T11%3A10" in page.evaluate("location.search")
    page.go_back()
    page.locator(".tl a.block.applies").first.click()
    page.wait_for_selector("section.row.primary")
    assert page.inner_text("section.row.primary .name") == "Latency rises without errors"


def test_a_drag_over_the_lanes_sets_the_window_and_escape_does_not(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(zone="America/New_York"), f"{sample}/timeline?{WHOLE}&tz=Asia/Tokyo")
    lanes = page.locator(".tl .rules")
    page.wait_for_timeout(500)  # the script of the lanes comes last
    drag(page, lanes, 0.1, 0.9, "Escape")
    drag(page, lanes, 0.25, 0.5)
    page.wait_for_function("location.search.includes('from=2026-11-30T11%3A15')")  # a quarter of 68 minutes after 10:58:54
    page.wait_for_function("document.querySelector('.st-key-window')?.innerText.includes('20:15')")  # on Tokyo's clock
    page.wait_for_function("document.querySelectorAll('.table.told tbody tr').length === 3")


def test_the_page_fits_390_pixels_in_spanish(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(width=390, locale="es-ES"), f"{sample}/timeline?{WHOLE}")
    assert page.inner_text(".said .headline").startswith("7 incidentes. El más largo: La latencia aumenta sin errores")
    assert too_wide(page) == []


def test_two_days_are_shown_coarsely_then_exactly_with_the_change_and_the_alert(
    backfill: Callable[..., str], dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    recording = Recording(7200).vllm("a", prompt_tokens_total=lambda age: 50 * (age if age < 3600 else age - 3600))
    for share, there in (("0.9", lambda age: age < 3600), ("0.95", lambda age: age >= 3600)):
        labels = {"job": "vllm", "namespace": "prod", "pod": "a", "gpu_memory_utilization": share}
        recording.put("vllm:cache_config_info", labels, lambda age, there=there: 1.0 if there(age) else None)
    alert = {"alertname": "KVFull", "alertstate": "firing", "severity": "page"}
    recording.put("ALERTS", alert, lambda age: 1.0 if 4000 <= age <= 4600 else None)
    text = re.sub(r" (\d{10})$", lambda match: f" {int(match[1]) - AGO}", recording.text(), flags=re.MULTILINE)
    page = person()
    opened(page, f"{dashboard(prometheus_url=backfill(text))}/timeline?from={T0 - AGO - 2 * 86400}&to={T0 - AGO + 7200}")
    assert "exactly in 1 stretch where" in page.inner_text(".reading")
    changes = " ".join(page.inner_text(".changes").split())
    assert "14 Feb 09:00:00 vllm:cache_config_info: gpu_memory_utilization 0.9 → 0.95 (on a)" in changes
    assert "14 Feb 09:00:00 1 process started again (on a)" in changes
    (block,) = page.locator(".tl .block.alert").all()
    assert (block.get_attribute("title") or "").startswith("KVFull: 14 Feb 09:06:")


def test_the_last_incident_is_one_click_away_and_the_one_before_it_another(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), sample)

    def click() -> str:
        page.locator(".st-key-window button").click()
        before = page.evaluate("location.search")
        page.locator("[data-testid=stPopoverBody]").get_by_role("button", name="Last incident").click()
        page.wait_for_function("before => location.search !== before", arg=before)
        page.wait_for_function("document.querySelector('.st-key-window')?.innerText.includes(' – ')")
        return str(page.evaluate("new URLSearchParams(location.search).get('from')"))

    assert click() == "2026-11-30T11:56:30Z"  # the slow queue of 11:58:10
    page.wait_for_function("document.querySelector('.st-key-window')?.innerText.includes('11:56')")
    assert click() == "2026-11-30T11:46:00Z"  # the overload of 11:47:10
    page.wait_for_function("document.querySelector('section.row.primary .name')?.innerText === 'Slow first token'")

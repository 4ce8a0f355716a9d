"""One window, read in other places: shared at UTC+11 and opened cold at UTC-8, over a change of the clocks, again and again, on every page,
and where Prometheus has forgotten half of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page
from tests.browser.conftest import KV, answered, api, dashboard_process, drag
from tests.conftest import _over_recordings
from tests.recordings import T0, Recording

from obs import bundle
from obs.links import PAGES

NOUMEA, ANGELES, SYDNEY = "Pacific/Noumea", "America/Los_Angeles", "Australia/Sydney"
BACK = 1743868800  # 2025-04-05T16:00:00Z: in Sydney 03:00 becomes 02:00, UTC+11 becomes UTC+10
DEAD = "http://127.0.0.1:9"
FROM, TO = "2025-04-05T15:30:00Z", "2025-04-05T16:30:00Z"
PAGE = ".question, .obs .headline, .obs .told, .obs .failed"


def moved(recording: Recording, second: int, to: int) -> str:
    """The recording as text, its `second` at the Unix time `to`."""
    by = to - (T0 + second)
    return re.sub(r" (\d{10})$", lambda found: f" {int(found[1]) + by}", recording.text(), flags=re.MULTILINE)


def replica(pod: str, seconds: int, trouble: tuple[int, int] = (0, 0)) -> Recording:
    """A vLLM behind an Envoy with all that the rows need; between these seconds its KV space is full, and what it serves is slow."""
    inside = range(*trouble)
    recording = Recording(seconds).vllm(
        pod,
        kv_cache_usage_perc=lambda age: 1.0 if int(age) in inside else 0.3,
        num_requests_waiting=lambda age: 60.0 if int(age) in inside else 0.0,
        num_requests_running=lambda age: 60.0 if int(age) in inside else 4.0,
    )
    labels = {"job": "vllm", "namespace": "prod", "pod": pod, "instance": f"{pod}:8000", "model_name": "llama", "engine": "0"}
    for name, usual, slow in (
        ("e2e_request_latency_seconds", 2.0, 30.0), ("time_to_first_token_seconds", 0.1, 20.0), ("inter_token_latency_seconds", 0.02, 0.02),
        ("request_queue_time_seconds", 0.01, 19.0), ("request_prefill_time_seconds", 0.05, 0.05), ("request_prompt_tokens", 300.0, 300.0),
    ):  # fmt: skip
        sums = [0.0]
        for age in range(0, seconds + 15, 15):
            sums.append(sums[-1] + 15 * (slow if age in inside else usual))
        recording.put(f"vllm:{name}_sum", labels, lambda age, sums=sums: sums[int(age) // 15])
        recording.rate(f"vllm:{name}_count", labels, 1.0)
    recording.rate("vllm:num_preemptions_total", labels, 0.0)
    for reason, rate in (("stop", 1.0), ("error", 0.0)):
        recording.rate("vllm:request_success_total", {**labels, "finished_reason": reason}, rate)
    edge = {"job": "envoy", "namespace": "prod", "instance": "envoy:9901", "envoy_cluster_name": "llm"}
    for name, rate in (("total", 1.0), ("retry", 0.0), ("timeout", 0.0)):
        recording.rate(f"envoy_cluster_upstream_rq_{name}", edge, rate)
    return recording.rate("envoy_cluster_upstream_rq_xx", {**edge, "envoy_response_code_class": "2"}, 1.0)


@pytest.fixture(scope="module")
def cold(lab_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another process, with another default source, and the lab as one that a link can name."""
    config = tmp_path_factory.mktemp("settings") / "obs.toml"
    config.write_text(f"[sources.lab]\nurl = '{lab_url}'\n")
    with dashboard_process(prometheus_url=DEAD, config=str(config)) as base:
        yield base


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Ninety minutes of which the last hour has the change of Sydney's clocks in its middle, and the trouble ten minutes on both sides."""
    for start in _over_recordings(tmp_path_factory.mktemp("back")):
        yield start(moved(replica("a", 5400, (3000, 4200)), 3600, BACK))


def words(page: Page, selector: str) -> str:
    return page.inner_text(selector).replace("\u00a0", " ")


def opened(page: Page, url: str) -> Page:
    """Opens a page with figures, and waits for its last chart."""
    page.goto(url)
    page.wait_for_selector(".obs .said .headline")
    page.wait_for_selector(".st-key-panel-kv-use svg.marks .mark-line path")
    return page


def link_of(page: Page) -> str:
    """What *Share* gives; the popover is closed again."""
    page.locator(".st-key-share button").first.click()
    link = page.locator("[data-testid=stPopoverBody] [data-testid=stCode]").first.inner_text()
    page.keyboard.press("Escape")
    page.locator("[data-testid=stPopoverBody]").first.wait_for(state="detached")
    return link


def saved(page: Page, button: Locator, path: Path) -> str:
    with page.expect_download() as download:
        button.click()
    download.value.save_as(path)
    return path.read_text("utf-8")


def report(page: Page, path: Path) -> str:
    """The report as Markdown, without the address that it was opened at."""
    page.locator(".st-key-share button").first.click()
    found = saved(page, page.locator("[data-testid=stPopoverBody]").get_by_role("button", name="Markdown"), path)
    page.keyboard.press("Escape")
    return re.sub(r"http://127\.0\.0\.1:\d+", "", found)


def drawn(page: Page, path: Path) -> str:
    """The figures of the KV chart, as CSV."""
    page.locator(".st-key-take-kv-use").get_by_role("button").click()
    found = saved(page, page.locator("[data-testid=stPopoverBody]").get_by_role("button", name="The figures drawn, as CSV"), path)
    page.keyboard.press("Escape")
    return found


def tooltip(page: Page, share: float) -> dict[str, str]:
    """What the KV chart says under the pointer, at this part of its width."""
    chart = page.locator(".st-key-panel-kv-use [data-testid=stVegaLiteChart]")
    chart.scroll_into_view_if_needed()
    plot = chart.locator("svg.marks .role-frame > g > .background").first.bounding_box()
    assert plot is not None
    shown = page.locator("#vg-tooltip-element.visible")
    for nudge in range(40):  # a chart that was just drawn takes no pointer yet
        page.mouse.move(plot["x"] + plot["width"] * share + nudge % 2, plot["y"] + plot["height"] / 2)
        page.wait_for_timeout(250)
        if shown.count():
            break
    found = page.eval_on_selector_all(
        "#vg-tooltip-element.visible tr", "all => all.map(row => [...row.cells].map(c => c.innerText.trim()))"
    )
    return {name.strip(" :"): figure.replace("\u00a0", " ") for name, figure in found}


def labels(page: Page) -> list[str]:
    """The times under the KV chart."""
    return page.locator(".st-key-panel-kv-use .role-axis-label text").all_text_contents()


def figures(page: Page) -> list[str]:
    return [" ".join(each.split()) for each in page.locator(".obs .stat").all_inner_texts()]


def everything(page: Page, folder: Path) -> dict[str, Any]:
    """All that a page shows of its window."""
    folder.mkdir()
    return {
        "headline": words(page, ".said .headline"),
        "figures": figures(page),
        "table": [row.replace("\u00a0", " ") for row in page.locator(".table tbody tr").all_inner_texts()],
        "labels": labels(page),
        "tooltips": [tooltip(page, share) for share in (0.3, 0.5, 0.8)],
        "drawn": drawn(page, folder / "kv.csv"),
        "report": report(page, folder / "report.md"),
    }


def judged(base: str, link: str) -> dict[str, Any]:
    """The JSON of the same link, without the name that a process gives its source."""
    found = api(base, urlsplit(link).query)
    return {name: value for name, value in found.items() if name != "source"}


def test_what_is_shared_at_utc_11_is_the_same_opened_cold_at_utc_8_in_chart_tooltip_table_report_and_json(
    sample: str, cold: str, person: Callable[..., Page], tmp_path: Path
) -> None:
    sharer = opened(person(zone=NOUMEA, accept_downloads=True), f"{sample}/kv?{KV}")
    link = link_of(sharer)
    there = link.replace(sample, cold)
    reader = opened(person(zone=ANGELES, locale="en-US", accept_downloads=True), there)
    assert parse_qs(urlsplit(link).query)["tz"] == [NOUMEA]
    one, other = everything(sharer, tmp_path / "one"), everything(reader, tmp_path / "other")
    assert other == one
    assert judged(cold, there) == judged(sample, link)
    # and the same figure in all of them: the KV cache was full from 11:03 on, 22:03 in Noumea
    evidence = judged(cold, there)["rows"][1]["evidence"]
    assert next(piece["value"] for piece in evidence if piece["signal"] == "kv_use") == 1.0
    assert one["figures"][0].lower().startswith("kv cache use, fullest replica 100 %")
    assert "100 %" in one["report"]
    assert "2026-11-30T22:0" in one["report"]
    middle = one["tooltips"][1]
    assert middle["Time"] == "22:05:00"
    figure = next(line for line in one["drawn"].splitlines() if line.startswith("2026-11-30T11:05:00Z"))
    assert f"{float(figure.split(',')[1]) * 100:.3g} %" == middle["127.0.0.1:18000"]


def test_twenty_reloads_show_the_same_view(cold: str, person: Callable[..., Page]) -> None:
    link = f"{cold}/?{KV}&tz={NOUMEA}&lang=es&row=latency_without_errors&instance=127.0.0.1:18000&bundle={bundle.sample().id}"
    page = answered(person(zone=ANGELES), link)
    page.wait_for_selector("section.row.primary")
    first = words(page, ".headline"), words(page, ".st-key-window"), page.evaluate("location.search")
    assert "22:01" in first[0]
    for _reload in range(20):
        page.reload()
        page.wait_for_selector("section.row.primary")
        page.wait_for_function("text => document.querySelector('.headline')?.innerText.replaceAll('\\u00a0', ' ') === text", arg=first[0])
        assert (words(page, ".st-key-window"), page.evaluate("location.search")) == first[1:]


def test_over_a_change_of_the_clocks_a_chart_goes_on_evenly_and_every_place_names_the_same_minutes(
    prometheus: str, dashboard: Callable[..., str], person: Callable[..., Page], tmp_path: Path
) -> None:
    here, there = dashboard(prometheus_url=prometheus), dashboard(prometheus_url=prometheus)
    sharer = opened(person(zone=SYDNEY, accept_downloads=True), f"{here}/kv?from={FROM}&to={TO}")
    link = link_of(sharer)
    reader = opened(person(zone=ANGELES, accept_downloads=True), link.replace(here, there))
    one = everything(sharer, tmp_path / "one")
    assert everything(reader, tmp_path / "other") == one
    assert judged(there, link) == judged(here, link)
    assert one["headline"] == "Yes: KV space is short on a, from 02:49:45 AEDT to 02:09:45 AEST, 20 min long."
    clock = [datetime.fromtimestamp(BACK - 1800 + 300 * mark, ZoneInfo(SYDNEY)).strftime("%H:%M") for mark in range(13)]
    assert [label for label in one["labels"] if ":" in label] == clock  # 02:30 to 02:55, and 02:00 to 02:30 again
    times = [line.split(",")[0] for line in one["drawn"].splitlines()[1:]]
    assert times == sorted(times)
    assert len(times) == 241
    for share, tip in zip((0.3, 0.5, 0.8), one["tooltips"], strict=True):
        near = [datetime.fromtimestamp(BACK - 1800 + 3600 * share + step, UTC) for step in (0, 15, -15, 30, -30)]  # the marks lie close
        at = next(each for each in near if each.astimezone(ZoneInfo(SYDNEY)).strftime("%H:%M:%S") == tip["Time"])
        figure = next(line.split(",")[1] for line in one["drawn"].splitlines() if line.startswith(at.strftime("%Y-%m-%dT%H:%M:%SZ")))
        assert tip["a"] == f"{float(figure) * 100:.3g} %"
    chart = reader.locator(".st-key-panel-kv-use [data-testid=stVegaLiteChart]")
    drag(reader, chart.locator("svg.marks .role-frame > g > .background").first, 0.6, 0.9)
    reader.wait_for_function("location.search.includes('from=2025-04-05T16%3A0')")  # 02:06 for the second time, and not 02:06 for the first
    asked = parse_qs(reader.evaluate("location.search.slice(1)"))
    assert asked["to"][0].startswith("2025-04-05T16:2")


def test_every_page_opens_with_every_parameter_and_keeps_it(cold: str, person: Callable[..., Page]) -> None:
    """Of a recording in one tab; in another of a source, since a link names one of them, on pages that read it differently."""
    every = (
        f"{KV}&tz={NOUMEA}&lang=es&row=slow_first_token&instance=127.0.0.1:18000&instance=elsewhere&replica=127.0.0.1:18000"
        f"&compare_from=2026-11-30T11:40:00Z&compare_to=2026-11-30T11:50:00Z&change=chunked_prefill&incident=0123456789abcdef"
        f"&refresh=1m&plan=gpu~h100-80gb~tp~2"
    )
    first = person(zone=ANGELES)
    tabs = {f"bundle={bundle.sample().id}": first, "source=lab": person(zone=ANGELES)}
    for name, kiosk in [*((name, "") for name in PAGES), ("", "&kiosk=1")]:
        opened_in = {of: page for of, page in tabs.items() if page is first or name in ("", "kv", "compare", "timeline")}
        for of, page in opened_in.items():
            page.goto(f"{cold}/{name}?{every}&{of}{kiosk}", wait_until="commit")
        for of, page in opened_in.items():
            page.wait_for_selector(PAGE)
            page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
            assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0, (name, of)
            assert name == "incidents" or page.locator(".obs .failed").count() == 0, (name, of)
            kept = parse_qs(page.evaluate("location.search.slice(1)"))
            assert {key: value for key, value in kept.items() if key != "kiosk"} == parse_qs(f"{every}&{of}"), (name, of)
            assert ("kiosk" in kept) == bool(kiosk), (name, of)
            assert page.evaluate("location.pathname").strip("/") == name
    assert words(tabs["source=lab"], ".headline") == words(first, ".headline")  # the lab's recording is of that source


def test_where_half_of_a_window_is_forgotten_the_page_says_so_and_calls_nothing_clear(
    backfill: Callable[..., str], dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    base = dashboard(prometheus_url=backfill(moved(replica("a", 5400), 0, BACK)))
    link = "from=2025-04-05T15:30:00Z&to=2025-04-05T16:30:00Z&tz=UTC"
    page = answered(person(), f"{base}/?from=2025-04-05T16:30:00Z&to=2025-04-05T17:30:00Z&tz=UTC")
    assert words(page, ".headline") == "No row of the table applies."  # where everything is there
    answered(page, f"{base}/?{link}")
    page.wait_for_function("document.querySelector('.headline')?.innerText.startsWith('Not enough')")
    assert words(page, ".headline") == "Not enough data to tell: there are no figures of any replica from 15:30:00 to 16:00:00."
    assert "For 50 % of this window there are no figures, from 15:30:00 to 16:00:00" in words(page, ".stApp")
    assert {each.strip() for each in page.locator("section.row .state").all_inner_texts()} == {"unknown"}
    found = api(base, link)
    assert (found["primary"], {row["state"] for row in found["rows"]}) == ("insufficient", {"unknown"})
    assert "15:30" in json.dumps(found["summary"])
    page.goto(f"{base}/kv?{link}")
    page.wait_for_selector(".obs .said .headline")
    assert "For 50 % of this window there are no figures" in words(page, ".stApp")
    page.goto(f"{base}/timeline?{link}")
    page.wait_for_selector(".tl .lane .gap")
    box = page.locator(".tl .lane .gap").first.get_attribute("style") or ""
    left, width = (float(each) for each in re.findall(r"([\d.]+)%", box))
    assert (left, width) == (pytest.approx(0.0, abs=1), pytest.approx(50.0, abs=1))

"""Whatever goes wrong is a sentence in place of the answer; the bar stays, no traceback shows, and no row is called clear."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import KV, SCRIPT, answered, api, failed, none_is_judged, states, too_wide
from tests.faults import Reply, Seen, serving, success

FAULTS = {
    "wrong address": (Reply(404, "<html>nothing here</html>"), "404"),
    "no token": (Reply(401, "Unauthorized"), "401"),
    "refused query": (
        Reply(422, {"status": "error", "errorType": "execution", "error": "query processing would load too many samples"}),
        "too",
    ),
    "half an answer": (Reply(200, b'{"status":"success","data":{"resultType":"matrix","result":[', cut=-0), "answer"),
    "cut off": (Reply(200, b"x" * 1000, cut=500), "answer"),
    "another language": (Reply(200, "<html><body>login</body></html>"), "answer"),
    "too slow": (success([]), "did not answer"),
}


@pytest.fixture(scope="module")
def faulty() -> Iterator[tuple[str, dict[str, Reply]]]:
    """(address, what it answers): the answer is changed from test to test, so that one dashboard sees them all."""
    now: dict[str, Reply] = {"reply": Reply(404)}

    def answer(_: Seen) -> Reply:
        return now["reply"]

    with serving(answer) as (url, _seen):
        yield url, now


@pytest.fixture(scope="module")
def reading(faulty: tuple[str, dict[str, Reply]]) -> Iterator[str]:
    from tests.browser.conftest import dashboard_process

    with dashboard_process(prometheus_url=faulty[0], prometheus_timeout_seconds="1") as base:
        yield base


def _said_plainly(page: Page, sentence: str) -> None:
    assert "nothing is known about this window" in sentence
    everything = page.inner_text(".stApp")
    assert "Traceback" not in everything
    assert "Error:" not in everything
    none_is_judged(page)
    page.locator(".st-key-window button").first.wait_for()
    page.get_by_role("link", name="Data").wait_for()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_source_is_said(fault: str, faulty: tuple[str, dict[str, Reply]], reading: str, person: Callable[..., Page]) -> None:
    reply, word = FAULTS[fault]
    faulty[1]["reply"] = Reply(reply.status, reply.body, cut=reply.cut, wait=3.0 if fault == "too slow" else 0.0)
    page = person()
    sentence = failed(page, f"{reading}/?from=now-1h&to=now")
    _said_plainly(page, sentence)
    assert word in sentence
    assert "127.0.0.1" in sentence  # which source it is
    assert api(reading, "from=now-1h&to=now")["status"] == 502


def test_an_unreachable_source_is_said_on_every_page_and_at_390_pixels(dashboard: Callable[..., str], person: Callable[..., Page]) -> None:
    base = dashboard(prometheus_url="http://127.0.0.1:9")
    for page, address in ((person(), base), (person(width=390), base), (person(), f"{base}/data")):
        page.goto(address)
        sentence = page.wait_for_selector(".obs .failed").inner_text()  # type: ignore[union-attr]
        assert "http://127.0.0.1:9" in sentence
        if not address.endswith("/data"):
            none_is_judged(page)
        assert too_wide(page) == []
    assert api(base)["status"] == 502


WINDOWS = {
    "from=2026-11-30T11:00:00Z&to=2026-11-30T11:00:00Z": "0 s",
    "from=2026-11-30T11:10:00Z&to=2026-11-30T11:00:00Z": "before",
    "from=2099-01-01T00:00:00Z&to=2099-01-01T01:00:00Z": "outside the recording",
    "from=2016-11-30T00:00:00Z&to=2026-11-30T12:00:00Z": "long",
    "bundle=..%2F..%2Fetc%2Fpasswd%00": None,
    "bundle=0123456789abcdef": "0123456789abcdef",
    "source=nowhere": "nowhere",
}


@pytest.mark.parametrize("query", WINDOWS)
def test_a_window_or_source_that_cannot_be_is_said(query: str, sample: str, person: Callable[..., Page]) -> None:
    page, word = person(), WINDOWS[query]
    if word is None:  # no id of a bundle at all: ignored, and said
        answered(page, f"{sample}/?{query}")
        assert "bundle was ignored" in page.inner_text(".notes")
        return
    sentence = failed(page, f"{sample}/?{query}")
    _said_plainly(page, sentence)
    assert word in sentence


def test_what_does_not_parse_falls_back_and_is_said(sample: str, person: Callable[..., Page]) -> None:
    page = answered(person(), f"{sample}/?{KV}&tz=<script>&row=nope&lang=xx&refresh=soon")
    notes = page.inner_text(".notes")
    assert all(name in notes for name in ("tz was ignored", "row was ignored", "lang was ignored", "refresh was ignored"))
    assert page.inner_text("section.row.primary .name") == "Latency rises without errors"


def test_a_source_without_llm_metrics_is_insufficient_and_no_row_is_clear(
    backfill: Callable[[str], str], dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    url = backfill(
        '# TYPE up unknown\nup{job="node",instance="n:9100"} 1 1796036400\nup{job="node",instance="n:9100"} 1 1796037000\n# EOF\n'
    )
    page = answered(person(), f"{dashboard(prometheus_url=url)}/?{KV}")
    assert "Not enough data" in page.inner_text(".headline")
    assert {state for _, state in states(page)} == {"unknown"}


def test_hostile_labels_are_shown_as_text(hostile: str, dashboard: Callable[..., str], person: Callable[..., Page]) -> None:
    page = person()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    base = dashboard(prometheus_url=hostile)
    answered(page, f"{base}/?from=now-20m&to=now&row=latency_without_errors&evil=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.go_back()
    answered(page, f"{base}/?from=now-20m&to=now&row=latency_without_errors")
    page.wait_for_selector("svg.marks")
    assert "<img src=x" in page.inner_text(".fleet")
    assert "*bold* `code` $x$ :red[x] [a](http://evil.example)" in page.inner_text(".fleet")
    page.locator(".st-key-scope button").first.click()
    page.locator("[data-testid=stPopoverBody] [data-testid=stMultiSelect] input").first.click()
    page.get_by_role("option").first.wait_for()
    assert SCRIPT in page.locator("[class*=st-key-piece]").first.inner_text() + page.locator(
        ".legend, svg.marks"
    ).first.inner_html().replace("&lt;", "<").replace("&gt;", ">")
    assert page.title() != "owned"
    assert dialogs == []
    assert page.locator(".obs script, .obs img, .obs a[href^='http']").count() == 0
    assert too_wide(page) == []

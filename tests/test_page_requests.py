"""What a page asks of a real Prometheus, counted there: few requests where nothing is cached, and none at all where it is."""

from __future__ import annotations

import re
import runpy
import urllib.request
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
import streamlit as st
from tests.recordings import T0, Recording

from obs import api, links
from obs.config import Settings, SourceSettings
from obs.links import View
from obs.prometheus import Prometheus
from obs.ui import answer, drafts, screen
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import Window, rfc3339

ROOT = Path(__file__).resolve().parents[1]
PAGES = [name for name in links.PAGES if (ROOT / f"pages/{name or 'diagnosis'}.py").exists()]
RESTARTS = (18000, 43200, 72000)
WINDOW = Window(1796036544, 1796036996)  # the lab's KV pressure


def asked(url: str) -> int:
    """Requests to its API that a Prometheus has counted."""
    with urllib.request.urlopen(f"{url}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if re.match(r'prometheus_http_requests_total\{.*handler="/api/', line))


@pytest.fixture
def lab_view(lab_url, monkeypatch):
    """The pages' own way to the lab, with nothing cached."""
    monkeypatch.setenv("OBS_PROMETHEUS_URL", lab_url)
    monkeypatch.setattr(st, "vega_lite_chart", lambda *_args, **_more: None)
    st.cache_resource.clear()
    yield View(start="2026-11-30T11:02:24Z", end="2026-11-30T11:09:56Z")
    st.cache_resource.clear()


@pytest.mark.parametrize("page", PAGES, ids=[page or "diagnosis" for page in PAGES])
def test_a_page_asks_at_most_twelve_times_and_the_next_time_not_at_all(page, lab_url, lab_view, monkeypatch):
    def draw() -> int:
        before = asked(lab_url)
        found = answer.answer(lab_view, WINDOW, WINDOW.end)
        shown = Screen(lab_view, Reader(), (), found.about, WINDOW, found, now=WINDOW.end)
        monkeypatch.setattr(screen, "current", lambda: shown)
        runpy.run_path(str(ROOT / f"pages/{page or 'diagnosis'}.py"))
        return asked(lab_url) - before

    cold = draw()
    assert 4 <= cold <= 12
    assert draw() == 0


def eventful() -> Recording:
    """A day with three restarts, each with another configuration and an alert: a stretch each that is read again exactly."""
    starts = (0, *RESTARTS)
    target = {"job": "vllm", "namespace": "prod", "pod": "b", "instance": "b:8000", "model_name": "llama", "engine": "0"}
    recording = Recording(86400, 30).vllm("b").mean("vllm:time_to_first_token_seconds", target, 0.1, 1.0)
    recording.vllm("a", prompt_tokens_total=lambda age: 50 * (age - max(start for start in starts if start <= age)))
    for number, (start, end) in enumerate(pairwise((*starts, 86401))):
        labels = {"job": "vllm", "namespace": "prod", "pod": "a", "engine": "0", "gpu_memory_utilization": f"0.{number + 5}"}
        recording.put("vllm:cache_config_info", labels, lambda age, a=start, b=end: 1.0 if a <= age < b else None)
        firing = {"alertname": f"Restarted{number}", "alertstate": "firing", "namespace": "prod"}
        recording.put("ALERTS", firing, lambda age, a=start: 1.0 if a and a + 300 <= age <= a + 900 else None)
    return recording


def test_in_a_day_with_three_incidents_every_page_asks_at_most_twelve_times(backfill, monkeypatch):
    """All read one answer. The data page asks how long samples are kept, the replicas page for the buckets of each replica; the timeline
    for labels and alerts, and so does a plan that is held against the engine. A comparison within the day is of two windows."""
    url = backfill(eventful())
    monkeypatch.setenv("OBS_PROMETHEUS_URL", url)
    monkeypatch.setattr(st, "vega_lite_chart", lambda *_args, **_more: None)

    def cold(page: str, window: Window, plan: str | None = None) -> int:
        st.cache_resource.clear()
        before, now = asked(url), window.end + 86400.0
        view = View(page, start=rfc3339(window.start), end=rfc3339(window.end), plan=plan)
        found = drafts.draft(view, window, now).answer if page == "timeline" else answer.answer(view, window, now)
        shown = Screen(view, Reader(), (), found.about, window, found, now=now)
        monkeypatch.setattr(screen, "current", lambda: shown)
        runpy.run_path(str(ROOT / f"pages/{page or 'diagnosis'}.py"))
        while page == "timeline" and drafts.draft(view, window, now).left:
            drafts.read_on(view, window, now)
        return asked(url) - before

    day, evening = Window(T0, T0 + 86400), Window(T0 + 43200, T0 + 86400)
    pages = [page for page in PAGES if page != "compare"]
    assert {page: cold(page, day) for page in pages} == {**dict.fromkeys(pages, 11), "data": 12, "replicas": 12, "timeline": 12}
    assert cold("compare", evening) == 11
    assert cold("memory", day, "model~llama-3.1-8b~runs~1") == 12
    st.cache_resource.clear()


def test_only_reading_endpoints_are_asked(lab_url, monkeypatch):
    """Whatever obs does, it sends GET and POST to these; a source that lets more be done is none the worse for it."""
    sent: set[tuple[str, str]] = set()
    send = requests.Session.send

    def seen(session, request, **more):
        sent.add((request.method, re.sub(r"/label/[^/]+/", "/label/*/", urlsplit(request.url).path)))
        return send(session, request, **more)

    monkeypatch.setattr(requests.Session, "send", seen)
    source = Prometheus(SourceSettings(url=lab_url, name="lab"))
    api.report(source, View(start="2026-11-30T11:02:24Z", end="2026-11-30T11:09:56Z"), Settings(), WINDOW.end)
    api.packed(source, WINDOW, {}, Settings())
    assert len(sent) > 3
    reading = {
        "query",
        "query_range",
        "series",
        "labels",
        "label/*/values",
        "metadata",
        "status/buildinfo",
        "status/runtimeinfo",
        "rules",
        "targets",
    }
    assert {
        (method, path) for method, path in sent if method not in ("GET", "POST") or path.removeprefix("/api/v1/") not in reading
    } == set()

"""What a page asks of a real Prometheus, counted there: few requests where nothing is cached, and none at all where it is."""

from __future__ import annotations

import re
import runpy
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
import streamlit as st

from obs import api, links
from obs.config import Settings, SourceSettings
from obs.links import View
from obs.prometheus import Prometheus
from obs.ui import answer, screen
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import Window

ROOT = Path(__file__).resolve().parents[1]
PAGES = [name for name in links.PAGES if (ROOT / f"pages/{name or 'diagnosis'}.py").exists()]
TWICE = ("compare", "timeline")  # these read more than the window that all pages share
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
        shown = Screen(lab_view, Reader(), (), found.about, WINDOW, found)
        monkeypatch.setattr(screen, "current", lambda: shown)
        runpy.run_path(str(ROOT / f"pages/{page or 'diagnosis'}.py"))
        return asked(lab_url) - before

    cold = draw()
    assert 4 <= cold <= (24 if page in TWICE else 12)
    assert draw() == 0


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

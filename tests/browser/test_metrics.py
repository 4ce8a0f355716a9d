"""The dashboard's own metrics: what it asks its source, what its cache saves, who looks, and that they are an exposition."""

import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime

from playwright.sync_api import Page
from prometheus_client.parser import text_string_to_metric_families
from tests.browser.conftest import KV, answered


def _metrics(base: str) -> dict[tuple[str, str], float]:
    """Each sample by its name and its only label's value."""
    with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return {(s.name, next(iter(s.labels.values()), "")): s.value for family in families for s in family.samples}


def test_the_source_s_questions_are_counted_and_a_second_reader_costs_none(
    lab_url: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    base = dashboard(prometheus_url=lab_url)
    assert ("obs_source_requests_total", "default") not in _metrics(base)
    answered(person(), f"{base}/?{KV}")
    first = _metrics(base)
    assert 3 <= first["obs_source_requests_total", "default"] <= 20
    assert first["obs_cache_misses_total", "default"] > 50
    assert first["obs_cache_bytes", "default"] > 10_000
    assert first["obs_source_retries_total", "default"] == 0
    assert first["obs_page_render_seconds_count", "diagnosis"] >= 1
    assert first["obs_sessions", ""] == 1
    answered(person(), f"{base}/?{KV}")
    second = _metrics(base)
    assert second["obs_sessions", ""] == 2
    assert second["obs_source_requests_total", "default"] == first["obs_source_requests_total", "default"]


def test_an_overlapping_window_is_mostly_answered_from_memory(
    lab_url: str, dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    base = dashboard(prometheus_url=lab_url)
    answered(person(), f"{base}/?{KV}")
    first = _metrics(base)
    later = datetime.fromtimestamp(1796036700, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # five minutes on
    answered(person(), f"{base}/?from={later}&to=2026-11-30T11:15:00Z")
    second = _metrics(base)
    hits, misses = (second[name, "default"] - first[name, "default"] for name in ("obs_cache_hits_total", "obs_cache_misses_total"))
    assert hits > misses > 0

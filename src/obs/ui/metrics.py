"""`GET /metrics`: how the dashboard itself fares. No label holds what a reader or a source wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response
from streamlit.runtime import Runtime
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY

from obs.prometheus import Prometheus

if TYPE_CHECKING:
    from obs.cache import Cached

REGISTRY = CollectorRegistry()
RENDERED = Histogram(
    "obs_page_render_seconds",
    "Server time of one run of a page, questions to the source included.",
    ["page"],
    registry=REGISTRY,
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
WATCHED: dict[str, Cached] = {}
"""The sources that the pages read, by the name that the settings give them."""


class _Sources:
    """What each source was asked, and what the cache before it did."""

    def collect(self) -> Iterator[Metric]:
        """One sample a source."""
        counters = {
            "obs_source_requests": ("Requests sent to the source, retries included.", "requests"),
            "obs_source_request_seconds": ("Time spent waiting for the source.", "seconds"),
            "obs_source_retries": ("Requests sent a second time.", "retries"),
            "obs_source_retries_refused": ("Retries that the budget did not allow.", "refused"),
            "obs_source_circuit_opened": ("Times that the source was found down and left alone.", "opened"),
            "obs_source_given_up": ("Requests that were cut off, because nobody waited for the answer any more.", "given_up"),
            "obs_cache_hits": ("Chunks that were answered from memory.", "hits"),
            "obs_cache_misses": ("Chunks that were asked for.", "misses"),
            "obs_cache_waited": ("Chunks that somebody else was asking for already.", "waited"),
            "obs_cache_evicted": ("Chunks that gave way.", "evicted"),
        }
        figures = {name: _figures(cached) for name, cached in list(WATCHED.items())}
        for metric, (words, figure) in counters.items():
            family = CounterMetricFamily(metric, words, labels=["source"])
            for name, known in figures.items():
                family.add_metric([name], known[figure])
            yield family
        held = GaugeMetricFamily("obs_cache_bytes", "Memory that the cache holds.", labels=["source"])
        for name, known in figures.items():
            held.add_metric([name], known["bytes"])
        yield held
        yield GaugeMetricFamily("obs_sessions", "Browsers that are connected.", value=_sessions())


def _figures(cached: Cached) -> dict[str, float]:
    counts = cached.counts
    found = {"hits": counts.hits, "misses": counts.misses, "waited": counts.waited, "evicted": counts.evicted, "bytes": counts.held_bytes}
    sent = cached.source.session if isinstance(cached.source, Prometheus) else None
    return {
        **found,
        "requests": sent.asked.count if sent else 0,
        "seconds": sent.asked.total_seconds if sent else 0.0,
        "retries": sent.retries.spent if sent else 0,
        "refused": sent.retries.refused if sent else 0,
        "given_up": sent.given_up if sent else 0,
        "opened": sent.circuit.opened if sent else 0,
    }


def _sessions() -> float:
    """Streamlit's own count."""
    found = Runtime.instance().stats_mgr.get_stats([ACTIVE_SESSIONS_FAMILY]).get(ACTIVE_SESSIONS_FAMILY, [])
    return float(sum(getattr(stat, "value", 0) for stat in found))


async def metrics(_request: Request) -> Response:
    """The exposition."""
    return Response(generate_latest(REGISTRY), media_type="text/plain; version=0.0.4; charset=utf-8", headers={"Cache-Control": "no-store"})


REGISTRY.register(_Sources())
ProcessCollector(registry=REGISTRY)

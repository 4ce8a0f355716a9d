"""How the sources that speak Prometheus' API differ from it, where that shows in a figure. Sentences for whoever asks what to trust.

From their documentation: Prometheus 3 migration guide, VictoriaMetrics' MetricsQL, Thanos' querier, Mimir's query sharding and tenants.
"""

from __future__ import annotations

from collections.abc import Mapping

from obs.source import About
from obs.text import Message, say

DIFFERS: Mapping[str, tuple[Message, ...]] = {
    "victoriametrics": (
        say(
            "The rates that it computes (of distributions and over long windows) are not extrapolated to the edges of their window, and "
            "take in the last sample before it; the others are computed here, as Prometheus does."
        ),
        say("A level is shown for a few scrapes after its last sample, whether or not the target said that it ended."),
        say("Functions that leave a figure as it is keep the metric's name; no figure here depends on that."),
    ),
    "thanos": (
        say("Deduplication must be on where several Prometheus servers scrape the same target: else counts double."),
        say("Where a store does not answer, the figures are those of the others; then the source warns."),
        say("Over weeks it may answer from samples of five minutes: a short peak is lost there."),
    ),
    "mimir": (say("Every question is one tenant's (OBS_PROMETHEUS_TENANT): another tenant's series do not exist here."),),
    "cortex": (say("Every question is one tenant's (OBS_PROMETHEUS_TENANT): another tenant's series do not exist here."),),
}
PROMETHEUS_3 = (
    say("A sample exactly at the beginning of a rate's window does not count (from Prometheus 3 on)."),
    say("Names and labels may be dotted; they stand in quotes in a query."),
)


def remarks(about: About) -> tuple[Message, ...]:
    """What differs in this source's figures; () where nothing is known to."""
    if about.flavor == "prometheus" and about.version.partition(".")[0].isdigit() and int(about.version.partition(".")[0]) >= 3:
        return PROMETHEUS_3
    return DIFFERS.get(about.flavor, ())

"""What must not change a verdict does not: how often it is scraped, when, under which names, and who else is in view."""

from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.alterations import FAMILIES, beside, doubled, essence, idle, renamed, states, without
from tests.incidents import BY_NAME, GATEWAY, INCIDENTS, truth
from tests.incidents import readings as seen
from tests.scrapes import read

from obs.diagnosis import diagnose
from obs.signals import Readings

QUICK = (Phase.explicit, Phase.generate)  # an example is a whole diagnosis: shrinking one costs minutes and says no more
bounded = settings(max_examples=10, deadline=None, derandomize=True, database=None, phases=QUICK)
NAMES = tuple(incident.name for incident in INCIDENTS)
names = st.sampled_from(NAMES)
TROUBLED = (
    "latency with errors",
    "time-outs without retries",
    "callers who leave long answers",
    "a hung engine with frozen gauges",
    "a slow network that only request times show",
    "a retry storm",
)
DEATHS = ("a death with full GPU memory and no counter", "a GPU out-of-memory event", "killed for host memory", "a bare restart")
OF_DEATHS = {"gpu_memory", "gpu_oom_events", "container_restarts", "host_memory", "up"}  # these are tried on deaths


@lru_cache(maxsize=64)
def _usual(name: str) -> dict[str, object]:
    return essence(diagnose(seen(name)))


@lru_cache(maxsize=64)
def _states(name: str) -> dict[str, str]:
    return states(diagnose(seen(name)))


def _looked_at(name: str, **how: object) -> Readings:
    return read(truth(name), replace(BY_NAME[name].how, **how))


@pytest.mark.parametrize("name", NAMES)
def test_a_scrape_interval_of_half_a_minute_changes_no_verdict(name):
    assert essence(diagnose(_looked_at(name, every=30.0))) == _usual(name)


@pytest.mark.parametrize("name", [*TROUBLED, "one bad replica of four", "more than the KV pool holds"])
def test_nor_does_one_of_five_seconds(name):
    assert essence(diagnose(_looked_at(name, every=5.0))) == _usual(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_states_are_the_same_at_a_scrape_of_a_minute(name):
    assert states(diagnose(_looked_at(name, every=60.0))) == _states(name)


@bounded
@given(name=names, shift=st.integers(-10_000_000, 10_000_000))
def test_a_shift_in_time_changes_no_verdict(name, shift):
    assert essence(diagnose(_looked_at(name, shift=float(shift)))) == _usual(name)


@bounded
@given(name=names, data=st.data())
def test_the_names_of_replicas_change_no_verdict(name, data):
    readings = seen(name)
    count = len(readings.replicas)
    own = tuple(data.draw(st.lists(st.text("abcxyz-/:0123", min_size=1, max_size=9), min_size=count, max_size=count, unique=True)))
    assert essence(diagnose(renamed(readings, own)), findings=True) == essence(diagnose(readings), findings=True)


@bounded
@given(name=names, more=st.integers(1, 12))
def test_idle_replicas_change_no_verdict(name, more):
    readings = seen(name)
    assert essence(diagnose(beside(readings, idle(readings, more), gateway=False))) == _usual(name)


@lru_cache(maxsize=32)
def _neighbours(name: str, seed: int) -> Readings:
    """A healthy fleet with a gateway of its own, looked at in the same way."""
    return read(truth("a healthy hour", seed), replace(BY_NAME[name].how, down={}, gone={}))


@bounded
@given(name=names, fleets=st.integers(1, 3), namespace=st.sampled_from(["prod", "other"]))
def test_healthy_replicas_with_a_gateway_of_their_own_change_no_verdict(name, fleets, namespace):
    readings = seen(name)
    for seed in range(fleets):
        readings = beside(readings, _neighbours(name, 11 + seed), namespace=namespace)
    assert essence(diagnose(readings)) == _usual(name)


@pytest.mark.parametrize("namespace", ["prod", "other"])
@pytest.mark.parametrize("name", TROUBLED)
def test_ten_times_as_many_healthy_replicas_change_no_verdict(name, namespace):
    crowd = _neighbours(name, 11)
    while len(crowd.replicas) < 10 * BY_NAME[name].site.replicas:
        crowd = doubled(crowd)
    assert essence(diagnose(beside(seen(name), crowd, namespace=namespace))) == _usual(name)


@bounded
@given(name=names, row=st.integers(0, 1), at=st.integers(60, 900))
def test_counters_that_began_again_long_before_change_no_verdict(name, row, at):
    assert essence(diagnose(_looked_at(name, born={row: float(at)}))) == _usual(name)


@bounded
@given(name=names, seed=st.integers(0, 99))
def test_one_lost_scrape_in_ten_changes_no_verdict(name, seed):
    assert essence(diagnose(_looked_at(name, lost=0.1, seed=seed))) == _usual(name)


@bounded
@given(name=names, seed=st.integers(0, 99))
def test_one_failed_scrape_in_ten_changes_no_verdict(name, seed):
    assert essence(diagnose(_looked_at(name, failed=0.1, seed=seed))) == _usual(name)


@bounded
@given(name=names)
def test_twice_the_traffic_on_twice_the_replicas_changes_no_verdict(name):
    assert essence(diagnose(doubled(seen(name)))) == _usual(name)


MAY_BECOME = {
    "applies": {"applies", "suspected", "unknown"},
    "suspected": {"suspected", "unknown"},
    "clear": {"clear", "suspected", "unknown"},
    "unknown": {"unknown", "suspected"},
}


def _wrongly(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    return {row: f"{before[row]} -> {state}" for row, state in after.items() if state not in MAY_BECOME[before[row]]}


@pytest.mark.parametrize("family", FAMILIES, ids="+".join)
def test_without_one_metric_no_row_begins_to_apply_and_none_becomes_clear(family):
    wrong = {}
    for name in DEATHS if family[0] in OF_DEATHS else TROUBLED:
        found = _wrongly(_states(name), states(diagnose(without(seen(name), family))))
        if found:
            wrong[name] = found
    assert wrong == {}


EXPORTERS = {
    "the gateway": GATEWAY,
    "the GPU exporter": frozenset({"gpu_memory"}),
    "Kubernetes": frozenset({"container_restarts", "container_oom_killed", "host_memory"}),
    "the engines": frozenset(s for family in FAMILIES for s in family if not s.startswith(("gateway", "gpu", "container", "host", "up"))),
}


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_without_a_whole_exporter_no_row_begins_to_apply_and_none_becomes_clear(exporter):
    wrong = {}
    for name in (*TROUBLED, *DEATHS[:2]):
        found = _wrongly(_states(name), states(diagnose(without(seen(name), EXPORTERS[exporter]))))
        if found:
            wrong[name] = found
    assert wrong == {}


@bounded
@given(name=names, lost=st.lists(st.sampled_from(FAMILIES), min_size=2, max_size=5, unique=True))
def test_without_several_metrics_no_row_begins_to_apply_and_none_becomes_clear(name, lost):
    gone = [signal for family in lost for signal in family]
    assert _wrongly(_states(name), states(diagnose(without(seen(name), gone)))) == {}

"""What a bundle holds beside its readings since schema 2: info metrics and firing alerts, as the timeline shows them. Older ones open."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.recordings import T0, Recording
from tests.test_bundle import of_schema_1, rebuilt, refusal
from tests.test_timeline import fleet

from obs import api, bundle_file, scan
from obs.bundle import Bundle, pack
from obs.config import Settings, SourceSettings, load
from obs.facts import Facts
from obs.history import history
from obs.language import render
from obs.prometheus import Prometheus
from obs.seen import History
from obs.source import Source
from obs.timeline import Timeline, timeline
from obs.window import Window

WINDOW = Window(T0, T0 + 7200.0)
EVERYTHING: dict[str, tuple[str, ...]] = {}


@pytest.fixture(scope="module")
def source(served: Callable[..., str]) -> Prometheus:
    return Prometheus(SourceSettings(url=served(fleet()), name="test"))


@pytest.fixture(scope="module")
def kept(source: Prometheus) -> Bundle:
    return Bundle(pack(source, WINDOW, {}), "kept.obs.zip")


def shown(source: Source, window: Window, scope: dict[str, tuple[str, ...]]) -> tuple[History, Timeline]:
    """What the timeline is given, and what it makes of it."""
    readings, found = scan.scan(source, window, scope, load())
    seen = history(source, readings, scope)
    return seen, timeline(Facts(readings, dict(found.thresholds)), found, seen)


# ---------------------------------------------------------------- what is not there is not "none"


def test_a_bundle_of_schema_1_opens_and_what_it_does_not_hold_is_not_told_as_none() -> None:
    old = of_schema_1()
    assert old.manifest.schema_ == 1
    seen, _ = shown(old, old.window, EVERYTHING)
    assert old.kept() is None
    assert seen.no_alerts is not None
    assert render(seen.no_alerts) == "Alerts are not in this recording."
    again = Bundle(pack(old, old.window, {}))  # a part of it, kept again, knows no more
    assert (again.manifest.schema_, again.kept()) == (bundle_file.SCHEMA, None)


def test_an_old_manifest_under_new_readings_opens_with_the_same_verdicts(kept: Bundle, source: Prometheus) -> None:
    data = rebuilt(pack(source, WINDOW, {}), {"schema": 1, "beside": None})
    assert Bundle(data).kept() is None
    old, new = (scan.scan(each, WINDOW, {}, load())[1] for each in (Bundle(data), kept))
    assert old == new


def test_a_source_without_alerts_has_none_to_keep_and_the_bundle_says_so(served: Callable[..., str]) -> None:
    bare = Prometheus(SourceSettings(url=served(Recording(1800).vllm("a")), name="test"))
    seen, _ = shown(Bundle(pack(bare, Window(T0, T0 + 1800.0), {})), Window(T0, T0 + 1800.0), EVERYTHING)
    assert seen.no_alerts is not None
    assert render(seen.no_alerts).startswith("Where this recording was made, no series ALERTS could be read")
    assert seen.no_infos is not None


@pytest.mark.parametrize("spans", [[[-1.0, None, 0.0]], [[0.0, 1e300, 0.0]], [[0.0, None]], "all", [["x", None, 0.0]]])
def test_a_stretch_that_is_none_is_refused(kept: Bundle, source: Prometheus, spans: object) -> None:
    alert = {"metric": "ALERTS", "labels": {"alertname": "x"}, "spans": spans}
    beside = {"infos": [], "alerts": [alert], "infos_known": True, "alerts_known": True}
    assert "manifest is wrong at beside" in refusal(rebuilt(pack(source, Window(T0, T0 + 600.0), {}), {"beside": beside}))


# ---------------------------------------------------------------- what is there


def test_a_bundle_tells_configuration_and_alerts_as_the_source_did(kept: Bundle, source: Prometheus) -> None:
    then, lived = shown(source, WINDOW, EVERYTHING)
    seen, opened = shown(kept, WINDOW, EVERYTHING)
    assert seen == then
    assert opened == lived
    changed = [render(event.says) for event in opened.events if event.kind == "configuration"]
    assert changed == ["vllm:cache_config_info: gpu_memory_utilization 0.9 → 0.95"]
    assert [alert.name for alert in opened.alerts] == ["KVFull", "Elsewhere", "Watchdog"]


def test_a_part_of_its_window_and_scope_is_cut_out(kept: Bundle, source: Prometheus) -> None:
    part, prod = Window(T0 + 4050.0, T0 + 7200.0), {"namespace": ("prod",)}
    seen, opened = shown(kept, part, prod)
    then, _ = shown(source, part, prod)
    assert {each.labels["alertname"] for each in seen.alerts} == {"KVFull", "Watchdog"}  # the other is of dev
    (span,) = next(each.spans for each in seen.alerts if each.labels["alertname"] == "KVFull")
    assert span.start == T0 + 4050.0
    assert span.end == pytest.approx(T0 + 4095.0, abs=15)  # to the scrape
    assert [alert.name for alert in opened.alerts if alert.always] == ["Watchdog"]
    assert not [event for event in opened.events if event.kind == "configuration"]  # it changed before
    assert [{**each.labels} for each in seen.infos] == [{**each.labels} for each in then.infos]
    late, _ = shown(kept, Window(T0 + 5000.0, T0 + 7200.0), prod)
    assert {each.labels["alertname"] for each in late.alerts} == {"Watchdog"}


def test_pseudonyms_stand_in_alerts_and_info_labels_too(source: Prometheus) -> None:
    hidden = Bundle(api.packed(source, WINDOW, {}, Settings(), pseudonymise=True))
    seen, opened = shown(hidden, WINDOW, EVERYTHING)
    said = {value for each in (*seen.infos, *seen.alerts) for value in each.labels.values()}
    assert not said & {"a", "b", "prod", "dev", "KVFull", "Watchdog", "Elsewhere"}
    assert {"0.9", "0.95", "page"} <= said
    _, plain = shown(source, WINDOW, EVERYTHING)
    assert [replace(event, replicas=()) for event in opened.events] == [replace(event, replicas=()) for event in plain.events]

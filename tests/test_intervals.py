"""How often a system is scraped: counted in the quick look of a long window, which asks nothing more; else found in raw samples."""

import numpy as np
import pytest
from tests.recordings import T0, Recording

from obs import bundle, intervals
from obs.collect import collect, survey
from obs.config import SourceSettings
from obs.prometheus import Prometheus
from obs.window import Window

HOUR = 3600
DAY = Window(T0, T0 + 24 * HOUR)


@pytest.fixture(scope="module")
def day(served):
    """Two engines that are scraped each 30 s and each minute; the second ends in the afternoon, and an hour of the first was lost."""
    recording = Recording(24 * HOUR, scrape=30).vllm("a", num_requests_running=lambda age: None if 9 * HOUR < age < 10 * HOUR else 2.0)
    other = Recording(24 * HOUR, scrape=60)
    labels = {"job": "sglang", "namespace": "prod", "pod": "b", "instance": "b:1", "model_name": "llama"}
    for name, course in (("num_running_reqs", 2.0), ("num_queue_reqs", 0.0)):
        other.put(f"sglang:{name}", labels, lambda age, course=course: course if age < 15 * HOUR else None)
    text = recording.text().removesuffix("# EOF\n") + other.text()
    return served(text)


def test_a_long_window_counts_samples_in_its_quick_look_and_asks_for_no_raw_ones(day):
    source = Prometheus(SourceSettings(url=day, name="test"))
    found = survey(source, DAY, {})
    assert found.scrapes == {"vllm": 30.0, "sglang": 60.0}
    assert source.requests == 2  # names and the quick look


@pytest.mark.parametrize("window", [Window(T0 + HOUR, T0 + 2 * HOUR), Window(T0 + HOUR, T0 + 1.2 * HOUR)], ids=["an hour", "minutes"])
def test_a_short_window_has_too_few_samples_in_a_step_and_asks_for_raw_ones(day, window):
    source = Prometheus(SourceSettings(url=day, name="test"))
    assert survey(source, window, {}).scrapes == {"vllm": 30.0, "sglang": 60.0}
    assert source.requests == 3


def test_a_bundle_of_a_long_window_keeps_the_intervals_and_reads_as_its_source(day):
    source = Prometheus(SourceSettings(url=day, name="test"))
    kept = bundle.Bundle(bundle.pack(source, DAY, {}))
    assert kept.manifest.scrape_intervals
    ours, theirs = (collect(each, DAY, {}) for each in (kept, source))
    assert ours.scrape_seconds == theirs.scrape_seconds == 30.0
    np.testing.assert_array_equal(ours.signals["kv_use"].values, theirs.signals["kv_use"].values)


@pytest.mark.parametrize(("seconds", "meant"), [(14.93, 15.0), (29.2, 30.0), (7.1, 7.0), (11.6, 12.0), (0.4, 1.0)])
def test_one_sample_more_or_less_does_not_change_what_was_meant(seconds, meant):
    assert intervals.sensible(seconds) == meant

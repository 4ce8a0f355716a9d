"""System by signal: what a real Prometheus measures of each system's own exposition, with its unit, or the stated gap."""

import numpy as np
import pytest
from tests.expositions import HOUR, NAMES, WINDOW, everything, exposition, put, samples
from tests.recordings import Recording

from obs import spelling
from obs.collect import collect
from obs.config import SourceSettings
from obs.language import render
from obs.prometheus import Prometheus
from obs.signals import SIGNALS, Kind, Level, Status
from obs.vocabulary import vocabularies

BY_ID = {v.id: v for v in vocabularies()}
EDGE = [s.id for s in SIGNALS.values() if s.level is Level.GATEWAY]
# per second, seconds, counts: summed over the rows of the reading
TABLE = {
    "ai_gateway": {"gateway_responses": 10, "gateway_errors": 0.5, "gateway_duration": 3, "gateway_ttft": 0.4},
    "envoy": {
        "gateway_attempts": 11, "gateway_retries": 1, "gateway_timeouts": 1.2, "gateway_retry_overflow": 0.2, "gateway_responses": 10,
        "gateway_errors": 0.5, "gateway_active": 7, "gateway_cancelled": 0.15, "gateway_duration": 3,
    },
    "haproxy": {
        "gateway_attempts": 11.2, "gateway_retries": 1.2, "gateway_responses": 9.6, "gateway_errors": 0.5, "gateway_active": 7,
        "gateway_cancelled": 0.05,
    },
    "istio": {
        "gateway_attempts": 11, "gateway_retries": 1, "gateway_timeouts": 0.75, "gateway_retry_overflow": 0.2, "gateway_responses": 10,
        "gateway_errors": 0.95, "gateway_cancelled": 0.05, "gateway_duration": 3,
    },
    "linkerd": {
        "gateway_attempts": 11, "gateway_retries": 1, "gateway_timeouts": 1.5, "gateway_retry_overflow": 0.3, "gateway_responses": 10,
        "gateway_errors": 0.2, "gateway_cancelled": 0.05, "gateway_duration": 3,
    },
    "litellm": {
        "gateway_attempts": 11, "gateway_retries": 1, "gateway_timeouts": 1.2, "gateway_retry_overflow": 0.05, "gateway_responses": 10,
        "gateway_errors": 0.3, "gateway_duration": 3, "gateway_ttft": 0.4,
    },
    "smg": {
        "gateway_attempts": 11, "gateway_retries": 1, "gateway_timeouts": 1.1, "gateway_retry_overflow": 0.2, "gateway_responses": 11,
        "gateway_errors": 1.3, "gateway_active": 9, "gateway_duration": 3, "gateway_ttft": 0.4,
    },
    "vllm_router": {
        "gateway_attempts": 11, "gateway_retries": 1, "gateway_retry_overflow": 0.4, "gateway_responses": 10, "gateway_errors": 0.4,
        "gateway_active": 9, "gateway_duration": 3,
    },
}  # fmt: skip
TABLE["sgl_router"] = TABLE["vllm_router"]

NEWER = {
    "ai_gateway": {f"gen_ai_server_{m}_{p}" for m in ("request_duration", "time_to_first_token") for p in ("sum", "count")}
}  # without units


@pytest.fixture(scope="module")
def measured(served):
    """The readings of a system's namespace, beside all the others; made once."""
    source = Prometheus(SourceSettings(url=served(everything()), name="systems"))
    made = {}

    def of(system):
        if system not in made:
            made[system] = collect(source, WINDOW, {"namespace": (system,)})
        return made[system]

    return of


def figure(reading):
    """The last figure, summed over the rows; of a mean the whole mean."""
    if reading.signal.kind is Kind.MEAN:
        return np.nansum(reading.total[:, -1]) / np.nansum(reading.count[:, -1])
    return np.nansum(reading.values[:, -1])


@pytest.mark.parametrize("system", [name for name in NAMES if BY_ID[name].role == "gateway"])
def test_a_gateway_is_measured_under_its_own_names_and_says_what_it_does_not_tell(system, measured):
    readings = measured(system)
    found = {s: figure(readings.signals[s]) for s in EDGE if readings.signals[s].status is Status.MEASURED}
    assert found == pytest.approx(TABLE[system], rel=1e-6)
    for signal in set(EDGE) - set(found):
        says = render(readings.signals[signal].why, "en")
        assert says == f"Not told by {BY_ID[system].title}. {BY_ID[system].gaps[signal]}".strip(), signal


@pytest.mark.parametrize("vocabulary", [v for v in vocabularies() if v.role in ("gateway",)], ids=lambda v: v.id)
def test_every_signal_is_named_or_a_stated_gap(vocabulary):
    assert sorted(set(EDGE) - set(vocabulary.signals) - set(vocabulary.gaps)) == []


def test_two_layers_of_gateways_stay_two_rows_where_they_are_called_alike(recorded):
    """Their retries multiply; added up as one row, or the one hidden by the other, they would be neither."""
    recording = Recording(seconds=HOUR)
    for system in ("envoy", "haproxy"):
        put(recording, system, {"job": system, "namespace": "prod", "instance": f"{system}:1"})
    readings = collect(recorded(recording), WINDOW, {})
    assert readings.signals["gateway_retries"].rows == ("Envoy llm", "HAProxy llm")
    assert readings.signals["gateway_retries"].values[:, -1] == pytest.approx([1, 1.2])
    assert [labels["system"] for labels in readings.signals["gateway_retries"].row_labels] == ["envoy", "haproxy"]
    assert readings.signals["gateway_errors"].rows == ("Envoy llm", "HAProxy llm")


@pytest.mark.parametrize("system", NAMES)
def test_the_exposition_shows_every_name_that_the_vocabulary_asks_for(system):
    shown = {name for name, _, _, _ in samples(exposition(system))}
    other = {name for name in BY_ID[system].names() if name in NEWER.get(system, ())}
    assert sorted(BY_ID[system].names() - other - spelling.present(BY_ID[system], shown)) == []

"""System by signal: what a real Prometheus measures of each system's own exposition, with its unit, or the stated gap."""

import json
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from tests.conftest import prometheus_server
from tests.expositions import HOUR, NAMES, WINDOW, everything, exposition, put, samples
from tests.recordings import Recording

from obs.collect import collect
from obs.config import SourceSettings
from obs.language import render
from obs.prometheus import Prometheus
from obs.signals import SIGNALS, Kind, Level, Status
from obs.vocabulary import vocabularies

BY_ID = {v.id: v for v in vocabularies()}
EDGE = [s.id for s in SIGNALS.values() if s.level is Level.GATEWAY]
PLAIN = str.maketrans(":", "_")
UNITLESS = sorted(
    f"gen_ai_server_{m}_{part}" for m in ("request_duration", "time_to_first_token") for part in ("sum", "count")
)  # OTLP without suffixes
OF_ENGINES = (
    "kv_use", "requests_running", "requests_waiting", "requests_waiting_capacity", "requests_waiting_deferred", "kv_capacity_tokens",
    "preemptions", "engine_steps", "requests_finished", "engine_errors", "engine_aborts", "admission_rejections", "prompt_tokens",
    "generation_tokens", "prefix_cache_queries", "prefix_cache_hits", "ttft", "itl", "tpot", "e2e_latency", "queue_time", "prefill_time",
    "prompt_length", "output_length", "counter_resets",
)  # fmt: skip
# ratios 0 to 1, per second, seconds, counts, tokens: summed over the rows of the reading
ENGINE = {
    "kv_use": 0.5, "requests_running": 6, "requests_waiting": 2, "requests_waiting_capacity": 1.5, "requests_waiting_deferred": 0.5,
    "kv_capacity_tokens": 20000, "preemptions": 0.1, "engine_steps": 50, "requests_finished": 9, "engine_errors": 0.5,
    "engine_aborts": 0.05, "admission_rejections": 0.1, "prompt_tokens": 1000, "generation_tokens": 500, "prefix_cache_queries": 1000,
    "prefix_cache_hits": 250, "ttft": 0.4, "itl": 0.02, "tpot": 0.02, "e2e_latency": 3, "queue_time": 0.1, "prefill_time": 0.25,
    "prompt_length": 100, "output_length": 50, "counter_resets": 0,
}  # fmt: skip


def less(*signals, **other):
    """The engine's table without these signals, and with other figures."""
    return {**{name: value for name, value in ENGINE.items() if name not in signals}, **other}


WHY = ("requests_waiting_capacity", "requests_waiting_deferred")  # why requests wait: vLLM alone tells
CACHE = ("prefix_cache_queries", "prefix_cache_hits")
LENGTHS = ("prompt_length", "output_length")
TABLE = {
    "vllm-0.33": ENGINE,
    "vllm-0.12": less(*WHY, "engine_errors", "admission_rejections"),
    "vllm-0.10": less(*WHY, "tpot", "engine_errors", "admission_rejections"),
    "vllm-0.7": less(*WHY, *CACHE, "tpot", "engine_errors", "engine_aborts", "admission_rejections", requests_waiting=3),  # one swapped out
    "vllm-0.4": less(*WHY, *CACHE, "tpot", "engine_errors", "engine_aborts", "admission_rejections", "kv_capacity_tokens", "engine_steps",
                     "queue_time", "prefill_time", requests_waiting=3),
    "ray": less(engine_errors=0, engine_aborts=0, admission_rejections=0, preemptions=0),  # made at their first use
    "ray-colon": less(*WHY, "tpot", "kv_capacity_tokens", engine_errors=0, engine_aborts=0, admission_rejections=0, preemptions=0),
    "sglang-0.5": less(*WHY, "engine_steps", "admission_rejections", requests_waiting=3),  # one of them for its grammar
    "sglang-0.5.6": less(*WHY, "tpot", "engine_steps", "engine_errors", "admission_rejections", requests_waiting=3),
    "sglang-0.4": less(*WHY, *LENGTHS, "tpot", "engine_steps", "admission_rejections", "kv_capacity_tokens", "preemptions",
                       "requests_finished", "engine_errors", "engine_aborts", "queue_time", "prefill_time"),
    "tgi": less(*WHY, *CACHE, "kv_use", "preemptions"),
    "trtllm": less(*WHY, *LENGTHS, "preemptions", "engine_steps", "engine_aborts", "admission_rejections"),
    "triton": {**{name: ENGINE[name] for name in (
        "kv_use", "requests_running", "kv_capacity_tokens", "requests_finished", "engine_errors", "engine_aborts",
        "admission_rejections", "ttft", "e2e_latency", "queue_time", "counter_resets")}, "requests_waiting": 3},
    "dynamo_worker": {"kv_use": 0.5, "requests_running": 8, "requests_finished": 9, "engine_errors": 0.5, "e2e_latency": 3,
                      "counter_resets": 0},
    "llamacpp": {name: ENGINE[name] for name in (
        "requests_running", "requests_waiting", "engine_steps", "prompt_tokens", "generation_tokens", "itl", "counter_resets")},
    "lmdeploy": less(*WHY, "tpot", "kv_capacity_tokens", "preemptions", "admission_rejections", requests_waiting=3),
    "kserve": {"requests_finished": 9, "e2e_latency": 3, "counter_resets": 0},
    "dynamo": {
        "gateway_attempts": 11, "gateway_retries": 1, "gateway_timeouts": 0.3, "gateway_retry_overflow": 0.05, "gateway_responses": 10,
        "gateway_errors": 0.5, "gateway_active": 7, "gateway_cancelled": 0.05, "gateway_duration": 3, "gateway_ttft": 0.4,
    },
    "production_stack": {
        "gateway_attempts": 10, "gateway_timeouts": 0.3, "gateway_responses": 10, "gateway_errors": 0.5, "gateway_duration": 3,
    },
    "llm_d": {
        "gateway_timeouts": 0.1, "gateway_responses": 10, "gateway_errors": 0.2, "gateway_active": 7, "gateway_cancelled": 0.05,
        "gateway_duration": 3, "gateway_ttft": 0.4,
    },
    "llm_d-1.0": {"gateway_responses": 10, "gateway_errors": 0.2, "gateway_active": 7, "gateway_duration": 3},
    "ingress_nginx": {
        "gateway_attempts": 10, "gateway_timeouts": 0.3, "gateway_responses": 10, "gateway_errors": 0.5, "gateway_cancelled": 0.05,
        "gateway_duration": 3,
    },
    "ingress_nginx-classes": {"gateway_attempts": 10, "gateway_responses": 10, "gateway_errors": 0.5, "gateway_duration": 3},
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
TABLE["sgl_router"], TABLE["llm_d-1.3"] = TABLE["vllm_router"], TABLE["llm_d"]
TABLE["kong"], TABLE["dynamo_worker-old"] = TABLE["ingress_nginx"], TABLE["dynamo_worker"]
TABLE["trtllm-colon"] = {**TABLE["trtllm"], "engine_aborts": 0.05}  # behind a Dynamo worker
TABLE["llamacpp-old"] = {**TABLE["llamacpp"], "kv_use": 0.5}


UNITS = {  # of the figures above; what an exporter shows in another one is converted by its vocabulary's scale
    "ratio": ("kv_use",),
    "count": ("requests_running", "requests_waiting", "requests_waiting_capacity", "requests_waiting_deferred", "counter_resets",
              "gateway_active"),
    "tokens": ("kv_capacity_tokens", "prompt_length", "output_length"),
    "tokens_per_second": ("prompt_tokens", "generation_tokens", "prefix_cache_queries", "prefix_cache_hits"),
    "seconds": ("ttft", "itl", "tpot", "e2e_latency", "queue_time", "prefill_time", "gateway_ttft", "gateway_duration"),
    "per_second": ("preemptions", "engine_steps", "requests_finished", "engine_errors", "engine_aborts", "admission_rejections",
                   "gateway_attempts", "gateway_retries", "gateway_timeouts", "gateway_retry_overflow", "gateway_responses",
                   "gateway_errors", "gateway_cancelled"),
}  # fmt: skip


def test_the_figures_of_the_table_are_in_these_units():
    of = {signal: unit for unit, signals in UNITS.items() for signal in signals}
    assert {signal: SIGNALS[signal].unit for signal in (*OF_ENGINES, *EDGE)} == of


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


def vocabulary_of(name):
    return BY_ID[name.partition("-")[0]]


@pytest.mark.parametrize("name", NAMES)
def test_a_system_is_measured_under_its_own_names_and_says_what_it_does_not_tell(name, measured):
    readings, vocabulary = measured(name), vocabulary_of(name)
    signals = EDGE if vocabulary.role == "gateway" else OF_ENGINES
    found = {s: figure(readings.signals[s]) for s in signals if readings.signals[s].status is Status.MEASURED}
    assert found == pytest.approx(TABLE[name], rel=1e-6)
    for signal in set(signals) - set(found):
        says = render(readings.signals[signal].why, "en")
        if signal in vocabulary.gaps:
            why = vocabulary.gaps[signal]
            assert says == f"Not told by {vocabulary.title}{': ' if why else ''}{why}.", signal
        else:  # another version has it
            assert says.startswith("Looked for "), signal
            assert vocabulary.signals[signal].without in says
    for signal in set(found) & set(vocabulary.signals):
        lacks = vocabulary.signals[signal].lacks
        assert not lacks or render(readings.signals[signal].why, "en") == f"Not told by {vocabulary.title}: {lacks}."


@pytest.mark.parametrize("name", [name for name in NAMES if vocabulary_of(name).role == "engine"])
def test_a_process_is_one_replica_whatever_its_series_carry(name, measured):
    """Tensor-parallel ranks, priorities, API servers, copies of a router: none of them is a process of its own."""
    assert [(r.name, r.system) for r in measured(name).replicas] == [
        ({"ray": "llm#r1", "ray-colon": "w1"}.get(name, f"{name}-0"), vocabulary_of(name).id)
    ]


def test_the_copies_that_a_router_makes_are_no_replicas(measured):
    assert measured("production_stack").replicas == ()
    assert not measured("production_stack").engine_seen


@pytest.mark.parametrize("vocabulary", [v for v in vocabularies() if v.role in ("engine", "gateway")], ids=lambda v: v.id)
def test_every_signal_is_named_or_a_stated_gap(vocabulary):
    signals = EDGE if vocabulary.role == "gateway" else OF_ENGINES
    assert sorted(set(signals) - set(vocabulary.signals) - set(vocabulary.gaps)) == []


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


@pytest.mark.parametrize("vocabulary", [v for v in vocabularies() if v.role in ("engine", "gateway")], ids=lambda v: v.id)
def test_the_expositions_show_every_name_that_a_vocabulary_asks_for(vocabulary):
    shown = {sample[0] for name in NAMES if vocabulary_of(name) is vocabulary for sample in samples(exposition(name))}
    assert sorted(name for name in vocabulary.names() if name.translate(PLAIN) not in {s.translate(PLAIN) for s in shown}) in ([], UNITLESS)


def test_a_real_prometheus_scrapes_every_exposition_and_takes_every_sample(tmp_path):
    """The texts are what a target may really say: none is refused, and no sample is lost on the way."""
    with targets({f"/{name}": exposition(name) for name in NAMES}) as address:
        jobs = "".join(f"- {{job_name: {name}, metrics_path: /{name}, static_configs: [{{targets: ['{address}']}}]}}\n" for name in NAMES)
        with prometheus_server(tmp_path / "tsdb", f"global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}") as url:
            wanted = {name: len(samples(exposition(name))) for name in NAMES}
            assert eventually(lambda: scraped(url), wanted) == wanted


def scraped(url):
    """Samples of the last scrape, by job; -1 where it failed."""
    query = urllib.parse.quote("scrape_samples_scraped - 1000 * (up == bool 0)")
    with urllib.request.urlopen(f"{url}/api/v1/query?query={query}") as answer:
        rows = json.load(answer)["data"]["result"]
    return {row["metric"]["job"]: int(row["value"][1]) for row in rows}


def eventually(ask, wanted, seconds=20):
    """What `ask` gives once it is what is wanted, or at the end."""
    end = time.monotonic() + seconds
    while (found := ask()) != wanted and time.monotonic() < end:
        time.sleep(0.2)
    return found


@contextmanager
def targets(texts):
    """A server that shows these texts by path; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = texts[self.path].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()

"""What carries a fleet that has outgrown one Prometheus: VictoriaMetrics for real, others by stand-ins; figures compared."""

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest
from tests.exposition import openmetrics
from tests.expositions import HOUR, everything, put
from tests.incidents import BY_NAME, truth
from tests.recordings import T0, Recording
from tests.scrapes import read
from tests.standins import Mimir, Plain, Prometheus3, Thanos, before
from tests.test_systems import EDGE, OF_ENGINES, TABLE, WINDOW, figure, vocabulary_of

from obs.collect import collect
from obs.config import SourceSettings
from obs.diagnosis import diagnose
from obs.errors import SourceError
from obs.flavors import DIFFERS, remarks
from obs.language import render
from obs.prometheus import Prometheus
from obs.signals import Status
from obs.source import About
from obs.window import Window

KINDS = (  # one for each way of asking: ranks, old names, estimates, sums, expressions, labels that are made, copies that are left out
    "vllm-0.33", "vllm-0.4", "ray", "sglang-0.5", "tgi", "triton", "trtllm-colon", "lmdeploy", "envoy", "istio", "litellm", "smg",
    "llm_d-1.3", "ingress_nginx", "production_stack",
)  # fmt: skip
INCIDENTS = ("a healthy hour", "more than the KV pool holds", "a retry storm", "a GPU out-of-memory event")


@pytest.fixture(scope="module")
def victoria(tmp_path_factory):
    """Debian's VictoriaMetrics with the systems, the incidents, and a replica that ends; (source, seconds that all is moved back).

    It takes no sample of the future, so everything is moved to two days ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    folder = tmp_path_factory.mktemp("victoria")
    command = [
        "victoria-metrics",
        f"-storageDataPath={folder}",
        f"-httpListenAddr={url[7:]}",
        "-retentionPeriod=100y",
        "-loggerLevel=ERROR",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait(url, server)
        back = T0 - (int(time.time()) // 86400 - 2) * 86400
        ends = Recording().vllm("a", until=900, namespace="ends").vllm("b", namespace="ends").text()
        texts = [openmetrics(truth(name), BY_NAME[name].how, namespace=name.replace(" ", "-")) for name in INCIDENTS]
        for text in (everything(), ends, *texts):
            body = re.sub(
                r" ([\d.]+)$", lambda m: f" {round((float(m[1]) - back) * 1000)}", re.sub(r"^#.*\n", "", text, flags=re.M), flags=re.M
            )
            urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/import/prometheus", body.encode())).close()
        urllib.request.urlopen(f"{url}/internal/force_flush").close()
        yield Prometheus(SourceSettings(url=url, name="victoria")), back
    finally:
        server.terminate()
        server.wait(10)


def wait(url, server):
    end = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=1).close()
            return
        except OSError:
            assert server.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)


def test_victoria_is_known_and_what_differs_is_said(victoria):
    about = victoria[0].about()
    assert about.flavor == "victoriametrics"
    assert "extrapolated" in " ".join(render(says, "en") for says in remarks(about))


@pytest.mark.parametrize("name", KINDS)
def test_victoria_measures_what_prometheus_measures(name, victoria):
    """Steady counters, so that what it does not extrapolate makes no difference."""
    source, back = victoria
    readings = collect(source, Window(WINDOW.start - back, WINDOW.end - back), {"namespace": (name,)}, buckets=False)
    signals = EDGE if vocabulary_of(name).role == "gateway" else OF_ENGINES
    found = {s: figure(readings.signals[s]) for s in signals if readings.signals[s].status is Status.MEASURED}
    assert found == pytest.approx(TABLE[name], rel=0.01)


@pytest.mark.parametrize("name", INCIDENTS)
def test_victoria_gives_the_same_verdicts(name, victoria):
    source, back = victoria
    how = BY_NAME[name].how
    real = diagnose(collect(source, Window(T0 + how.start - back, T0 + how.end - back), {"namespace": (name.replace(" ", "-"),)}))
    direct = diagnose(read(truth(name), how))
    assert (real.primary, real.now) == (direct.primary, direct.now)
    if real.primary != "none":
        ours, theirs = direct.verdict(direct.primary).episodes[0], real.verdict(real.primary).episodes[0]
        assert theirs.replicas == ours.replicas
        assert theirs.start + back == pytest.approx(ours.start, abs=60)


def test_a_series_that_ends_does_not_linger_in_victoria(victoria):
    source, back = victoria
    readings = collect(source, Window(T0 + 300 - back, T0 + 1800 - back), {"namespace": ("ends",)})
    kv = readings.signals["kv_use"]
    last = {
        name: T0 + 1800 - readings.grid.times[np.flatnonzero(np.isfinite(row))[-1]] - back
        for name, row in zip(kv.rows, kv.values, strict=True)
    }
    assert last["b"] == pytest.approx(0, abs=30)
    assert last["a"] >= 900 - 120


def asked(base, query, at):
    """The series of an instant query, as (labels, value)."""
    with urllib.request.urlopen(f"{base}/api/v1/query?{urllib.parse.urlencode({'query': query, 'time': at})}") as answer:
        return [(row["metric"], float(row["value"][1])) for row in json.load(answer)["data"]["result"]]


def test_what_is_said_to_differ_does_differ(victoria, served):
    """Extrapolation, kept names and what lingers, of the same samples: else the remarks on the Data page would be of yesterday."""
    source, back = victoria
    ours, theirs = served(Recording().vllm("a", until=900, namespace="ends")), source.session.base
    counter, gauge = (f'vllm:{end}{{namespace="ends",pod="a"}}' for end in ("generation_tokens_total", "num_requests_running"))
    early = f"rate({counter}[1m])"  # 30 s of samples in a minute: 1500 tokens, of which the first one's moment is known
    assert asked(ours, early, T0 + 30)[0][1] == pytest.approx(25)
    assert asked(theirs, early, T0 + 30 - back)[0][1] == pytest.approx(50)
    held = f"max_over_time({gauge}[1m])"
    assert "__name__" not in asked(ours, held, T0 + 600)[0][0]
    assert asked(theirs, held, T0 + 600 - back)[0][0]["__name__"] == "vllm:num_requests_running"
    assert asked(theirs, gauge, T0 + 900 - back) != []  # the last sample is 15 s old
    assert asked(theirs, gauge, T0 + 1200 - back) == []


# ---------------------------------------------------------------- stand-ins


@pytest.fixture(scope="module")
def url(served):
    recording = put(Recording(seconds=HOUR), "ai_gateway", {"job": "otel", "namespace": "ai_gateway", "instance": "g:1"})
    return served(put(recording, "vllm-0.33", {"job": "vllm", "namespace": "ai_gateway", "pod": "a", "instance": "a:8000"}))


def through(url, how, **settings):
    with before(url, how) as address:
        return collect(source := Prometheus(SourceSettings(url=address + how.prefix, name="x", **settings)), WINDOW, {}), source.about()


def test_the_stand_in_itself_changes_nothing(url):
    ours, theirs = collect(Prometheus(SourceSettings(url=url, name="x")), WINDOW, {}), through(url, Plain())[0]
    for name, reading in ours.signals.items():
        np.testing.assert_array_equal(theirs.signals[name].values, reading.values)


def test_names_with_dots_are_read_from_a_prometheus_3(url):
    readings, about = through(url, Prometheus3())
    assert (about.flavor, about.version) == ("prometheus", "3.5.0")
    assert "does not count" in render(remarks(about)[0], "en")
    ttft = readings.signals["gateway_ttft"]
    assert ttft.metric == "gen_ai.server.time_to_first_token"
    assert ttft.rows == ("llama",)  # the dotted label
    assert figure(ttft) == pytest.approx(0.4)
    assert figure(readings.signals["gateway_duration"]) == pytest.approx(3)
    assert figure(readings.signals["gateway_errors"]) == pytest.approx(0.5)  # by a dotted label: without its dots nothing has it
    assert readings.buckets["gateway_ttft"].bounds[:2].tolist() == [0.001, 60]
    assert figure(readings.signals["kv_use"]) == 0.5


def test_a_query_that_names_a_dotted_metric_bare_is_refused_by_the_stand_in(url):
    """So that the test before this one cannot pass by chance."""
    with before(url, Prometheus3()) as address, pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{address}/api/v1/query?query=gen_ai.server.request.duration_sum")


def test_a_store_that_is_away_is_said_beside_what_thanos_still_knows(url):
    readings, about = through(url, Thanos())
    assert about.flavor == "thanos"
    assert [render(note, "en") for note in readings.notes if "StoreAPI" in render(note, "en")] != []
    assert figure(readings.signals["kv_use"]) == 0.5


def test_mimir_wants_a_tenant_and_answers_with_it(url):
    with pytest.raises(SourceError) as error:
        through(url, Mimir())
    assert "401" in render(error.value.says, "en") or "tenant" in render(error.value.says, "en").lower()
    readings, about = through(url, Mimir(), tenant="team-a")
    assert about.flavor == "mimir"
    assert figure(readings.signals["kv_use"]) == 0.5


def test_every_flavour_that_is_told_apart_has_its_remarks():
    assert all(remarks(About("x", flavor, "1.0")) for flavor in DIFFERS)
    assert remarks(About("x", "prometheus", "2.42.0")) == ()
    assert remarks(About("x", "unknown", "")) == ()

"""Prometheus as a source: every fault is a sentence with the address and what to do, and joined queries lose nothing."""

import socket
import time

import numpy as np
import pytest
from tests.faults import Reply, Seen, serving, success
from tests.recordings import T0, Recording

from obs.config import SourceSettings
from obs.errors import CallError, SourceError
from obs.language import render
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.source import Query

GRID = Grid(T0, 15, 5)
ONE = [Query("a", "a")]


def source(url: str, **more) -> Prometheus:
    return Prometheus(SourceSettings(url=url, **more))


def refusal(reply: Reply, **more) -> str:
    """What is said when every request is answered so."""
    with serving(reply) as (url, _), pytest.raises(SourceError) as error:
        source(url, **more).answer(ONE, GRID)
    said = render(error.value.says, "en")
    assert "127.0.0.1" in said
    assert "Traceback" not in said
    return said


# ---------------------------------------------------------------- what cannot be reached


def test_a_refused_connection_is_said_within_two_seconds():
    with socket.socket() as taken:  # bound, not listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(SourceError) as error:
            source(url).metric_names(T0, T0 + 60)
        assert time.monotonic() - began < 2
    said = render(error.value.says, "en")
    assert "refused the connection" in said
    assert url in said


def test_an_unknown_host_is_said():
    with pytest.raises(SourceError) as error:
        source("http://no-such-host.invalid:9090").about()
    assert "not known" in render(error.value.says, "en")


def test_a_port_without_tls_is_said():
    with serving(Reply()) as (url, _), pytest.raises(SourceError) as error:
        source(url.replace("http:", "https:")).about()
    assert "certificate" in render(error.value.says, "en")


def test_a_server_that_is_silent_is_given_up_in_time():
    began = time.monotonic()
    said = refusal(Reply(wait=3), timeout_seconds=0.3)
    assert time.monotonic() - began < 4
    assert "did not answer within" in said
    assert "OBS_PROMETHEUS_TIMEOUT_SECONDS" in said


def test_a_server_that_drips_is_given_up_in_time():
    began = time.monotonic()
    said = refusal(Reply(body=b" " * 200, drip=0.1), timeout_seconds=0.3)
    assert time.monotonic() - began < 4
    assert "did not answer within" in said


# ---------------------------------------------------------------- what answers wrongly


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(401, "Unauthorized"), ("login", "OBS_PROMETHEUS_TOKEN_FILE")),
        (Reply(403, "no"), ("login", "OBS_PROMETHEUS_TENANT")),
        (Reply(404, "404 page not found"), ("no Prometheus API",)),
        (Reply(429, ""), ("too often",)),
        (Reply(500, "boom"), ("fault of its own", "500")),
        (Reply(502, "<html>"), ("fault of its own", "502")),
        (Reply(503, {"status": "error", "error": "query timed out in expression evaluation"}), ("gave up", "shorter window")),
        (Reply(400, {"status": "error", "error": "parse error: unexpected <eof>"}), ("refused a query", "parse error")),
        (Reply(422, {"status": "error", "error": "query would load too many samples into memory"}), ("holds too much", "shorter window")),
        (Reply(400, {"status": "error", "error": "exceeded maximum resolution of 11,000 points per timeseries"}), ("holds too much",)),
        (Reply(413, ""), ("holds too much",)),
        (Reply(200, "<html><title>Grafana</title>"), ("not JSON",)),
        (Reply(200, '{"status":"success","data":{"resultType":"matrix","resu'), ("not JSON, or only half",)),
        (Reply(200, '{"status":"success","data":{}}' + " " * 50, cut=40), ("broke off half-way",)),
        (Reply(200, {"status": "success"}), ("not as a Prometheus API",)),
        (Reply(200, {"status": "error", "error": "no"}), ("not as a Prometheus API",)),
        (Reply(200, []), ("not as a Prometheus API",)),
        (Reply(200, {"status": "success", "data": {}}), ("something other than the series",)),
        (Reply(200, {"status": "success", "data": ["a"]}), ("something other than the series",)),
        (success("text"), ("something other than the series",)),
        (success([{"metric": {}}]), ("something other than the series",)),
        (success([1, 2]), ("something other than the series",)),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_a_sentence(reply, words):
    said = refusal(reply)
    for word in words:
        assert word in said


@pytest.mark.parametrize("values", [[[T0, "abc"]], [["x", "1"]], [[T0]], [5], "text", [[T0, None]]])
def test_samples_that_are_none_are_a_sentence(values):
    assert "something other than the series" in refusal(success([{"metric": {}, "values": values}]))


@pytest.mark.parametrize("data", [{"a": 1}, "x", 5])
def test_metric_names_that_are_none_are_a_sentence(data):
    with serving(Reply(body={"status": "success", "data": data})) as (url, _), pytest.raises(SourceError):
        source(url).metric_names(T0, T0 + 60)


# ---------------------------------------------------------------- secrets


def test_credentials_are_sent_and_never_said(tmp_path):
    with serving(Reply(401, "no")) as (url, seen):
        hidden = source(url.replace("http://", "http://user:hunter2@"))
        with pytest.raises(SourceError) as error:
            hidden.answer(ONE, GRID)
    assert seen[0].headers["Authorization"].startswith("Basic ")
    assert "hunter2" not in render(error.value.says, "en") + str(error.value) + str(error.value.__cause__) + repr(hidden.about)


def test_a_token_is_read_again_for_each_request(tmp_path):
    token = tmp_path / "token"
    token.write_text("first\n")
    with serving(success([])) as (url, seen):
        asked = source(url, token_file=token)
        asked.answer(ONE, GRID)
        token.write_text("second")
        asked.answer(ONE, GRID)
    assert [request.headers["Authorization"] for request in seen] == ["Bearer first", "Bearer second"]


def test_a_netrc_file_does_not_replace_the_token(tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login other password hunter2\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    token = tmp_path / "token"
    token.write_text("mine")
    with serving(success([])) as (url, seen):
        source(url, token_file=token).answer(ONE, GRID)
        source(url).answer(ONE, GRID)
    assert [request.headers.get("Authorization") for request in seen] == ["Bearer mine", None]


def test_a_missing_token_file_names_the_setting(tmp_path):
    with serving(success([])) as (url, _), pytest.raises(CallError) as error:
        source(url, token_file=tmp_path / "none").answer(ONE, GRID)
    assert "OBS_PROMETHEUS_TOKEN_FILE" in render(error.value.says, "en")


def test_the_tenant_is_sent_and_no_compression_is_asked_for():
    with serving(success([])) as (url, seen):
        source(url, tenant="team-a").answer(ONE, GRID)
    assert seen[0].headers["X-Scope-OrgID"] == "team-a"
    assert seen[0].headers["Accept-Encoding"] == "identity"


# ---------------------------------------------------------------- joined queries


def test_joined_queries_give_what_single_ones_give(lab):
    grid = Grid.covering(1796036544, 1796036900, 5)
    queries = [
        Query("kv", "max by (instance) (vllm:kv_cache_usage_perc)"),
        Query("same", "max by (instance) (vllm:kv_cache_usage_perc)"),  # the same labels: `or` would drop it
        Query("none", "no_such_metric"),
        Query("rate", "sum by (instance) (rate(vllm:num_preemptions_total[60s]))"),
        Query("rq|buckets", "sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[60s]))"),
    ]
    before = lab.requests
    joined = lab.answer(queries, grid)
    assert lab.requests - before == 2  # distributions go by themselves
    for query, answer in zip(queries, joined, strict=True):
        alone = lab.answer([query], grid)[0]
        order = [alone.labels.index(labels) for labels in answer.labels]
        assert len(answer.labels) == len(alone.labels)
        np.testing.assert_array_equal(answer.values, alone.values[order])
    assert joined[0].values.max() == 1.0
    assert len(joined[4].labels) == 23


def test_one_bad_query_does_not_spoil_the_others(lab):
    good = Query("good", "max by (instance) (vllm:num_requests_running)")
    answers = lab.answer([good, Query("bad", "max by (("), good], Grid.covering(1796036544, 1796036900, 5))
    assert answers[1].refused is not None
    assert "parse error" in render(answers[1].refused, "en")
    assert answers[0].refused is None
    assert answers[2].values.max() == 64


def test_what_is_too_much_together_is_asked_for_singly():
    def picky(request: Seen) -> Reply:
        if " or " in request.params["query"][0]:
            return Reply(422, {"status": "error", "error": "query processing would load too many samples into memory"})
        return success([{"metric": {"q": request.params["query"][0]}, "values": [[T0, "1"]]}])

    with serving(picky) as (url, seen):
        answers = source(url).answer([Query(name, name) for name in "abcd"], GRID)
    assert [answer.labels[0]["q"] for answer in answers] == list("abcd")
    assert len(seen) == 7


def test_a_batch_that_is_too_slow_is_halved_and_a_single_query_is_given_up():
    def slow(request: Seen) -> Reply:
        return (
            Reply(503, {"status": "error", "error": "query timed out in expression evaluation"})
            if "or" in request.params["query"][0]
            else success([])
        )

    with serving(slow) as (url, seen):
        assert len(source(url).answer([Query(name, name) for name in "ab"], GRID)) == 2
        with pytest.raises(SourceError, match="gave up"):
            source(url).answer([Query("for", "for")], GRID)
    assert len(seen) == 4


def test_a_long_query_travels_in_the_body():
    with serving(success([])) as (url, seen):
        source(url).answer([Query("long", "x" * 5000)], GRID)
        source(url).answer(ONE, GRID)
    assert [request.method for request in seen] == ["POST", "GET"]
    assert seen[0].query == ""
    assert seen[0].params["query"] == ["x" * 5000]
    assert seen[0].params["timeout"] == ["10s"]
    assert float(seen[0].params["start"][0]) == T0


def test_a_warning_of_the_source_is_passed_on():
    with serving(success([], warnings=["partial response: store down"])) as (url, _):
        answer = source(url).answer(ONE, GRID)[0]
    assert "partial response" in render(answer.notes[0], "en")


def test_infinite_and_missing_samples_are_no_figures():
    values = [[T0, "1"], [T0 + 15, "NaN"], [T0 + 30, "+Inf"], [T0 + 60, "2"]]
    with serving(success([{"metric": {"__name__": "a", "x": "y"}, "values": values}])) as (url, _):
        answer = source(url).answer(ONE, GRID)[0]
    assert answer.labels == ({"x": "y"},)
    np.testing.assert_array_equal(answer.values, [[1, np.nan, np.nan, np.nan, 2]])


# ---------------------------------------------------------------- what it says of itself


@pytest.mark.parametrize(
    ("data", "flavor"),
    [
        ({"version": "2.53.0", "revision": "x", "goVersion": "go1.22"}, "prometheus"),
        ({"version": "2.24.0"}, "victoriametrics"),
        ({"version": ""}, "victoriametrics"),
        ({"application": "Grafana Mimir", "version": "2.13.0", "goVersion": "go1.22"}, "mimir"),
        ({"version": "0.36.0", "revision": "x", "goVersion": "go1.22"}, "thanos"),
    ],
)
def test_the_flavour_is_told_by_the_build_information(data, flavor):
    with serving(Reply(body={"status": "success", "data": data})) as (url, _):
        about = source(url).about()
    assert (about.flavor, about.version) == (flavor, data["version"])


def test_an_api_without_build_information_is_no_error():
    with serving(Reply(404, "no")) as (url, _):
        assert source(url).about().flavor == "unknown"


def test_the_real_one_is_a_prometheus(lab):
    assert lab.about().flavor == "prometheus"
    assert lab.about().version.startswith("2.")


@pytest.mark.parametrize("scrape", [5, 15, 30, 60])
def test_the_scrape_interval_is_found_in_spite_of_lost_scrapes(recorded, scrape):
    recording = Recording(1800, scrape).put("a", {"i": "1"}, lambda age: None if age // scrape % 9 == 4 else 1.0)
    assert recorded(recording).scrape_intervals(["a"], "", T0, T0 + 1800) == [scrape]


def test_the_scrape_interval_is_found_where_the_series_ended_long_before(recorded):
    asked = recorded(Recording(7200, 15).put("a", {}, lambda age: 1.0 if age < 2400 else None))
    assert asked.scrape_intervals(["a", "b"], "", T0, T0 + 7200) == [15, None]


def test_systems_that_are_scraped_at_their_own_intervals_are_told_apart_in_one_request(recorded):
    recording = Recording(1800, 5).put("a", {"zone": "1"}, lambda age: None if age % 30 else 1.0).put("b", {"zone": "1"}, lambda age: 1.0)
    asked = recorded(recording.put("c", {"zone": "2"}, lambda age: 1.0))
    before = asked.requests
    assert asked.scrape_intervals(["a", "b"], 'zone="1"', T0, T0 + 1800) == [30, 5]
    assert asked.requests == before + 1
    assert asked.scrape_intervals(["c"], 'zone="1"', T0, T0 + 1800) == [None]

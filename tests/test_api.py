"""`GET /api/v1/diagnosis` without its server: parameters in, status and object out."""

import json
import socket

import pytest

from obs import config
from obs.api import diagnosis_response

NOW = 1796044805.0
PRESSURE = {"from": ["2026-11-30T10:58:54Z"], "to": ["2026-11-30T11:08:55Z"]}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("OBS_PROMETHEUS_URL", "OBS_CONFIG", "OBS_BUNDLE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"from": ["soon"]}, "from was ignored: soon is no time"),
        ({"from": ["now"], "to": ["now-1h"]}, "swap the two"),
        ({"from": ["now-10y"], "to": ["now"]}, "the longest is 31 d"),
        ({"row": ["<script>"]}, "There is no row <script>"),
        ({"source": ["nowhere"]}, "There is no source called “nowhere”"),
        ({"bundle": ["../../etc/passwd"]}, "../../etc/passwd cannot be the id of a recording"),
        ({"bundle": ["0123456789abcdef"]}, "There is no bundle with the id"),
        ({"9x": ["1"]}, "9x was ignored"),
    ],
    ids=str,
)
def test_a_wrong_call_is_400_with_a_sentence(params, error):
    status, body = diagnosis_response(params, config.load(), NOW)
    assert (status, list(body)) == (400, ["error"])
    assert error in body["error"]


def test_the_sentence_is_in_the_language_asked_for():
    _, body = diagnosis_response({"from": ["pronto"], "lang": ["es"]}, config.load(), NOW)
    assert "no es una hora" in body["error"]


def test_a_source_that_cannot_be_reached_is_502_with_a_sentence():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    status, body = diagnosis_response({}, config.load(prometheus_url=f"http://127.0.0.1:{port}"), NOW)
    assert (status, list(body)) == (502, ["error"])
    assert "refused the connection" in body["error"]


def test_the_parameters_of_a_link_give_the_object():
    status, body = diagnosis_response(PRESSURE | {"bundle": ["sample"], "tz": ["Europe/Madrid"], "row": ["gpu_oom"]}, config.load(), NOW)
    json.dumps(body, allow_nan=False)
    assert (status, body["schema"], body["primary"], body["source"]["flavor"]) == (200, 1, "latency_without_errors", "bundle")


def test_without_a_source_it_is_the_sample_recording_as_on_the_page():
    status, body = diagnosis_response({}, config.load(), NOW)
    assert (status, body["source"]["name"]) == (200, "sample")


def test_a_scope_that_nothing_has_is_insufficient_and_no_row_is_clear():
    hostile = ['"} or vector(1) #', "<script>", "x" * 10_000, "a\nb"]
    status, body = diagnosis_response(PRESSURE | {"namespace": hostile}, config.load(), NOW)
    assert (status, body["primary"], body["scope"]) == (200, "insufficient", {"namespace": hostile})
    assert {row["state"] for row in body["rows"]} == {"unknown"}

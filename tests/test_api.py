"""`GET /api/v1/diagnosis` without its server: parameters in, status and object out."""

import json
import socket

import pytest

import catalogues
from obs import api, bundle, config
from obs.api import diagnosis_response
from obs.report_json import to_json

NOW = 1796044805.0
PRESSURE = {"from": ["2026-11-30T10:58:54Z"], "to": ["2026-11-30T11:08:55Z"]}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("OBS_PROMETHEUS_URL", "OBS_CONFIG", "OBS_BUNDLE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"from": ["soon"]}, "from was refused: soon is no time"),
        ({"from": ["now"], "to": ["now-1h"]}, "swap the two"),
        ({"from": ["now-10y"], "to": ["now"]}, "the longest is 31 d"),
        ({"row": ["<script>"]}, "There is no row <script>"),
        ({"source": ["nowhere"]}, "There is no source called “nowhere”"),
        ({"bundle": ["../../etc/passwd"]}, "../../etc/passwd cannot be the id of a recording"),
        ({"bundle": ["0123456789abcdef"]}, "There is no bundle with the id"),
        ({"orgId": ["1"]}, "orgId was refused: it belongs to Grafana"),
        ({"compare_from": ["now-2h"]}, "A comparison needs both compare_from and compare_to."),
        ({"source": ["a"], "bundle": ["sample"]}, "Name a source or a recording, not both."),
        ({"namespace": ["\ufffd\x00"]}, "The value of “namespace” holds a NUL"),
        ({"namespace": ["a", "\udcff"]}, "The value of “namespace” holds a NUL or bytes that are no text"),
        ({"9x": ["1"]}, "9x was refused: it cannot be"),
    ],
    ids=str,
)
def test_a_wrong_call_is_400_with_a_sentence(params, error):
    status, body = diagnosis_response(params, config.load(), NOW)
    assert (status, list(body)) == (400, ["error"])
    assert error in body["error"]


def test_every_note_of_the_page_is_a_refusal_here():
    """None of the notes of `links.parse` says that something was ignored or left out, where nothing was done at all."""
    written = {key for _, key in catalogues.sentences(catalogues.ROOT / "src/obs/links.py")}
    softened = {key for key in written if isinstance(key, str) and ("ignored" in key or "left out" in key or "is shown" in key)}
    assert len(softened) == 5
    assert softened == set(api._REFUSED)


def test_a_start_that_is_still_to_come_is_not_called_backwards():
    settings = config.load(prometheus_url="http://127.0.0.1:9")
    status, body = diagnosis_response({"from": ["2030-01-01"]}, settings, NOW)
    assert (status, body["error"]) == (
        400,
        "The window starts at 2030-01-01T00:00:00Z, which is still to come; choose an earlier start.",
    )


def test_a_bundle_tells_the_scope_that_it_was_made_for(tmp_path):
    kept = tmp_path / "kept.obs.zip"
    bundle.write(kept, bundle.sample(), bundle.sample().window, {"namespace": ("default",)})
    found = api.report(bundle.Bundle(kept), api.strict({}), config.load(), NOW)
    assert to_json(found)["scope"] == {"namespace": ["default"]}


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

"""A bundle that is handed on: its verdict is derived again, its names can be pseudonyms, and no secret is in it."""

import io
import json
import re
import zipfile

import pytest
from tests.recordings import T0, Recording
from tests.test_bundle import rebuilt

from obs import api, bundle_file, shelf
from obs.bundle import Bundle, content_id, sample
from obs.cli import main
from obs.config import Settings, SourceSettings
from obs.errors import CallError
from obs.language import render
from obs.links import View
from obs.prometheus import Prometheus
from obs.window import Window

KV = Window(1796036400, 1796037000)
SECRET = "hunter2-" + "s3cr3t"


@pytest.fixture(scope="module")
def made() -> bytes:
    return api.packed(sample(), KV, {}, Settings())


def texts(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        manifest = archive.read("manifest.json")
    labels = [json.dumps(row) for found, _ in bundle_file.load(data, "x")[1] for row in found]
    return data + manifest + "\n".join(labels).encode()


def judged(data: bytes, settings: Settings | None = None):
    """(states by row, notes) of a bundle over its own window, derived again."""
    held = Bundle(data, "kept.obs.zip")
    found = api.report(held, View(), settings or Settings(), 0.0)
    return {v.row: v.state.value for v in found.diagnosis.verdicts}, [render(note, "en") for note in found.readings.notes]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("manifest", [{"start": float("nan")}, {"grid_start": float("nan")}, {"end": 1e300}, {"end": 5.0}, {"start": -1}])
def test_times_that_are_none_are_refused(made, manifest):
    with pytest.raises(CallError, match=r"manifest is wrong|whole evidence bundle"):
        Bundle(rebuilt(made, manifest), "x.zip")


def test_members_with_paths_for_names_are_never_written_anywhere(made, tmp_path):
    out = io.BytesIO(made)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("../../escaped.txt", b"x")
        archive.writestr("/etc/escaped.txt", b"x")
    found = shelf.upload(out.getvalue(), "../../../etc/passwd", tmp_path / "shelf")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{found.id}.obs.zip"]


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + b"\x00" * 18, b"<html>", b"\x00" * 4096])
def test_an_upload_that_is_no_bundle_is_not_kept(data, tmp_path):
    with pytest.raises(CallError, match="not a whole evidence bundle"):
        shelf.upload(data, "x.zip", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert shelf.uploaded(content_id(data)) is None


# ---------------------------------------------------------------- where it lies


def test_an_upload_opens_by_its_id_with_and_without_a_folder(made, tmp_path):
    found = shelf.upload(made, "night.zip", None)
    assert shelf.named(found.id, None).id == found.id
    assert shelf.uploaded(found.id) == made
    shelf.upload(made, "night.zip", tmp_path)
    (one,) = shelf.kept(tmp_path, None, tmp_path / "none")
    assert (one.id, one.manifest.start, one.manifest.end) == (found.id, KV.start, KV.end)


def test_a_list_of_bundles_says_of_each_what_is_wrong_and_which_covers_a_window(made, tmp_path):
    (tmp_path / "a.zip").write_bytes(made)
    (tmp_path / "copy.zip").write_bytes(made)
    (tmp_path / "cut.zip").write_bytes(made[:-300])
    (tmp_path / "notes.txt").write_text("no bundle")
    found = shelf.kept(tmp_path)
    assert [one.name for one in found] == ["a.zip", "cut.zip"]
    assert found[1].manifest is None
    assert "cut off" in render(found[1].wrong, "en")
    assert found[0].covers(Window(KV.start - 300, KV.start + 300))
    assert not found[0].covers(Window(KV.start - 3600, KV.start + 300))
    assert not found[1].covers(KV)


# ---------------------------------------------------------------- the verdict, derived again


def test_a_bundle_gives_the_verdict_that_it_was_made_with_and_nothing_is_said(made):
    states, notes = judged(made)
    assert states == Bundle(made).manifest.judged.states
    assert states["latency_without_errors"] == "applies"
    assert [note for note in notes if "kept" in note] == []


def test_a_verdict_that_is_another_one_now_says_which_threshold_changed(made):
    states, notes = judged(made, Settings(thresholds={"hold": 1e6, "itl_ratio": 1.6}))
    assert states["latency_without_errors"] != "applies"
    said = " ".join(notes)
    assert "The verdict is not the one that was given when these readings were kept." in said
    assert "Latency rises without errors: then applies, now" in said
    assert re.search(r"Threshold hold: then 2 min, now", said)
    assert "Threshold itl_ratio: then 1.5×, now 1.6×" in said or "Threshold itl_ratio: then" in said
    assert "rules" not in said  # the version is the same, and a threshold explains it


def test_a_verdict_of_other_rules_names_the_version(made):
    old = Bundle(made).manifest
    earlier = old.model_copy(
        update={"made_by": "obs 0.0.1", "judged": old.judged.model_copy(update={"states": {**old.judged.states, "gpu_oom": "applies"}})}
    )
    _, notes = judged(bundle_file.described(made, earlier))
    assert any("judged by obs 0.0.1, and this is obs 0.1.0" in note for note in notes)


def test_a_part_of_the_window_claims_nothing_of_the_whole(made):
    found = api.report(Bundle(made), View(start="2026-11-30T11:00:00Z", end="2026-11-30T11:01:00Z"), Settings(), 0.0)
    assert found.diagnosis.verdict("latency_without_errors").state.value != "applies"
    assert not any("these readings were kept" in render(note, "en") for note in found.readings.notes)


# ---------------------------------------------------------------- pseudonyms and secrets


def test_pseudonyms_name_nobody_and_change_no_verdict(recorded):
    recording = Recording()
    for pod in ("acme-llama-7f9-x2", "acme-llama-7f9-a1"):
        recording.vllm(pod, namespace="acme-prod", model="acme/llama-70b", kv_cache_usage_perc=0.99, num_requests_waiting=40.0)
    recording.vllm("other-0", namespace="acme-dev", model="acme/llama-70b")
    source = recorded(recording)
    settings = Settings(
        promql={"kv_use": 'max by (namespace, pod, instance, model_name, engine) (vllm:kv_cache_usage_perc{team!="acme-secret-team"})'}
    )
    window = Window(T0 + 600, T0 + 1800)
    for scope in ({}, {"namespace": ("acme-prod",)}, {"namespace": ("acme-prod", "acme-dev")}):
        plain = api.packed(source, window, scope, settings)
        hidden = api.packed(source, window, scope, settings, pseudonymise=True)
        assert b"acme" in texts(plain)
        assert b"acme" not in texts(hidden).lower()
        assert judged(plain, settings)[0] == judged(hidden, settings)[0]
    one = Bundle(hidden)
    names = {
        tuple(row.get(label) for label in ("namespace", "pod", "instance"))
        for q, (rows, _) in one._rows.values()
        for row in rows
        if row.get("pod")
    }
    assert {("namespace-2", "replica-2", "replica-2:8000"), ("namespace-2", "replica-1", "replica-1:8000")} < names
    assert one.manifest.pseudonyms
    assert one.manifest.source.name == "source"


def test_the_sample_has_the_same_verdicts_under_pseudonyms(made):
    hidden = api.packed(sample(), KV, {}, Settings(), pseudonymise=True)
    assert judged(hidden) == judged(made)
    for word in (b"127.0.0.1", b"tiny-llama", b"llm_gateway"):
        assert word not in texts(hidden)


def test_no_secret_gets_into_a_bundle(lab_url, tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text(SECRET)
    url = lab_url.replace("http://", f"http://user:{SECRET}@")
    source = Prometheus(SourceSettings(url=url, token_file=token, tenant=SECRET, name="lab"))
    monkeypatch.setenv("OBS_PROMETHEUS_TOKEN", SECRET)
    for pseudonymise in (False, True):
        data = api.packed(source, KV, {}, Settings(), pseudonymise=pseudonymise)
        assert SECRET.encode() not in texts(data)
        assert lab_url.rpartition(":")[2].encode() not in texts(data)


def test_the_command_line_writes_pseudonyms_where_it_is_told_to(lab_url, tmp_path, capsys):
    out = tmp_path / "night.obs.zip"
    call = ["bundle", "--prometheus-url", lab_url, "--from", "2026-11-30T11:00:00Z", "--to", "2026-11-30T11:05:00Z"]
    assert main([*call, "--pseudonymise", "--output", str(out)]) == 0
    assert b"tiny-llama" not in texts(out.read_bytes())
    assert Bundle(out).manifest.judged is not None
    assert main(["diagnose", "--bundle", str(out), "--format", "json"]) == 0
    capsys.readouterr()

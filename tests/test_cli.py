"""`obs` as it is called: in a process of its own, on the recording that ships with it, and with what goes wrong."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRESSURE = ["--from", "2026-11-30T10:58:54Z", "--to", "2026-11-30T11:08:55Z"]


def obs(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OBS_")}
    return subprocess.run(
        [sys.executable, "-m", "obs", *args],
        capture_output=True,
        text=True,
        timeout=60,
        env=kept | {"PYTHONPATH": str(ROOT / "src")} | (env or {}),
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.zip"
    path.write_bytes(b"PK\x03\x04 half of something")
    return path


SAMPLE = ["diagnose", "--bundle", "sample"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ([], "the following arguments are required"),
        (["diagnos"], "invalid choice"),
        (["diagnose"], "There is no source: give --prometheus-url, set OBS_PROMETHEUS_URL, or try --bundle sample"),
        (["diagnose", "--bundle", "sample", "--prometheus-url", "http://127.0.0.1:9"], "not allowed with argument"),
        (["diagnose", "--prometheus-url", "127.0.0.1:9090"], "--prometheus-url is no address"),
        (["diagnose", "--source", "nowhere"], "There is no source called “nowhere”"),
        ([*SAMPLE, "--from", "yesterdayish"], "yesterdayish is no time; write 2026-11-30T11:02:24Z"),
        ([*SAMPLE, "--from", ""], "--from is empty"),
        ([*SAMPLE, "--from", "now", "--to", "now-1h"], "swap the two"),
        ([*SAMPLE, "--from", "now", "--to", "now"], "The window is 0 s long"),
        ([*SAMPLE, "--from", "2016-11-30", "--to", "now"], "the longest is 31 d"),
        ([*SAMPLE, "--from", "2027-11-30", "--to", "2027-12-01"], "outside the recording"),
        (["diagnose", "--prometheus-url", "http://127.0.0.1:9", "--from", "2099-01-01", "--to", "2099-01-02"], "still to come"),
        ([*SAMPLE, "--scope", "namespace"], "--scope namespace is no label=value"),
        ([*SAMPLE, "--scope", "from=x"], "--scope from=x is no label=value, or the label is a reserved word"),
        ([*SAMPLE, "--scope", "9x=1"], "9x was refused: it cannot be the name of a label"),
        ([*SAMPLE, "--tz", "Mars/Base"], "There is no time zone Mars/Base"),
        ([*SAMPLE, "--config", "/nowhere.toml"], "OBS_CONFIG names /nowhere.toml, which is no file"),
        (["diagnose", "--bundle", "/nowhere.zip"], "nowhere.zip cannot be read"),
        (["bundle", "--prometheus-url", "http://127.0.0.1:9"], "the following arguments are required: --output"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_wrong_call_ends_with_2_and_one_sentence(args, sentence):
    done = obs(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_broken_bundle_ends_with_2_and_says_how_to_make_a_whole_one(broken):
    done = obs("diagnose", "--bundle", str(broken))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a whole evidence bundle" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_wrong_setting_is_named():
    done = obs(*SAMPLE, env={"OBS_PROMETHEUS_TIMEOUT_SECONDS": "soon"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "OBS_PROMETHEUS_TIMEOUT_SECONDS is wrong" in done.stderr


def test_a_refused_connection_ends_with_3_and_a_sentence_without_a_wait():
    began = time.monotonic()
    done = obs("diagnose", "--prometheus-url", f"http://127.0.0.1:{free_port()}", "--format", "json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "refused the connection. Check host and port" in done.stderr
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - began < 15  # a busy machine takes seconds to start Python; the time-outs would take longer


def test_what_went_wrong_is_said_in_the_language_asked_for():
    assert "no es una hora" in obs(*SAMPLE, "--from", "ayer", "--lang", "es").stderr


def test_the_json_is_one_object_and_nothing_else():
    done = obs(*SAMPLE, *PRESSURE, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout, parse_constant=lambda text: pytest.fail(f"{text} in the JSON"))
    assert found["primary"] == "latency_without_errors"
    assert found["window"] == {"from": "2026-11-30T10:58:54Z", "to": "2026-11-30T11:08:55Z", "step_seconds": 5.0}
    assert [row["state"] for row in found["rows"]] == ["unknown", "applies", "applies", "clear"]
    assert found["rows"][1]["episodes"][0]["from"].startswith("2026-11-30T11:0")


def test_the_text_begins_with_the_answer():
    done = obs(*SAMPLE, *PRESSURE)
    assert done.returncode == 0
    assert done.stdout.startswith("Latency rises without errors")
    assert "● Latency rises without errors: applies" in done.stdout


def test_the_answer_is_in_spanish_and_in_the_zone_asked_for():
    done = obs(*SAMPLE, *PRESSURE, "--lang", "es", "--tz", "Europe/Madrid")
    assert done.stdout.startswith("La latencia aumenta sin errores")
    assert "2026-11-30T11:58:54+01:00 a 2026-11-30T12:08:55+01:00" in done.stdout


def test_a_time_without_an_offset_is_in_the_zone_given():
    local = obs(*SAMPLE, "--from", "2026-11-30 11:58:54", "--to", "30 Nov 2026 12:08:55", "--tz", "Europe/Madrid", "--format", "json")
    assert json.loads(local.stdout)["window"]["from"] == "2026-11-30T10:58:54Z"


def test_the_markdown_is_a_table_and_the_queries():
    done = obs(*SAMPLE, *PRESSURE, "--format", "markdown")
    assert "| **Latency rises without errors** | **applies" in done.stdout
    assert "```promql" in done.stdout


def test_the_coverage_is_the_signals_of_the_diagnosis():
    diagnosed = json.loads(obs(*SAMPLE, *PRESSURE, "--format", "json").stdout)
    covered = obs("coverage", "--bundle", "sample", *PRESSURE, "--format", "json")
    assert json.loads(covered.stdout) == diagnosed["signals"]
    assert "vllm:kv_cache_usage_perc" in obs("coverage", "--bundle", "sample").stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    run = f"{sys.executable} -m obs coverage --bundle sample | head -n 1"
    done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")})
    assert done.stderr == ""


def rows(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str, list[str]]]:
    found = json.loads(done.stdout)
    return [(row["id"], row["state"], [episode["from"] for episode in row["episodes"]]) for row in found["rows"]]


def test_a_real_prometheus_and_the_bundle_made_from_it_give_the_same_verdicts(lab_url, tmp_path):
    kept = tmp_path / "kept.obs.zip"
    made = obs("bundle", "--prometheus-url", lab_url, *PRESSURE, "--output", str(kept))
    assert (made.returncode, made.stdout, made.stderr) == (0, f"Wrote {kept}.\n", "")
    live = obs("diagnose", *PRESSURE, "--format", "json", env={"OBS_PROMETHEUS_URL": lab_url})
    again = obs("diagnose", "--bundle", str(kept), "--format", "json")
    assert json.loads(live.stdout)["source"]["flavor"] == "prometheus"
    assert json.loads(again.stdout)["source"]["flavor"] == "bundle"
    assert json.loads(live.stdout)["primary"] == "latency_without_errors"
    assert rows(live) == rows(again)


def test_a_file_that_is_there_is_not_written_over_unless_forced(lab_url, tmp_path):
    kept = tmp_path / "kept.obs.zip"
    kept.write_text("mine")
    call = ["bundle", "--prometheus-url", lab_url, *PRESSURE, "--output", str(kept)]
    done = obs(*call)
    assert (done.returncode, done.stdout, kept.read_text()) == (2, "", "mine")
    assert f"{kept} is there already" in done.stderr
    assert obs(*call, "--force").returncode == 0
    assert kept.read_bytes().startswith(b"PK")


def test_a_bundle_that_cannot_be_written_ends_with_2_and_a_sentence(lab_url, tmp_path):
    done = obs("bundle", "--prometheus-url", lab_url, *PRESSURE, "--output", str(tmp_path / "none" / "kept.zip"))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"There is no folder {tmp_path / 'none'} to write into. Make it, or give a file elsewhere." in done.stderr


@pytest.mark.parametrize(("command", "example"), [("report", "report.html"), ("bundle", "incident.obs.zip")])
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "forced"])
def test_a_folder_as_output_is_told_to_be_one_before_anything_is_asked(command, example, force, tmp_path):
    done = obs(command, "--prometheus-url", "http://127.0.0.1:9", "--output", f"{tmp_path}/", *force)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"obs: {tmp_path} is a folder. Give the name of a file in it, for example {tmp_path / example}.\n"


@pytest.mark.parametrize(
    "value", ['"} or up #', "a\nb", "<script>", "x" * 10_000, "ñ\\"], ids=["quote", "newline", "script", "long", "backslash"]
)
def test_a_hostile_scope_finds_nothing_and_nothing_is_clear(lab_url, value):
    done = obs("diagnose", "--prometheus-url", lab_url, *PRESSURE, "--scope", f"namespace={value}", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["primary"], {row["state"] for row in found["rows"]}) == ("insufficient", {"unknown"})
    assert found["scope"] == {"namespace": [value]}


def test_a_source_without_llm_metrics_is_insufficient_and_no_error(lab_url):
    done = obs("diagnose", "--prometheus-url", lab_url, "--from", "2026-11-20", "--to", "2026-11-20 01:00", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["primary"]) == (0, "insufficient")

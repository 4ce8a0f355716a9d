"""A diagnosis away from the page: JSON for programs, text and Markdown for people."""

import json
import math
import re

import numpy as np
import pytest

from obs.report import Report, markdown_escape, share_markdown, to_markdown, to_text
from obs.report_json import to_json
from obs.series import Grid
from obs.signals import SIGNALS, Reading, Readings, Replica, Status
from obs.source import About
from obs.text import Moment, Names, Quantity, say
from obs.verdict import Change, Diagnosis, Episode, Evidence, Finding, Stance, State, Threshold, Verdict

START, ONSET, END = 1796041205.0, 1796042000.0, 1796044805.0  # 12:20:05Z, 12:33:20Z, 13:20:05Z on 2026-11-30
EVIL = 'pod|<script>*_`x`\n"'


def verdict(row: str, state: State, **more: object) -> Verdict:
    given = {"state_now": state, "confidence": None, "stage": None, "episodes": (), "evidence": (), "missing": (), "changes": ()} | more
    return Verdict(row, state, **given)


KV = Evidence(
    "kv_use", say("KV cache use"), Stance.SUPPORTS, "ratio",
    say("KV cache use {value} (threshold {threshold}, before {before})",
        value=Quantity(0.99, "ratio"), threshold=Quantity(0.9, "ratio"), before=Quantity(0.41, "ratio")),
    value=0.99, baseline=math.nan, threshold=0.9, onset=ONSET, replicas=(EVIL,),
    metric="vllm:kv_cache_usage_perc", promql='max by (pod) (vllm:kv_cache_usage_perc{namespace="a`b"})',
)  # fmt: skip
APPLIES = verdict(
    "latency_without_errors", State.APPLIES, state_now=State.CLEAR, confidence=0.93,
    episodes=(Episode(ONSET, END - 600, (EVIL, "b")),), evidence=(KV,),
    changes=(Change(say("Lower admission concurrency"), say("They hold about {n} requests", n=72),
                    (say("More queue is not more capacity"),)),),
)  # fmt: skip
SLOW = verdict(
    "slow_first_token", State.APPLIES, confidence=0.7, stage="queue", follows_from="latency_without_errors",
    episodes=(Episode(ONSET + 60, None, ()),), reason=say("it follows from the row above"),
)  # fmt: skip
UNKNOWN = verdict("load_after_timeouts", State.UNKNOWN, reason=say("no gateway is scraped"), missing=(say("Retries: no gateway"),))


def report(lang: str = "en", zone: str = "UTC", link: str | None = None) -> Report:
    grid = Grid(START, 15.0, 4)
    nothing = np.full((1, 4), np.nan)
    signals = {name: Reading(signal, Status.ABSENT, ("a",), nothing, why=say("no such series")) for name, signal in SIGNALS.items()}
    signals["kv_use"] = Reading(SIGNALS["kv_use"], Status.MEASURED, ("a",), nothing + 1, metric="vllm:kv_cache_usage_perc")
    readings = Readings(grid, START, END, 15.0, 60.0, (Replica("a"),), signals, notes=(say("A note on the source."),))
    found = Diagnosis(
        START, END, 15.0, "latency_without_errors", "none",
        say("Latency rose without errors, {start}, on {replicas}", start=Moment(ONSET), replicas=Names((EVIL,))),
        say("Latency rose without errors and the slow first token follows."),
        (verdict("gpu_oom", State.CLEAR), APPLIES, SLOW, UNKNOWN),
        (Finding("replica_imbalance", say("Replica imbalance"), say("One is fuller than the others."), ONSET, None, ("a",)),),
        {"kv_use": Threshold("kv_use", 0.9, "ratio", "somewhere", say("a pool this full"))}, (EVIL, "b"),
    )  # fmt: skip
    return Report(found, readings, About("prod", "prometheus", "2.42.0"), {"namespace": ('a"b', "<c>")}, lang, zone, link)


def test_the_json_holds_no_nan_and_every_field_of_the_contract():
    content = to_json(report())
    json.dumps(content, allow_nan=False)
    assert content["schema"] == 1
    assert content["window"] == {"from": "2026-11-30T12:20:05Z", "to": "2026-11-30T13:20:05Z", "step_seconds": 15.0}
    assert content["scope"] == {"namespace": ['a"b', "<c>"]}
    assert content["source"] == {"name": "prod", "flavor": "prometheus", "version": "2.42.0"}
    assert (content["primary"], content["now"]) == ("latency_without_errors", "none")
    assert content["summary"] == "Latency rose without errors and the slow first token follows."
    assert content["findings"][0] | {"title": "", "says": ""} == {
        "id": "replica_imbalance", "from": "2026-11-30T12:33:20Z", "to": None, "replicas": ["a"], "title": "", "says": "",
    }  # fmt: skip
    assert content["signals"]["kv_use"]["status"] == "measured"
    assert content["signals"]["ttft"] == {
        "status": "absent", "metric": None, "looked_for": [], "why": "no such series", "promql": None, "unit": "seconds",
        "rows": [{"row": row, "without": "unknown"} for row in ("latency_without_errors", "slow_first_token")],
    }  # fmt: skip
    assert set(content["signals"]) == set(SIGNALS)
    assert content["thresholds"]["kv_use"]["value"] == 0.9


def test_a_row_in_the_json_has_its_episodes_evidence_and_changes():
    row = to_json(report())["rows"][1]
    assert (row["id"], row["state"], row["state_now"], row["confidence"], row["stage"]) == (
        "latency_without_errors",
        "applies",
        "clear",
        0.93,
        None,
    )
    assert row["episodes"] == [{"from": "2026-11-30T12:33:20Z", "to": "2026-11-30T13:10:05Z", "replicas": [EVIL, "b"]}]
    evidence = row["evidence"][0]
    assert evidence["baseline"] is None  # it was NaN
    assert evidence["says"] == "KV cache use 99 % (threshold 90 %, before 41 %)"
    assert (evidence["signal"], evidence["stance"], evidence["value"], evidence["unit"]) == ("kv_use", "supports", 0.99, "ratio")
    assert (evidence["threshold"], evidence["onset"]) == (0.9, "2026-11-30T12:33:20Z")
    assert (evidence["metric"], evidence["promql"]) == (KV.metric, KV.promql)
    assert row["changes_to_test"] == ["Lower admission concurrency. They hold about 72 requests. More queue is not more capacity."]
    assert [r["id"] for r in to_json(report())["rows"]] == ["gpu_oom", "latency_without_errors", "slow_first_token", "load_after_timeouts"]
    assert to_json(report())["rows"][3]["missing"] == ["Retries: no gateway"]


def test_the_text_begins_with_the_answer_and_keeps_the_table_s_order():
    text = to_text(report())
    lines = text.splitlines()
    assert lines[0].startswith("Latency rose without errors, 12:33:20, on pod|<script>")
    assert lines[2] == '2026-11-30T12:20:05Z to 2026-11-30T13:20:05Z (60 min, step 15 s) · prod, prometheus 2.42.0 · namespace=a"b, <c>'
    rows = [line for line in lines if re.match(r"[●▲✓?] ", line)]
    assert rows == [
        "✓ GPU out-of-memory error: clear",
        "● Latency rises without errors: applies, now clear, confidence 93 %",
        "● Slow first token: applies, confidence 70 %, stage: queue",
        "? Load increases after timeouts: unknown",
    ]
    assert "    + KV cache use 99 % (threshold 90 %, before 41 %), since 12:33:20" in lines
    assert "    Change to test: Lower admission concurrency. They hold about 72 requests. More queue is not more capacity." in lines
    assert "    since 2026-11-30T12:34:20Z" in lines
    assert "! Replica imbalance, since 2026-11-30T12:33:20Z on a: One is fuller than the others." in lines
    assert "    ? Retries: no gateway" in lines
    assert "* A note on the source." in lines


def test_the_times_of_the_text_are_in_the_reader_s_zone():
    assert "since 2026-11-30T21:34:20+09:00" in to_text(report(zone="Asia/Tokyo"))


@pytest.mark.parametrize("lang", ["en", "es"])
def test_no_name_from_outside_breaks_the_markdown(lang):
    text = to_markdown(report(lang, link="https://obs.example/?a=%3Cscript%3E"))
    assert "<script>" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in table] == [5] * 6
    assert "```promql\nmax by (pod)" in text
    assert "<https://obs.example/?a=%3Cscript%3E>" in text


def test_the_markdown_has_what_decided_and_what_is_missing():
    text = to_markdown(report())
    assert (
        "| **Latency rises without errors** | **applies, now clear, confidence 93 %** | KV cache use 99 % (threshold 90 %, before 41 %) |"
        in text
    )
    assert "(`vllm:kv_cache_usage_perc`)" in text
    assert "- Retries: no gateway" in text


def test_one_line_for_a_chat_is_a_link_that_names_cannot_break():
    line = share_markdown(report(link="https://obs.example/"))
    when = r"30 Nov 2026 \d\d:\d\d:\d\d-\d\d:\d\d:\d\d UTC"
    assert re.fullmatch(rf"\[{when}, .*: Latency rises without errors, KV cache use 99 %, .*\]\(https://obs\.example/\)", line)
    assert "\n" not in line
    assert markdown_escape("a]b[c") == "a\\]b\\[c"

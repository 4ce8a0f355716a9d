"""What a page sends to the browser, with 50 replicas and a day: at most 10,000 chart rows and 300 kB."""

import json

import numpy as np
import pyarrow as pa
import pytest
import streamlit as st
from tests.arrays import by_hand

from obs.links import View
from obs.signals import SIGNALS, Buckets
from obs.source import About
from obs.ui import first_token, kv, memory, queue, replicas, retries
from obs.ui.answer import judged
from obs.ui.reader import Reader
from obs.ui.screen import Screen

REPLICAS, STEPS = 50, 1441  # a day, a minute a step


@pytest.fixture(scope="module")
def screen():
    """A busy day of a fleet in which every replica is different."""
    chance = np.random.default_rng(1)
    use = np.clip(chance.random((REPLICAS, 1)) * 0.6 + chance.random((REPLICAS, STEPS)) * 0.4, 0, 1)
    counts = chance.integers(0, 60, (REPLICAS, STEPS)).astype(float)
    readings = by_hand(
        STEPS, step=60.0, replicas=REPLICAS, before=1,
        means={
            "prompt_length": 300.0, "output_length": 100.0, "queue_time": 1.0, "ttft": 1.5 + use, "e2e_latency": 5.0, "itl": use / 10,
            "prefill_time": 0.3, "gateway_ttft": 2.6,
        },
        kv_use=use, preemptions=np.where(use > 0.9, 0.5, 0.0), requests_waiting=counts, requests_waiting_capacity=counts,
        requests_waiting_deferred=0.0, requests_running=counts[::-1], requests_finished=2.0, kv_capacity_tokens=25_600.0,
        gpu_memory=use, gpu_memory_free=8e9 * use,
        engine_errors=0.0, engine_aborts=0.0, admission_rejections=0.0, gateway_attempts=100.0,
        prompt_tokens=use * 1000, prefix_cache_hits=use * 100, prefix_cache_queries=1000.0,
        gateway_retries=counts[0], gateway_timeouts=counts[1], gateway_errors=counts[2], gateway_retry_overflow=counts[3],
        gateway_cancelled=counts[4], gateway_active=counts[5] * 50, generation_tokens=counts * 10,
    )  # fmt: skip
    for signal, buckets in (("queue_time", 4), ("ttft", 23), ("itl", 20)):
        bounds = np.append(np.geomspace(0.01, 640.0, buckets - 1), np.inf)
        readings.buckets[signal] = Buckets(SIGNALS[signal], bounds, np.cumsum(chance.random((buckets, STEPS)), axis=0))
    answer = judged(About("fleet", "prometheus", "2.42.0"), readings)
    return Screen(View(), Reader(), (), answer.about, None, answer)


@pytest.mark.parametrize(("page", "charts"), [(kv, 8), (queue, 5), (first_token, 9), (replicas, 2), (memory, 2), (retries, 6)])
def test_a_fleet_and_a_day_stay_within_ten_thousand_rows_and_300_kb(screen, monkeypatch, page, charts):
    sent = []

    def chart(frame, spec, **_more):
        out = pa.BufferOutputStream()
        table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
        sent.append((len(frame), out.getvalue().size + len(json.dumps(spec))))

    monkeypatch.setattr(st, "vega_lite_chart", chart)
    page.draw(screen)
    assert len(sent) == charts
    assert sum(rows for rows, _size in sent) <= 10_000
    assert sum(size for _rows, size in sent) <= 300_000

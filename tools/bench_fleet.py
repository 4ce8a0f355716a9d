"""The fleet of `make bench`: 50 replicas and a day with three incidents, in the blocks of a real Prometheus.

Five replicas are simulated (tests/traffic.py) and each stands for ten: what a Prometheus is asked does not depend on whether two
pods have the same figures. The histograms get twelve bounds each, filled from their mean.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.exposition import ENGINE, Exposition, openmetrics
from tests.scrapes import T0, Scraping, scraped
from tests.traffic import Site, Truth, simulate

HOUR, DAY = 3600, 86400
SIMULATED, COPIES = 5, 10
REPLICAS = SIMULATED * COPIES
BLOCK = 2 * HOUR  # promtool reads its whole input once for each block of two hours
BUCKETED = ("ttft", "itl", "e2e_latency", "queue_time", "prefill_time", "prompt_length", "output_length")
BOUNDS = 12
USUAL = {
    "ttft": 0.1,
    "itl": 0.02,
    "e2e_latency": 4.0,
    "queue_time": 0.05,
    "prefill_time": 0.05,
    "prompt_length": 500.0,
    "output_length": 150.0,
}
START, END = T0, T0 + DAY


def say(words: str) -> None:
    """How far it has come."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def site() -> Site:
    """A day of steady traffic. One replica in five is slow for 40 minutes, tokenization is for 20, and callers retry for 15."""
    slow = ((0, 1.0), (5 * HOUR, 4.0), (5 * HOUR + 2400, 1.0))
    front = ((0, 0.02), (12 * HOUR, 1.5), (12 * HOUR + 1200, 0.02))
    lost = ((0, 0.0), (20 * HOUR, 0.4), (20 * HOUR + 900, 0.0))
    return Site(SIMULATED, DAY, rate=1.5, front_end=front, lost=lost, timeout=20.0, retries=2, only={1: {"slowdown": slow}})


def build(folder: Path) -> Path:
    """The folder of the database; made once, which takes some minutes."""
    tsdb = folder / "tsdb"
    if tsdb.exists():
        return tsdb
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    truth = simulate(site(), 7)
    truth = replace(truth, gateway={name: values * COPIES for name, values in truth.gateway.items()})
    say(f"  {SIMULATED} replicas simulated over a day in {time.monotonic() - began:.0f} s")
    unfinished = folder / "unfinished"
    for start in range(0, DAY, BLOCK):
        text = folder / "block.om"
        with text.open("w", encoding="utf-8") as out:
            out.writelines(_fleet(truth, start))
            out.write("# EOF\n")
        made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(unfinished)]
        subprocess.run(made, check=True, capture_output=True)
        text.unlink()
        say(f"  hour {start // HOUR + 2} of 24, {time.monotonic() - began:.0f} s")
    unfinished.rename(tsdb)
    return tsdb


def _fleet(truth: Truth, start: int) -> list[str]:
    """Two hours of everything: the gateway once, each simulated replica ten times."""
    how = Scraping(since=start, start=start, end=min(start + BLOCK, DAY) - 1)
    lines = openmetrics(truth, how).splitlines(keepends=True)
    gateway = [line for line in lines if line.startswith("envoy_")]
    engines = "".join(line for line in lines if not line.startswith(("envoy_", "#"))) + _buckets(truth, how)
    parts = gateway
    for copy in range(COPIES):
        text = engines
        for number in reversed(range(SIMULATED)):
            text = text.replace(f'"vllm-{number}', f'"vllm@{number + copy * SIMULATED}')
        parts.append(text.replace('"vllm@', '"vllm-'))
    return parts


def _buckets(truth: Truth, how: Scraping) -> str:
    """The buckets of the engines' histograms: an exponential distribution around what is usual."""
    out = Exposition()
    for number, samples in enumerate(scraped(truth, how)[0]):
        labels = {
            "job": "vllm",
            "namespace": "prod",
            "pod": f"vllm-{number}",
            "instance": f"vllm-{number}:8000",
            "model_name": "llama",
            "engine": "0",
        }
        for signal in BUCKETED:
            count, usual = samples.series[f"{signal}.count"], USUAL[signal]
            for power in range(BOUNDS):
                bound = float(f"{usual * 2.0 ** (power - BOUNDS // 2):.3g}")
                below = np.floor(count * (1 - np.exp(-bound / usual)))
                out.add(f"{ENGINE[signal]}_bucket", {**labels, "le": f"{bound:g}"}, samples.times, below)
    return "".join(f"{line}\n" for family in out.families.values() for line in family)

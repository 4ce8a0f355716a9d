"""What the diagnosis alone costs, without any source: up to a thousand replicas, made by hand."""

from __future__ import annotations

import multiprocessing
import time
import tracemalloc
from collections.abc import Callable
from statistics import median

import numpy as np
from tests.arrays import HEALTHY, HEALTHY_MEANS, by_hand

from obs.diagnosis import diagnose
from obs.signals import Readings


def core(replicas: int) -> tuple[float, float]:
    """CPU seconds, and megabytes at the peak, input included, of diagnosing so many replicas: six hours at 30 s, and the hour before."""
    return _alone(_core_cpu, replicas), _alone(_core_memory, replicas)


def _alone(measure: Callable[[int], float], replicas: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (replicas,))


def _core_cpu(replicas: int) -> float:
    made = _fleet(replicas)
    spent = []
    for _ in range(3):
        before = time.process_time()
        diagnose(made)
        spent.append(time.process_time() - before)
    return median(spent)


def _core_memory(replicas: int) -> float:
    tracemalloc.start()
    made = _fleet(replicas)
    tracemalloc.reset_peak()
    diagnose(made)
    return tracemalloc.get_traced_memory()[1] / 1e6


def _fleet(replicas: int, steps: int = 840) -> Readings:
    """Each replica a little different; one in ten is short of KV space for the better part of two hours."""
    noise, sick, bad = np.random.default_rng(1), slice(0, max(1, replicas // 10)), slice(500, 700)

    def uneven(usual: object) -> np.ndarray:
        return np.asarray(usual) * (1 + 0.1 * noise.random((replicas, steps)))

    levels = {name: value if name.startswith("gateway") else uneven(value) for name, value in HEALTHY.items()}
    means = {name: value if name.startswith("gateway") else uneven(value) for name, value in HEALTHY_MEANS.items()}
    levels["up"], levels["engine_errors"], levels["preemptions"] = 1.0, 0.0, np.zeros((replicas, steps))
    levels["requests_waiting"] = noise.integers(0, 3, (replicas, steps)).astype(float)
    for name, figure in {"kv_use": 0.99, "preemptions": 1.0, "requests_waiting": 30.0}.items():
        levels[name][sick, bad] = figure
    means["e2e_latency"][sick, bad] *= 3
    means["ttft"][sick, bad] *= 20
    return by_hand(steps, step=30.0, replicas=replicas, before=120, means=means, **levels)

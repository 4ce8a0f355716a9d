"""A live fleet whose time can be moved: the dashboard's clock and the browser's go ahead together, and its samples reach hours ahead."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from tests.browser.conftest import ROOT
from tests.recordings import T0, Course, Recording

SCRAPE = 15


class Clock:
    """The clock of every Python process that is started from here on."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = folder / "clock"
        self.ahead = 0.0
        self.move(0.0)
        paths = [str(ROOT / "tests/clock"), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
        monkeypatch.setenv("TEST_CLOCK", str(self._file))

    def move(self, seconds: float) -> None:
        """Puts it ahead by so much."""
        self.ahead += seconds
        new = self._file.with_suffix(".new")
        new.write_text(str(self.ahead))
        new.replace(self._file)  # whoever reads finds one or the other


def ahead(hours: float, scrape: int = SCRAPE) -> str:
    """Two replicas from an hour ago to `hours` ahead as OpenMetrics text: one is short of KV space since twenty minutes ago."""
    trouble = 3600.0 - 1200.0
    recording = Recording(3600 * (1 + hours), scrape).vllm("calm-0")

    def late(before: float, after: float) -> Course:
        return lambda age: before if age < trouble else after

    levels = {"kv_cache_usage_perc": late(0.3, 1.0), "num_requests_waiting": late(0.0, 60.0), "num_requests_running": late(4.0, 60.0)}
    recording.vllm("busy-0", **levels)
    target = {"job": "vllm", "namespace": "prod", "pod": "busy-0", "instance": "busy-0:8000", "model_name": "llama", "engine": "0"}
    for name in ("e2e_request_latency_seconds", "time_to_first_token_seconds"):
        recording.put(f"vllm:{name}_sum", target, lambda age: min(age, trouble) + 30.0 * max(0.0, age - trouble))
        recording.rate(f"vllm:{name}_count", target, 1.0)
    by = int(time.time()) // scrape * scrape - (T0 + 3600)
    return re.sub(r" (\d{10})$", lambda match: f" {int(match[1]) + by}", recording.text(), flags=re.MULTILINE)

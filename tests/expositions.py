"""Expositions of every system under its true names, types and labels (`systems/*.prom`), and a Prometheus with all of them.

A file is called by the vocabulary's id, and after a hyphen by a version or a way where there are several. Its text is what a target shows
after an hour of steady traffic: a counter there grew evenly from 0, a gauge has stood all the time. So 3600 on a counter is one a second.
Every file has a namespace of its own, which is its name.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.recordings import T0, Recording

from obs.window import Window

FOLDER = Path(__file__).parent / "systems"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.prom")))
HOUR = 3600
WINDOW = Window(T0 + 2400, T0 + 3600)
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="([^"]*)"')
_COUNTS = ("counter", "histogram", "summary")


def exposition(system: str) -> str:
    """The text of a system."""
    return (FOLDER / f"{system}.prom").read_text("utf-8")


def samples(text: str) -> list[tuple[str, dict[str, str], float, bool]]:
    """(name, labels, value, whether it counts) of each sample; of a summary the quantiles count nothing."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, body, value = _SAMPLE.fullmatch(line).groups()
            labels = dict(_LABEL.findall(body or ""))
            kind = kinds.get(name) or kinds[re.sub(r"_(bucket|sum|count)$", "", name)]
            found.append((name, labels, float(value), kind in _COUNTS and "quantile" not in labels))
    return found


def put(recording: Recording, system: str, target: dict[str, str] | None = None, text: str | None = None) -> Recording:
    """Adds a system's hour to a recording."""
    target = target or {"job": system, "namespace": system, "pod": f"{system}-0", "instance": f"{system}-0:9000"}
    for name, labels, value, counts in samples(text or exposition(system)):
        own = {f"exported_{label}" if label in target else label: text for label, text in labels.items()}
        recording.put(name, {**target, **own}, (lambda age, value=value: value * age / HOUR) if counts else value)
    return recording


def everything() -> str:
    """All systems side by side, as OpenMetrics text."""
    recording = Recording(seconds=HOUR, scrape=30)
    for system in NAMES:
        put(recording, system)
    return recording.text()

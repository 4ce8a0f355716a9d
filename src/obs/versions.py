"""Which version each engine process runs: its container's image, and what the metric names that it shows say by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from obs.replicas import Row, Seating
from obs.signals import Replica
from obs.vocabulary import vocabularies


def with_versions(rows: Iterable[Row], seating: Seating) -> tuple[Replica, ...]:
    """The replicas of the seating, in its order, with image and bounds. Of several containers the one whose image is called like the
    engine; where none is, the only one."""
    images: dict[int, set[str]] = {}
    since: dict[int, str] = {}
    until: dict[int, str] = {}
    for r in rows:
        candidate = r.ask.candidate
        engine = r.ask.vocabulary.role == "engine" and bool(candidate.since or candidate.until)
        image = r.labels.get("image", "") if r.ask.signal == "container_image" else ""
        if not (engine or image) or not np.isfinite(r.values).any():
            continue
        for seat in seating.tied(r):
            if image:
                images.setdefault(seat, set()).add(image)
            if candidate.since and engine:
                since[seat] = max(since.get(seat, ""), candidate.since, key=_parts)
            if candidate.until and engine:
                until[seat] = min(until.get(seat, candidate.until), candidate.until, key=_parts)
    for seat in since.keys() & until.keys():  # upgraded within the window, or the hidden old names are shown on demand: the new ones count
        if _parts(since[seat]) > _parts(until[seat]):
            del until[seat]
    return tuple(
        replace(seat.replica, image=_engine(images.get(i, set()), seat.replica.system), since=since.get(i, ""), until=until.get(i, ""))
        for i, seat in enumerate(seating.seats)
    )


def tag(image: str) -> str:
    """The version in an image's name: its tag, without a digest; "" where it has none."""
    name = image.partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2]


def _engine(images: set[str], system: str) -> str:
    """The engine's own image. Several of them (a rollout within the window) are told together, so that nobody trusts one."""
    hint = next((v.job_hint for v in vocabularies() if v.id == system and v.job_hint), None)
    own = sorted(image for image in images if hint and re.search(hint, image)) or (sorted(images) if len(images) == 1 else [])
    return ", ".join(own[:3])


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))

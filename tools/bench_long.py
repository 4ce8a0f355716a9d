"""What is long or large, in seconds of this machine: the timeline over a month, a bundle of six hours. The second table of `make bench`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from tests.conftest import prometheus_server

import bench_fleet
import bench_month
from bench_fleet import say
from obs import api
from obs.bundle import Bundle
from obs.links import View
from obs.timeline import timeline
from obs.ui import answer, drafts
from obs.ui.drafts import Draft
from obs.ui.lanes import Lanes
from obs.ui.reader import Reader
from obs.window import Window
from processes import cpu, pid_of

HOUR = 3600
LARGE = Window(bench_fleet.START + 3 * HOUR, bench_fleet.START + 9 * HOUR)
MONTH = Window(bench_month.START, bench_month.END)
VIEW = View()


@dataclass
class Taken:
    """Seconds: of the clock, and of the two processors."""

    what: str
    wall: float = 0.0
    theirs: float = 0.0
    own: float = 0.0

    def line(self) -> str:
        """A line of the table."""
        return f"| {self.what} | {self.wall:.1f} s | {self.theirs:.1f} s | {self.own:.1f} s |"


@contextmanager
def taking(what: str, pid: int) -> Iterator[Taken]:
    """Measures what is done within."""
    taken = Taken(what)
    began, own, theirs = time.monotonic(), time.process_time(), cpu(pid)
    yield taken
    taken.wall, taken.own, taken.theirs = time.monotonic() - began, time.process_time() - own, cpu(pid) - theirs
    say(f"  {taken}")


def picture() -> Draft:
    """What the timeline page computes for what it shows at this moment."""
    draft = drafts.draft(VIEW, MONTH, MONTH.end)
    facts, diagnosis = draft.answer.courses.facts, draft.answer.diagnosis
    found = timeline(facts, diagnosis, drafts.seen(VIEW, MONTH, MONTH.end))
    Lanes(facts, diagnosis, found, VIEW, Reader()).html()
    return draft


def month(tsdb: Path) -> list[Taken]:
    """The first picture of the timeline, and until all that happened was read exactly."""
    happened = 3 * len(bench_month.BAD)
    with prometheus_server(tsdb, flags=bench_month.FLAGS) as url:
        _settle(url)
        pid = pid_of(url)
        with taking("", pid) as first:
            draft = picture()
        coarse = len(draft.answer.diagnosis.incidents)
        first.what = (
            f"30 days: the first picture, with {coarse} of {happened} incidents in steps of {draft.answer.readings.grid.step / 60:.0f} min"
        )
        with taking("", pid) as exact:
            while draft.left:
                drafts.read_on(VIEW, MONTH, MONTH.end)
                draft = picture()
        found = len(draft.answer.diagnosis.incidents)
        exact.what = f"30 days: then, until {found} of {happened} incidents are read exactly, in {draft.done} stretches"
    return [first, exact]


def large(tsdb: Path) -> list[Taken]:
    """A bundle of six hours, written and opened."""
    with prometheus_server(tsdb) as url:
        _settle(url)
        pid = pid_of(url)
        with taking("", pid) as written:
            data = api.packed(answer.source(VIEW), LARGE, {}, answer.settings())
        written.what = f"six hours: a bundle of {len(data) / 1e6:.1f} MB is written, with its verdict"
        with taking("six hours: it is opened", pid) as opened:
            Bundle(data)
    return [written, opened]


def _settle(url: str) -> None:
    os.environ["OBS_PROMETHEUS_URL"] = url
    st.cache_resource.clear()


def report(folder: Path) -> str:
    """The table."""
    say("A month of 50 replicas, 60 s.")
    tsdb = bench_month.build(folder)
    taken = [*month(tsdb), *large(bench_fleet.build(folder))]
    load = f"{os.cpu_count()} cores, {os.getloadavg()[1]:.1f} processes at work on them (all of the machine's)"
    lines = [f"| 50 replicas, {load} | clock | Prometheus | obs |", "|---|---:|---:|---:|"]
    return "\n".join([*lines, *(one.line() for one in taken)])

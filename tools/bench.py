"""What a page costs: `make bench` writes docs/performance.md.

A Prometheus with 50 replicas and a day (tools/bench_fleet.py) is asked with a cold cache for windows of an hour, six hours and the day;
then every page is drawn twice from the day's answer. Work is told as ratios within one run, since machines differ. What is long or large is
measured in seconds by tools/bench_long.py.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tools")]

import pyarrow as pa  # noqa: E402
import streamlit as st  # noqa: E402
from tests.conftest import prometheus_server  # noqa: E402

import bench_fleet  # noqa: E402
import bench_long  # noqa: E402
from bench_fleet import say  # noqa: E402
from obs import joined, links, plan, prometheus  # noqa: E402
from obs.cache import Cached  # noqa: E402
from obs.links import View  # noqa: E402
from obs.source import Query  # noqa: E402
from obs.ui import answer, screen  # noqa: E402
from obs.ui.reader import Reader  # noqa: E402
from obs.ui.screen import Screen  # noqa: E402
from obs.window import Window  # noqa: E402
from processes import cpu, pid_of  # noqa: E402

HOUR = 3600
WINDOWS = {
    "an hour, calm": (9, 10),
    "six hours, calm": (13, 19),
    "a day with three incidents": (0, 24),
}
CHARTS = ("vega_lite_chart", "altair_chart", "plotly_chart")


@dataclass(frozen=True)
class Cost:
    """What one cold answer took."""

    requests: int
    megabytes: float
    wall: float
    own: float  # seconds of CPU
    theirs: float


def cost(pid: int, view: View, window: Window) -> Cost:
    """A cold answer: no cache, a new connection."""
    st.cache_resource.clear()
    source = _prometheus(view)
    sizes: list[int] = []
    send = source.session.request

    def sent(*args: Any, **more: Any) -> Any:
        reply = send(*args, **more)
        sizes.append(len(reply.content))
        return reply

    source.session.request = sent  # type: ignore[method-assign]
    began, own, theirs = time.monotonic(), time.process_time(), cpu(pid)
    answer.answer(view, window, window.end)
    took = time.monotonic() - began, time.process_time() - own, cpu(pid) - theirs
    return Cost(source.requests, sum(sizes) / 1e6, *took)


def _prometheus(view: View) -> prometheus.Prometheus:
    """The adapter behind the cache."""
    found = answer.source(view)
    inner = found.source if isinstance(found, Cached) else found
    assert isinstance(inner, prometheus.Prometheus)  # noqa: S101  (the settings name one)
    return inner


def singly(measure: Callable[[], Cost]) -> Cost:
    """The same with a request for each question, as PromQL: what the ratios are held against."""
    weight, make = joined.WEIGHT, plan.Query

    def plain(*args: Any, **more: Any) -> Query:
        return replace(make(*args, **more), counter=None)

    joined.WEIGHT, plan.Query = 1, plain  # type: ignore[misc, assignment]
    try:
        return measure()
    finally:
        joined.WEIGHT, plan.Query = weight, make  # type: ignore[misc]


@dataclass(frozen=True)
class Drawn:
    """What a page sends to the browser, and what it asks for beside the answer."""

    charts: int
    rows: int
    kilobytes: float
    asked: int
    again: int


def drawn(name: str, shown: Screen) -> Drawn:
    """A page, drawn twice."""
    sent: list[tuple[int, int]] = []

    def chart(frame: Any = None, spec: Any = None, **_more: Any) -> None:
        out = pa.BufferOutputStream()
        table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
        sent.append((table.num_rows, out.getvalue().size + len(json.dumps(spec))))

    kept = st.vega_lite_chart, screen.current
    st.vega_lite_chart, screen.current = chart, lambda: shown  # type: ignore[assignment]
    source = _prometheus(shown.view)
    counts = []
    try:
        for _time in range(2):
            sent.clear()
            before = source.requests
            runpy.run_path(str(ROOT / f"pages/{name or 'diagnosis'}.py"))
            counts.append(source.requests - before)
    finally:
        st.vega_lite_chart, screen.current = kept
    return Drawn(len(sent), sum(rows for rows, _ in sent), sum(size for _, size in sent) / 1000, *counts)


def report(costs: dict[str, tuple[Cost, Cost]], pages: dict[str, Drawn]) -> str:
    """The tables of docs/performance.md."""
    day = costs["a day with three incidents"][0].requests
    lines = ["| window | requests | one by one | work of Prometheus | own work | answer |", "|---|---:|---:|---:|---:|---:|"]
    for name, (ours, single) in costs.items():
        lines.append(
            f"| {name} | {ours.requests} | {single.requests} | {ours.theirs / single.theirs:.2f} of that | "
            f"{ours.own / single.own:.2f} of that | {ours.megabytes:.0f} MB |"
        )
    lines += ["", "| page, a day | requests, cold | drawn again | charts | rows | sent |", "|---|---:|---:|---:|---:|---:|"]
    for name, page in pages.items():
        lines.append(f"| `/{name}` | {day + page.asked} | {page.again} | {page.charts} | {page.rows:,} | {page.kilobytes:.0f} kB |")
    return "\n".join(lines)


def main() -> None:
    """Builds the fleet where it is not there yet, measures, and writes the tables between the marks of docs/performance.md."""
    folder = Path(sys.argv[1])
    say("The fleet: 50 replicas, a day, 15 s.")
    tsdb = bench_fleet.build(folder)
    with prometheus_server(tsdb) as url:
        os.environ["OBS_PROMETHEUS_URL"], os.environ["OBS_PROMETHEUS_TIMEOUT_SECONDS"] = url, "120"
        pid = pid_of(url)
        view, costs = View(), {}
        for name, (first, last) in WINDOWS.items():
            window = Window(bench_fleet.START + first * HOUR, bench_fleet.START + last * HOUR)
            costs[name] = (cost(pid, view, window), singly(lambda window=window: cost(pid, view, window)))  # type: ignore[misc]
            say(f"  {name}: {costs[name]}")
        st.cache_resource.clear()
        found = answer.answer(view, window, window.end)
        shown = Screen(view, Reader(), (), found.about, window, found, now=window.end)
        pages = {name: drawn(name, shown) for name in links.PAGES if (ROOT / f"pages/{name or 'diagnosis'}.py").exists()}
    tables = {"measured": report(costs, pages), "long": bench_long.report(folder)}
    path = ROOT / "docs/performance.md"
    text = path.read_text("utf-8")
    for name, table in tables.items():
        say(table)
        text = re.sub(rf"(?s)(<!-- {name}:[^>]*-->\n).*?(<!-- end -->)", lambda m, made=table: f"{m[1]}{made}\n{m[2]}", text)  # type: ignore[misc]
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()

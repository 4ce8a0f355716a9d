"""The ratios of docs/performance.md that are about time, viewers and memory; `make bench` writes them after the table of requests.

The fleet is that of tools/bench_fleet.py; the live view has a small one whose samples reach into the next hour. Viewers are
websocket clients (tools/viewers.py). Every load is bounded in number and time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tools")]

import requests  # noqa: E402
from tests.browser.conftest import dashboard_process, free_port  # noqa: E402
from tests.browser.moving import ahead  # noqa: E402
from tests.conftest import prometheus_server  # noqa: E402

import bench_fleet  # noqa: E402
from bench_core import core  # noqa: E402
from bench_fleet import HOUR, say  # noqa: E402
from obs import api  # noqa: E402
from obs.cache import Cached  # noqa: E402
from obs.config import Settings, SourceSettings  # noqa: E402
from obs.links import View  # noqa: E402
from obs.prometheus import THREADS, Prometheus  # noqa: E402
from obs.window import rfc3339  # noqa: E402
from processes import cpu, pid_of, resident  # noqa: E402
from viewers import Viewer  # noqa: E402

SIX = bench_fleet.START + 13 * HOUR, bench_fleet.START + 19 * HOUR
PINNED = f"from={rfc3339(SIX[0])}&to={rfc3339(SIX[1])}"
MINUTES, VIEWERS, TICKS = 5, 30, 15.0
EMPTY = """import pandas as pd, streamlit as st
for _ in range({charts}):
    st.vega_lite_chart(pd.DataFrame({{"x": range({rows}), "y": range({rows})}}), {{"mark": "line", "encoding": {{
        "x": {{"field": "x", "type": "quantitative"}}, "y": {{"field": "y", "type": "quantitative"}}}}}})
"""


def wall(command: list[str], times: int = 3) -> float:
    """Seconds of a whole process, the least of several."""
    found = []
    for _ in range(times):
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        found.append(time.monotonic() - began)
    return min(found)


def diagnosis_over_bare(url: str) -> tuple[float, str]:
    """`obs diagnose` of 50 replicas and six hours, and its requests sent again as they were, side by side."""
    sent: list[requests.PreparedRequest] = []
    send = requests.Session.send

    def kept(session: requests.Session, request: requests.PreparedRequest, **more: object) -> requests.Response:
        sent.append(request)
        return send(session, request, **more)  # type: ignore[arg-type]

    requests.Session.send = kept  # type: ignore[method-assign, assignment]
    try:
        api.report(Prometheus(SourceSettings(url=url)), View(start=rfc3339(SIX[0]), end=rfc3339(SIX[1])), Settings(), SIX[1])
    finally:
        requests.Session.send = send  # type: ignore[method-assign]

    def bare() -> float:
        began = time.monotonic()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda request: requests.Session().send(request).content, sent))
        return time.monotonic() - began

    least = min(bare() for _ in range(3))
    whole = wall([sys.executable, "-m", "obs", "diagnose", "--prometheus-url", url, "--from", rfc3339(SIX[0]), "--to", rfc3339(SIX[1])])
    return whole / least, f"{whole:.1f} s over {least:.1f} s"


def refresh_over_cold(url: str) -> tuple[float, str]:
    """What a Prometheus spends on a refresh of a live window of six hours, over what it spent on the first load."""
    pid, now = pid_of(url), SIX[1]
    source = Cached(Prometheus(SourceSettings(url=url)), clock=lambda: now)
    spent = []
    for _ in range(21):
        before = cpu(pid)
        api.report(source, View(start="now-6h", end="now"), Settings(), now)
        spent.append(cpu(pid) - before)
        now += TICKS
    cold, each = spent[0], sum(spent[1:]) / 20
    return each / cold, f"{each:.2f} s over {cold:.2f} s of its CPU"


def viewers_over_one() -> tuple[float, str]:
    """Requests that thirty viewers of one live view cause in five minutes, over those of one: two dashboards at the same time."""
    with (
        tempfile.TemporaryDirectory() as folder,
        prometheus_server(_blocks(ahead(1), Path(folder))) as url,
        dashboard_process(prometheus_url=url) as few,
        dashboard_process(prometheus_url=url) as many,
        ThreadPoolExecutor(VIEWERS + 1) as pool,
    ):
        list(pool.map(_watch, [few, *[many] * VIEWERS], range(VIEWERS + 1)))
        one, all_ = _asked(few), _asked(many)
    return all_ / one, f"{all_:.0f} over {one:.0f} requests"


def _blocks(text: str, folder: Path) -> Path:
    (folder / "samples.om").write_text(text)
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "samples.om", "tsdb"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    return folder / "tsdb"


def _watch(base: str, number: int) -> None:
    """One viewer, for some minutes, its timer a little off the others'."""
    viewer = Viewer(base, query="from=now-1h&to=now")
    until = time.monotonic() + 60 * MINUTES
    viewer.run(120)
    time.sleep(TICKS * number / (VIEWERS + 1))
    while time.monotonic() < until:
        viewer.tick(120)
        time.sleep(TICKS)
    viewer.close()


def _asked(base: str) -> float:
    text = requests.get(f"{base}/metrics", timeout=10).text
    return sum(float(found) for found in re.findall(r"^obs_source_requests_total\{[^}]*\} (\S+)$", text, re.MULTILINE))


def rerun_over_empty(url: str, charts: int = 8, rows: int = 1000) -> tuple[float, str]:
    """Server CPU of drawing the KV page again from memory, over a page with as many charts, of as many rows, and nothing else."""
    with dashboard_process(prometheus_url=url) as base:
        ours = _rerun(base, "kv", PINNED)
    with tempfile.TemporaryDirectory() as folder:
        script, port = Path(folder) / "empty.py", free_port()
        script.write_text(EMPTY.format(charts=charts, rows=rows))
        command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port), "--server.headless", "true"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _until_it_answers(f"http://127.0.0.1:{port}")
            empty = _rerun(f"http://127.0.0.1:{port}", "", "")
        finally:
            server.terminate()
            server.wait(10)
    return ours / empty, f"{1000 * ours:.0f} ms over {1000 * empty:.0f} ms"


def _until_it_answers(base: str) -> None:
    for _ in range(300):
        try:
            requests.get(f"{base}/_stcore/health", timeout=1)
            return
        except requests.RequestException:
            time.sleep(0.1)
    raise TimeoutError(base)


def _rerun(base: str, page: str, query: str, times: int = 20) -> float:
    pid, viewer, spent = pid_of(base), Viewer(base, page, query), []
    for _ in range(times + 2):
        before = cpu(pid)
        viewer.run(120)
        time.sleep(0.2)  # what it still sends
        spent.append(cpu(pid) - before)
    viewer.close()
    return sum(spent[2:]) / times


def memory_of_sessions(url: str) -> tuple[float, str]:
    """What the server holds after 200 sessions that came and went, over after 20; a session is kept two minutes for its browser."""
    with dashboard_process(prometheus_url=url) as base:
        pid, held = pid_of(base), []
        for count in (20, 180):
            for _ in range(count):
                viewer = Viewer(base, "kv", PINNED)
                viewer.run(120)
                viewer.close()
            time.sleep(130)
            last = Viewer(base, "kv", PINNED)
            last.run(120)
            last.close()
            held.append(resident(pid))
    return held[1] / held[0], f"{held[1]:.0f} MB over {held[0]:.0f} MB"


@contextmanager
def moved(seconds: float) -> Iterator[None]:
    """Every process that is started meanwhile lives so much later: the fleet's day is not today (tests/clock)."""
    with tempfile.NamedTemporaryFile("w", suffix=".clock") as file:
        file.write(str(seconds))
        file.flush()
        os.environ["TEST_CLOCK"] = file.name
        try:
            yield
        finally:
            del os.environ["TEST_CLOCK"]


def main() -> None:
    """Measures, and writes the table between its marks in docs/performance.md."""
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT / "tests/clock"), str(ROOT / "src")))
    lines = ["| what | measured | must be |", "|---|---:|---:|"]

    def line(what: str, found: tuple[float, str], most: float) -> None:
        lines.append(f"| {what} | {found[0]:.2f} ({found[1]}) | {most:g} |")
        say(lines[-1])

    with prometheus_server(bench_fleet.build(Path(sys.argv[1]))) as url, moved(bench_fleet.END - time.time()):
        line("`obs diagnose`, 50 replicas, 6 h: wall, over its requests sent bare and side by side", diagnosis_over_bare(url), 1.5)
        line("refresh of a live window of 6 h: CPU of Prometheus, over the first load", refresh_over_cold(url), 0.15)
        line("server CPU of drawing the KV page again, over an empty page with as many charts", rerun_over_empty(url), 1.5)
        line("memory after 200 sessions, over after 20", memory_of_sessions(url), 1.1)
    line(f"requests of {VIEWERS} viewers of one live view in {MINUTES} minutes, over those of one", viewers_over_one(), 1.1)
    help_, import_ = wall([sys.executable, "-m", "obs", "--help"], 7), wall([sys.executable, "-c", "import requests"], 7)
    line("`obs --help`: wall, over `python -c 'import requests'`", (help_ / import_, f"{help_:.2f} s over {import_:.2f} s"), 2)
    found = {replicas: core(replicas) for replicas in (10, 100, 1000)}
    lines += ["", "| replicas, 6 h at 30 s | CPU of the core | its peak memory, input included |", "|---:|---:|---:|"]
    lines += [f"| {count:,} | {seconds:.2f} s | {peak:.0f} MB |" for count, (seconds, peak) in found.items()]
    text = "\n".join(lines)
    say(text)
    path = ROOT / "docs/performance.md"
    made = re.sub(r"(?s)(<!-- numbers[^>]*-->\n).*?(<!-- end of numbers -->)", lambda m: f"{m[1]}{text}\n{m[2]}", path.read_text("utf-8"))
    path.write_text(made, "utf-8")


if __name__ == "__main__":
    main()

"""Five viewers of live pages for half an hour against a real Prometheus, with an outage in the middle (`make soak`).

Everything is bounded: the viewers, the minutes, and what is written down of each sample. It ends with a table and, where something
grew that may not grow, with an error.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.browser.conftest import dashboard_process  # noqa: E402
from tests.browser.moving import ahead  # noqa: E402
from tests.conftest import prometheus_server  # noqa: E402
from tests.fault_proxy import FAULTS, FINE, FaultProxy, proxied  # noqa: E402

from processes import pid_of  # noqa: E402
from viewers import Viewer  # noqa: E402

MOST_MINUTES, MOST_VIEWERS = 120, 20
PAGES = ("", "kv", "queue", "replicas", "first-token")
OUTAGE_SECONDS = 60.0
SAMPLE_SECONDS = 15.0
GROWTH = 1.1  # of what is held, from the first third to the last


@dataclass(frozen=True)
class Sample:
    """How the process fares at a moment; seconds since the beginning."""

    at: float
    resident: float  # bytes
    threads: int
    files: int  # descriptors that are open
    cache: float  # bytes
    requests: int
    sessions: int


@dataclass
class Watched:
    """What the viewers saw."""

    refreshes: int = 0
    timers: set[int] = field(default_factory=set)  # how many timers a page had
    stale: int = 0  # refreshes that showed the last answer, marked as old
    wrong: list[str] = field(default_factory=list)


def say(words: str) -> None:
    """A line, at once."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def sample(base: str, pid: int, at: float) -> Sample:
    """One, from the process' own metrics and from the kernel."""
    with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:  # noqa: S310  (our own process)
        text = answer.read().decode()

    def figure(name: str) -> float:
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)
        return float(found[1]) if found else 0.0

    threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    return Sample(
        at, figure("process_resident_memory_bytes"), threads, int(figure("process_open_fds")), figure("obs_cache_bytes"),
        int(figure("obs_source_requests_total")), int(figure("obs_sessions")),
    )  # fmt: skip


def watch(base: str, page: str, until: float, seen: Watched) -> None:
    """One viewer: a live page that refreshes as its timer says."""
    with closing(Viewer(base, page, "from=now-30m&to=now")) as viewer:
        viewer.run()
        due = time.monotonic()
        while time.monotonic() < until:
            seen.timers.add(len(viewer.timers))
            due += min(viewer.timers.values(), default=30.0)
            while time.monotonic() < min(due, until):
                time.sleep(0.2)
            try:
                text = " ".join(viewer.tick())
            except (TimeoutError, ConnectionError) as error:
                seen.wrong.append(f"/{page}: {error}")
                return
            seen.refreshes += 1
            seen.stale += 'class="asof"' in text
            if "This page failed" in text or "Traceback" in text:
                seen.wrong.append(f"/{page}: it failed")


def run(minutes: float, viewers: int, proxy: FaultProxy, base: str) -> tuple[list[Sample], Watched]:
    """Lets them watch. The source is away for a minute in the middle."""
    pid, seen, found = pid_of(base), Watched(), []
    began = time.monotonic()
    until, half = began + 60 * minutes, began + 30 * minutes
    with ThreadPoolExecutor(viewers) as pool:
        watching = [pool.submit(watch, base, PAGES[number % len(PAGES)], until, seen) for number in range(viewers)]
        while time.monotonic() < until:
            away = half <= time.monotonic() < half + min(OUTAGE_SECONDS, 12 * minutes)
            if away != proxy.fault.refused:
                proxy.fault = FAULTS["refused"] if away else FINE
            found.append(sample(base, pid, time.monotonic() - began))
            say(f"  {found[-1].at:6.0f} s  {found[-1].resident / 1e6:5.0f} MB  {found[-1].threads} threads  {found[-1].requests} requests")
            time.sleep(max(0.0, min(SAMPLE_SECONDS, until - time.monotonic())))
        for one in watching:
            one.result(120)
    return found, seen


def judged(found: list[Sample], seen: Watched, viewers: int) -> list[str]:
    """The table, and what is wrong."""
    third = max(1, len(found) // 3)
    first, last = found[third // 2 : third + 1], found[-third:]
    say("| what | first third | last third |\n|---|---:|---:|")
    wrong = list(seen.wrong)
    for name, unit, size in (("resident", "MB", 1e6), ("threads", "", 1), ("files", "", 1), ("cache", "MB", 1e6), ("sessions", "", 1)):
        before, after = (max(getattr(one, name) for one in part) / size for part in (first, last))
        say(f"| {name} {unit} | {before:.1f} | {after:.1f} |")
        if name != "cache" and after > before * GROWTH + 2:  # the cache fills up to its bound
            wrong.append(f"{name} grew from {before:.1f} to {after:.1f}")
    rates = [(part[-1].requests - part[0].requests) / max(1.0, part[-1].at - part[0].at) for part in (first, last)]
    say(f"| requests a minute | {60 * rates[0]:.1f} | {60 * rates[1]:.1f} |")
    say(f"{seen.refreshes} refreshes of {viewers} viewers, {seen.stale} of them with the last answer during the outage.")
    if seen.timers != {1}:
        wrong.append(f"pages had {sorted(seen.timers)} timers, and not one each")
    if not seen.stale:
        wrong.append("nobody saw the outage")
    return wrong


def main() -> int:
    """Builds the recording, starts everything, watches, and says what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--viewers", type=int, default=5)
    asked = parser.parse_args()
    minutes, viewers = min(asked.minutes, MOST_MINUTES), min(asked.viewers, MOST_VIEWERS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        text, tsdb = Path(folder) / "text", Path(folder) / "tsdb"
        text.write_text(ahead(minutes / 60 + 0.2), "utf-8")
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(tsdb)], check=True, capture_output=True)
        proxy = stack.enter_context(proxied(stack.enter_context(prometheus_server(tsdb))))
        base = stack.enter_context(dashboard_process(prometheus_url=proxy.url))
        say(f"{viewers} viewers for {minutes:g} minutes.")
        wrong = judged(*run(minutes, viewers, proxy, base), viewers)
    for words in wrong:
        say(f"WRONG: {words}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

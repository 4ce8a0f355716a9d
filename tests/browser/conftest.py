"""A real dashboard process and a real browser: the one that OBS_CHROMIUM names, else Debian's Chromium."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright
from tests.recordings import SCRAPE, T0, Recording

ROOT = Path(__file__).resolve().parents[2]
# The same engine; the first has no window to draw, and takes a quarter less time.
INSTALLED = [Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 30_000  # for a page to answer: the machine may be busy
POLICY = "Content Security Policy"
SCRIPT = "<script>document.title='owned'</script>"
KV = "from=2026-11-30T11:00:00Z&to=2026-11-30T11:10:00Z"  # the sample's KV pressure


@contextmanager
def dashboard_process(port: int = 0, streamlit: tuple[str, ...] = (), log: Path | None = None, **settings: str) -> Iterator[str]:
    """`streamlit run app.py` on a free port, or `port`; its address. `settings` are OBS_ variables without the prefix, in lower case,
    `streamlit` options of Streamlit's own; what the process prints goes to `log`."""
    port = port or free_port()
    env = {name: value for name, value in os.environ.items() if not name.startswith("OBS_")}
    env |= {f"OBS_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), *streamlit]
    with log.open("wb") if log else Path(os.devnull).open("wb") as out:
        server = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out)
    base = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{base}/healthz", server)
        yield base
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(10)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the dashboard did not start") from None
            time.sleep(0.1)


@pytest.fixture(scope="session")
def sample() -> Iterator[str]:
    """A dashboard without any setting: it shows the sample recording."""
    with dashboard_process() as base:
        yield base


@pytest.fixture
def dashboard() -> Iterator[Callable[..., str]]:
    """Starts a dashboard with settings; it ends with the test."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(dashboard_process(**settings))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = os.environ.get("OBS_CHROMIUM") or next(each for each in INSTALLED if each.exists())
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def person(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """A person with a browser of their own: zone, language, width. What the page asks of other hosts, its errors, and what its policy
    refuses (which is told on the console, and would be a hole in the page) fail the test."""
    contexts: list[BrowserContext] = []
    outside: list[str] = []
    errors: list[str] = []

    def open_page(width: int = 1440, zone: str = "UTC", locale: str = "en-GB", **more: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 1000}, timezone_id=zone, locale=locale, **more)
        context.set_default_timeout(SECONDS)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: outside.append(request.url) if _is_outside(request.url) else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if POLICY in message.text else None)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert outside == []
    assert errors == []


def _is_outside(url: str) -> bool:
    return re.match(r"(https?|wss?)://", url) is not None and "//127.0.0.1:" not in url


def answered(page: Page, url: str) -> Page:
    """Opens an address and waits for the diagnosis."""
    page.goto(url)
    page.wait_for_selector(".obs .strip")
    return page


def runs(base: str) -> int:
    """How often the Diagnosis page was drawn, by what the process says of itself: a run counts when it has ended."""
    with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
        found = re.search(r'^obs_page_render_seconds_count{page="diagnosis"} (\S+)', answer.read().decode(), re.M)
    return int(float(found[1])) if found else 0


def failed(page: Page, url: str) -> str:
    """Opens an address and waits for the sentence in place of a diagnosis."""
    page.goto(url)
    return page.wait_for_selector(".obs .failed").inner_text().replace("\u00a0", " ")  # type: ignore[union-attr]


def states(page: Page) -> list[tuple[str, str]]:
    """(name, state) of the rows, as the page shows them from top to bottom; they come one after the other."""
    page.wait_for_function("document.querySelectorAll('section.row .state').length === 4")
    found = page.eval_on_selector_all(
        "section.row", "rows => rows.map(r => [r.querySelector('.name').innerText, r.querySelector('.state').innerText])"
    )
    return [(name, state.strip()) for name, state in found]


def none_is_judged(page: Page) -> None:
    """Waits until all four rows are unknown: what the page showed before goes a moment after the sentence has come."""
    page.wait_for_function(
        """() => {
          const found = [...document.querySelectorAll("section.row .state")];
          return found.length === 4 && found.every(state => ["unknown", "desconocido"].includes(state.innerText.trim()));
        }"""
    )


def api(base: str, query: str = "") -> dict[str, Any]:
    """What the JSON route of the same process says; also of a failure."""
    try:
        with urllib.request.urlopen(f"{base}/api/v1/diagnosis?{query}", timeout=60) as reply:
            found: dict[str, Any] = json.load(reply)
    except urllib.error.HTTPError as error:
        found = {"status": error.code, **json.load(error)}
    return found


def drag(page: Page, over: Locator, first: float, last: float, *keys: str) -> None:
    """Drags over it from one share of its width to another; the keys are pressed before the button is let go."""
    box = over.bounding_box()
    assert box is not None

    def place(share: float) -> tuple[float, float]:
        return box["x"] + box["width"] * share, box["y"] + 60

    page.mouse.move(*place(first))
    page.mouse.down()
    page.mouse.move(*place((first + last) / 2))
    page.mouse.move(*place(last))
    for key in keys:
        page.keyboard.press(key)
    page.mouse.up()


def too_wide(page: Page) -> list[str]:
    """What makes the page scroll sideways: the elements that reach beyond the window, none where nothing does. A page whose style is
    still on its way has two seconds for it."""
    for _wait in range(20):
        if not (found := _beyond(page)):
            break
        page.wait_for_timeout(100)
    return found


def _beyond(page: Page) -> list[str]:
    return page.evaluate(
        """() => {
          const main = document.querySelector('[data-testid=stMain]');
          if (document.documentElement.scrollWidth <= innerWidth && main.scrollWidth <= main.clientWidth) return [];
          return [...main.querySelectorAll('*')].filter(e => !e.closest('.st-key-incidents'))
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
            .map(e => e.className.toString()).slice(0, 5);
        }"""
    )  # type: ignore[no-any-return]


def _until_now(recording: Recording, ago: int = 0) -> str:
    """The recording as OpenMetrics text, moved in time so that it ends now, or `ago` seconds before."""
    now = int(time.time()) // SCRAPE * SCRAPE
    by = now - ago - (T0 + int(recording.seconds))
    return re.sub(r" (\d{10})$", lambda match: f" {int(match[1]) + by}", recording.text(), flags=re.MULTILINE)


@pytest.fixture
def live(backfill: Callable[[str], str]) -> str:
    """A Prometheus whose samples ended two minutes ago: longer than it carries on a series that got no sample."""
    return backfill(_until_now(Recording(1800).vllm("a"), ago=120))


@pytest.fixture
def two_namespaces(backfill: Callable[[str], str]) -> str:
    """A calm namespace, and one whose KV space runs out and whose latency rises after twenty of forty minutes."""
    recording = Recording(2400).vllm("calm-0", namespace="calm")
    target = {"job": "vllm", "namespace": "busy", "pod": "busy-0", "instance": "busy-0:8000", "model_name": "llama", "engine": "0"}

    def late(before: float, after: float) -> Callable[[float], float]:
        return lambda age: before if age < 1200 else after

    recording.vllm(
        "busy-0",
        namespace="busy",
        kv_cache_usage_perc=late(0.3, 1.0),
        num_requests_waiting=late(0.0, 60.0),
        num_requests_running=late(4.0, 60.0),
    )
    seconds = late(1.0, 30.0)
    for name in ("e2e_request_latency_seconds", "time_to_first_token_seconds"):
        recording.put(f"vllm:{name}_sum", target, lambda age: sum(seconds(at) for at in range(0, int(age), 15)) * 15)
        recording.rate(f"vllm:{name}_count", target, 1.0)
    return backfill(_until_now(recording))


@pytest.fixture
def hostile(backfill: Callable[[str], str]) -> str:
    """A Prometheus whose labels try to be markup, to break lines, and to be endless."""
    recording = Recording(1800)
    recording.vllm(
        SCRIPT, namespace='"><img src=x onerror=alert(2)>\n\n# heading', model="*bold* `code` $x$ :red[x] [a](http://evil.example)"
    )
    recording.vllm("x" * 10_000, namespace="long", model="{curly} </div></section>")
    return backfill(_until_now(recording))

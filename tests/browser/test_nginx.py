"""Two processes behind Debian's nginx with a sub-path: the configuration is the one of docs/operations.md, read from there."""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import KV, ROOT, dashboard_process, free_port

IDLE_SECONDS, PING_SECONDS = 6, 2  # a tenth of the 60 s and 20 s of the documentation


class Nginx:
    """The server of the documentation; `stop` and `start` are what a websocket notices of a network that is gone."""

    def __init__(self, folder: Path, ports: tuple[int, ...]) -> None:
        block = re.search(r"```nginx\n(.*?)```", (ROOT / "docs/operations.md").read_text("utf-8"), re.S)
        assert block
        self.port = free_port()
        text = block[1].replace("proxy_read_timeout 60s", f"proxy_read_timeout {IDLE_SECONDS}s")
        for documented, here in zip((8080, 8501, 8502), (self.port, *ports), strict=True):
            assert f"127.0.0.1:{documented};" in text
            text = text.replace(f"127.0.0.1:{documented};", f"127.0.0.1:{here};")
        places = "".join(f"{one}_temp_path {folder}/{one};\n" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        own = f"pid {folder}/pid;\nerror_log {folder}/error.log;\ndaemon off;\nevents {{}}\nhttp {{\naccess_log off;\n{places}{text}}}\n"
        self.file = folder / "nginx.conf"
        self.file.write_text(own)
        self.base = f"http://127.0.0.1:{self.port}/obs"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "nginx"
        command = [program, "-e", "/dev/null", "-c", str(self.file)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(10)
            self.process = None


@pytest.fixture
def behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nginx]:
    ports = (free_port(), free_port())
    options = ("--server.baseUrlPath", "obs", "--server.websocketPingInterval", str(PING_SECONDS))
    monkeypatch.setenv("STREAMLIT_SERVER_COOKIE_SECRET", "s" * 40)
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(dashboard_process(port=port, streamlit=options))
        nginx = Nginx(tmp_path, ports)
        nginx.start()
        stack.callback(nginx.stop)
        _until_it_answers(nginx)
        yield nginx


def _until_it_answers(nginx: Nginx) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"{nginx.base}/healthz", timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("nginx did not start")


def _asked(nginx: Nginx, cookie: str | None = None) -> tuple[str, str]:
    """(start time of the process that answered, cookie that keeps with it)."""
    request = urllib.request.Request(f"{nginx.base}/metrics", headers={"Cookie": cookie} if cookie else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        started = re.search(r"^process_start_time_seconds (\S+)", answer.read().decode(), re.M)
        assert started
        return started[1], answer.headers["Set-Cookie"].partition(";")[0]


def test_a_page_behind_two_processes_and_a_sub_path_survives_idling_and_a_lost_connection(
    behind: Nginx, person: Callable[..., Page]
) -> None:
    first = [_asked(behind) for _ in range(20)]
    assert len({process for process, _ in first}) == 2  # readers are spread,
    assert [_asked(behind, cookie)[0] for _, cookie in first[:6]] == [process for process, _ in first[:6]]  # and each stays

    page = person()
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    page.goto(f"{behind.base}/kv?{KV}")
    chart = page.locator("svg.marks .mark-line path").first
    chart.wait_for()
    assert page.locator(".obs a[href^='/']:not([href^='/obs/'])").count() == 0
    page.get_by_role("link", name="Queue").first.click()
    page.wait_for_url(f"{behind.base}/queue?**")
    chart.wait_for()

    page.wait_for_timeout(1000 * IDLE_SECONDS * 1.5)
    assert len(sockets) == 1  # the pings kept it open

    behind.stop()
    page.wait_for_timeout(5000)
    behind.start()
    for _ in range(200):
        if len(sockets) > 1:
            break
        page.wait_for_timeout(100)
    window = page.get_by_role("button", name="PINNED")
    expect(window).to_contain_text("11:00")
    page.get_by_role("button", name="Half a window back").click()
    page.wait_for_url("**/obs/queue?*from=2026-11-30T10*")
    expect(window).to_contain_text("10:5")
    chart.wait_for()
    assert len(sockets) > 1

"""Real Prometheus servers for the tests: one with the lab recording, and one for each synthetic recording.

They listen on 127.0.0.1, on a port that is free, and end with the test or session that started them.
"""

from __future__ import annotations

import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.recordings import Recording

from obs.config import SourceSettings
from obs.prometheus import Prometheus

DATA = Path(__file__).parent / "data"
READY_SECONDS = 30


@contextmanager
def prometheus_server(tsdb: Path, settings: str = "global: {scrape_interval: 1h}\n", flags: Sequence[str] = ()) -> Iterator[str]:
    """Debian's Prometheus over a TSDB folder; its address. `flags` are further ones of its command line."""
    config = tsdb.parent / f"{tsdb.name}.yml"
    config.write_text(settings)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={tsdb}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--query.lookback-delta=1m",  # a backfilled series has no staleness markers: what vanished must not linger
        "--log.level=error",
        *flags,
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/-/ready", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("Prometheus did not start") from None
            time.sleep(0.02)


@pytest.fixture(scope="session")
def lab_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with the lab recording (2026-11-30 10:58:54Z to 12:06:46Z, scraped every 5 s)."""
    folder = tmp_path_factory.mktemp("lab")
    with tarfile.open(DATA / "lab-tsdb.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    with prometheus_server(folder / "tsdb-snapshot") as url:
        yield url


@pytest.fixture(scope="session")
def lab(lab_url: str) -> Prometheus:
    """The same as a source."""
    return Prometheus(SourceSettings(url=lab_url, name="lab"))


def _over_recordings(folder: Path) -> Iterator[Callable[[Recording | str], str]]:
    servers = []

    def start(recording: Recording | str) -> str:
        tsdb = folder / f"tsdb{len(servers)}"
        text = tsdb.with_suffix(".om")
        text.write_text(recording if isinstance(recording, str) else recording.text(), "utf-8")
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(tsdb)], check=True, capture_output=True)
        server = prometheus_server(tsdb)
        url = server.__enter__()
        servers.append(server)
        return url

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def backfill(tmp_path: Path) -> Iterator[Callable[[Recording | str], str]]:
    """Starts a Prometheus over a recording (or OpenMetrics text) and gives its address."""
    yield from _over_recordings(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Recording | str], str]]:
    """The same for all tests of a module."""
    yield from _over_recordings(tmp_path_factory.mktemp("served"))


@pytest.fixture
def recorded(backfill: Callable[[Recording | str], str]) -> Callable[[Recording | str], Prometheus]:
    """The same as a source."""
    return lambda recording: Prometheus(SourceSettings(url=backfill(recording), name="test"))

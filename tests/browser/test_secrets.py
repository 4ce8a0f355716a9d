"""Credentials of a source are planted, and everything that leaves the process is searched for them."""

import base64
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import KV, ROOT, dashboard_process
from tests.faults import Reply, Seen, serving

PASSWORD, TOKEN, TENANT = "planted-password-1", "planted-token-2", "planted-tenant-3"
SECRETS = [PASSWORD, TOKEN, TENANT, base64.b64encode(f"ann:{PASSWORD}".encode()).decode()]
LAB = KV + "&lang=en"


def _gossip(seen: Seen) -> Reply:
    """A source, or a proxy before it, that repeats what it was sent."""
    kind, _, credential = seen.headers.get("Authorization", "").partition(" ")
    plain = base64.b64decode(credential).decode() if kind == "Basic" else ""
    sent = f"{kind} {credential} {plain} {seen.headers.get('X-Scope-OrgID')}"
    return Reply(500, {"status": "error", "errorType": "internal", "error": f"not allowed: {sent}"})


def _leaks(where: dict[str, bytes]) -> list[tuple[str, str]]:
    return [(place, secret) for place, content in where.items() for secret in SECRETS if secret.encode() in content]


def _body(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()  # type: ignore[no-any-return]
    except urllib.error.HTTPError as error:
        return error.read()


def test_no_secret_is_on_a_page_in_json_metrics_an_error_a_report_a_bundle_or_the_log(
    lab_url: str, tmp_path: Path, person: Callable[..., Page]
) -> None:
    token, settings, log = tmp_path / "token", tmp_path / "obs.toml", tmp_path / "log"
    token.write_text(TOKEN)
    with serving(_gossip) as (gossip, seen):
        host = urlsplit(gossip).netloc
        settings.write_text(
            f'[sources.basic]\nurl = "http://ann:{PASSWORD}@{host}"\ntenant = "{TENANT}"\n'
            f'[sources.token]\nurl = "{gossip}"\ntoken_file = "{token}"\ntenant = "{TENANT}"\n'
        )
        good = lab_url.replace("http://", f"http://ann:{PASSWORD}@")
        where: dict[str, bytes] = {}
        with dashboard_process(log=log, prometheus_url=good, prometheus_tenant=TENANT, config=str(settings)) as base:
            page = person()
            frames: list[bytes] = []

            def listen(socket: object) -> None:
                socket.on("framereceived", lambda data: frames.append(data if isinstance(data, bytes) else data.encode()))  # type: ignore[attr-defined]

            page.on("websocket", listen)
            for source in ("default", "basic", "token"):
                page.goto(f"{base}/kv?{LAB}&source={source}")
                page.locator("svg.marks" if source == "default" else ".obs .failed").first.wait_for()
                where[f"page {source}"] = page.content().encode()
                where[f"json {source}"] = _body(f"{base}/api/v1/diagnosis?{LAB}&source={source}")
            assert b"not allowed: " in where["page basic"]  # what the source said is shown, and of that not the secret
            assert b"***" in where["json token"]
            page.goto(f"{base}/data?{LAB}")
            page.locator(".obs").first.wait_for()
            where |= {"data": page.content().encode(), "websocket": b"".join(frames), "metrics": _body(f"{base}/metrics")}
        where["log"] = log.read_bytes()
        env = {name: value for name, value in os.environ.items() if not name.startswith("OBS_")}
        env |= {"OBS_PROMETHEUS_URL": good, "OBS_PROMETHEUS_TENANT": TENANT, "OBS_CONFIG": str(settings), "PYTHONPATH": str(ROOT / "src")}
        times = ["--from", "2026-11-30T11:00:00Z", "--to", "2026-11-30T11:05:00Z"]
        for call in (["diagnose", *times], ["diagnose", "--format", "markdown", *times], ["diagnose", "--source", "token", *times]):
            done = subprocess.run([sys.executable, "-m", "obs", *call], env=env, cwd=tmp_path, capture_output=True)
            where[" ".join(call)] = done.stdout + done.stderr
        assert {request.headers.get("X-Scope-OrgID") for request in seen} == {TENANT}
        assert {request.headers["Authorization"].split()[0] for request in seen} == {"Basic", "Bearer"}
        assert len(where["websocket"]) > 10_000
    assert _leaks(where) == []


@pytest.mark.parametrize("secret", SECRETS)
def test_the_search_would_find_it(secret: str) -> None:
    assert _leaks({"here": f"a {secret} b".encode(), "there": b"none"}) == [("here", secret)]

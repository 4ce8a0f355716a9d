"""The guard around a real process: every address of it, the websocket, and a browser that comes through the proxy."""

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import KV, ROOT, answered

from obs.links import PAGES

ADDRESSES = [
    *(f"/{page}" for page in PAGES),
    "/api/v1/diagnosis",
    "/api/v1/none",
    "/metrics",
    "/media/0.csv",
    "/no-such-page",
    "/favicon.png",
    "/_stcore/health",
    "/_stcore/host-config",
    "/_stcore/metrics",
    "/_stcore/upload_file/a/b",
    "/_stcore/agent/openapi.json",
    "/_stcore/agent/mcp",
    "/auth/login",
    "/oauth2callback",
]
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def status(base: str, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> int:
    """The status alone, redirects not followed."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=20)
    connection.request(method, path, headers=headers or {})
    found = connection.getresponse().status
    connection.close()
    return found


def test_without_the_proxy_s_header_no_address_and_no_websocket_answers(dashboard: Callable[..., str], person: Callable[..., Page]) -> None:
    base = dashboard(proxy_user_header="X-Forwarded-User", proxy_trusted="127.0.0.1")
    user = {"X-Forwarded-User": "ann"}
    assert status(base, "/healthz") == 200
    assert {path: status(base, path) for path in ADDRESSES} == dict.fromkeys(ADDRESSES, 401)
    assert {status(base, path, method=method) for path in ADDRESSES[-8:] for method in ("POST", "PUT", "DELETE", "OPTIONS")} == {401}
    assert status(base, "/_stcore/stream", WEBSOCKET) == 403
    assert status(base, "/_stcore/stream", WEBSOCKET | user) == 101
    assert status(base, "/_stcore/stream", WEBSOCKET | user | {"X-Forwarded-For": "127.0.0.1"}) == 403
    assert [status(base, path, user) for path in ("/kv", "/metrics", "/_stcore/health")] == [200, 200, 200]
    page = person(extra_http_headers=user)
    answered(page, f"{base}/?{KV}")
    other = person()
    other.goto(f"{base}/?{KV}")
    assert other.locator("body").inner_text() == "The sign-in proxy named no user. Sign in there, or let it send X-Forwarded-User."


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/diagnosis", "/_stcore/host-config"])
def test_a_page_under_a_foreign_name_that_leads_here_reads_nothing(path: str, sample: str) -> None:
    assert status(sample, path, {"Host": "evil.test"}) == 403
    assert status(sample, "/_stcore/stream", WEBSOCKET | {"Host": "evil.test"}) == 403
    assert status(sample, "/_stcore/stream", WEBSOCKET | {"Origin": "http://evil.test"}) == 403


def test_the_names_are_set_as_the_documentation_says(dashboard: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    written = re.search(r"STREAMLIT_SERVER_ALLOWED_HOSTS='([^']+)'", (ROOT / "docs/operations.md").read_text("utf-8"))
    assert written is not None
    monkeypatch.setenv("STREAMLIT_SERVER_ALLOWED_HOSTS", written[1])
    base = dashboard()
    asked = ("obs.example", "obs.example:8501", "127.0.0.1", "evil.test")
    assert [status(base, "/", {"Host": host}) for host in asked] == [200, 200, 200, 403]


@pytest.mark.parametrize("path", ["/_stcore/agent/interact", "/_stcore/agent/mcp"])
def test_the_interface_for_programs_that_streamlit_has_is_off(path: str, sample: str) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(f"{sample}{path}", b"{}", headers, method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    assert "does not serve the agent API" in refused.value.read().decode()

"""Signing in by OIDC, with a provider of the test's own and a real browser."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import KV, dashboard_process, free_port
from tests.browser.oidc_provider import CLIENT, CLIENT_SECRET, Provider, provider
from tests.browser.test_guard import ADDRESSES, WEBSOCKET, status

OWN = {"/auth/login", "/oauth2callback"}


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Provider]]:
    """A dashboard behind a provider."""
    secret = tmp_path_factory.mktemp("oidc") / "secret"
    secret.write_text(f"{CLIENT_SECRET}\n")
    port = free_port()
    with provider() as known:
        settings = {
            "oidc__metadata_url": f"{known.base}/.well-known/openid-configuration",
            "oidc__client_id": CLIENT,
            "oidc__client_secret_file": str(secret),
            "oidc__redirect_uri": f"http://127.0.0.1:{port}/oauth2callback",
        }
        with dashboard_process(port=port, **settings) as base:
            yield base, known


def test_without_a_sign_in_no_address_and_no_websocket_answers(signed: tuple[str, Provider]) -> None:
    base, _ = signed
    closed = [path for path in ADDRESSES if path not in OWN]
    assert status(base, "/healthz") == 200
    assert {path: status(base, path) for path in closed} == dict.fromkeys(closed, 401)
    assert {status(base, path) for path in OWN} == {302}  # to the page, which is closed
    assert status(base, "/_stcore/stream", WEBSOCKET) == 403
    assert status(base, "/kv", {"Accept": "text/html", "X-Forwarded-User": "ann"}) == 302


@pytest.mark.parametrize("wrong", ["forged", "audience"])
def test_a_token_that_the_provider_did_not_sign_or_not_for_obs_lets_nobody_in(
    wrong: str, signed: tuple[str, Provider], person: Callable[..., Page]
) -> None:
    base, known = signed
    page = person()
    before = known.forged, known.audience
    known.forged, known.audience = wrong == "forged", "another" if wrong == "audience" else CLIENT
    try:
        page.goto(f"{base}/kv?{KV}")
        page.get_by_text("Sign in as ann").click()
        page.get_by_text("Sign in as ann").wait_for()  # led to the provider again
        assert [cookie["name"] for cookie in page.context.cookies() if cookie["name"].startswith("_streamlit_user")] == []
        assert page.request.get(f"{base}/metrics").status == 401
    finally:
        known.forged, known.audience = before


def test_who_signs_in_arrives_at_the_link_that_was_opened_and_reads_everything_until_signing_out(
    signed: tuple[str, Provider], person: Callable[..., Page]
) -> None:
    base, _ = signed
    page = person()
    page.goto(f"{base}/kv?{KV}&tz=Asia%2FTokyo")
    page.get_by_text("Sign in as ann").click()
    page.locator("svg.marks .mark-line path").first.wait_for()
    assert page.url == f"{base}/kv?{KV}&tz=Asia%2FTokyo"
    for path in ("/metrics", f"/api/v1/diagnosis?{KV}", "/_stcore/health"):
        assert page.request.get(f"{base}{path}").status == 200
    (cookie,) = [cookie for cookie in page.context.cookies() if cookie["name"] == "_streamlit_user"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    head, one, tail = cookie["value"][:-10], cookie["value"][-10], cookie["value"][-9:]  # the last one has idle bits
    assert status(base, "/metrics", {"Cookie": f"_streamlit_user={head}{'A' if one != 'A' else 'B'}{tail}"}) == 401
    assert [cookie["name"] for cookie in page.context.cookies() if cookie["name"] == "obs_back"] == []
    page.goto(f"{base}/auth/logout")
    page.get_by_text("Sign in as ann").wait_for()
    assert page.request.get(f"{base}/metrics").status == 401

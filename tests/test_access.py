"""The guard by itself: whom a proxy's header lets in, under which host name, and what it never believes."""

import json
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest
import streamlit as st
from hypothesis import given, settings
from hypothesis import strategies as some
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from obs import config
from obs.config import OidcSettings, Settings
from obs.errors import CallError
from obs.language import render
from obs.ui.access import Guard, Proxy, guard, warn_if_open
from obs.ui.door import Door
from obs.ui.sign_in import SignIn, _is_ours, secrets

USER = ("x-forwarded-user", "ann")
PATHS = ["/", "/kv", "/api/v1/diagnosis", "/metrics", "/media/1.csv", "/_stcore/health", "/_stcore/agent/openapi.json", "/static/js/x.js"]
LET_IN = 299
SECRET = "s" * 40
OIDC = OidcSettings(metadata_url="http://p/.well-known", client_id="obs", redirect_uri="https://obs.example/oauth2callback")


def ask(door: Door | None, path: str = "/", *headers: tuple[str, str], peer: str | None = "127.0.0.1", kind: str = "http", base: str = ""):
    """(status or close code, headers, body) of one request, LET_IN where the guard let it through."""
    sent: list[dict[str, Any]] = []

    async def app(scope, receive, send):
        sent.append({"status": LET_IN})

    async def send(message):
        sent.append(message)

    pairs = [("host", "localhost:8501")] * all(name != "host" for name, _ in headers) + [*headers]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    scope = {"type": kind, "method": "GET", "path": path, "query_string": b"", "headers": raw, "client": (peer, 1) if peer else None}
    with suppress(StopIteration):  # nothing in it waits, so that it needs no event loop (the browser tests have one running)
        Guard(app, base, door)(scope | {"scheme": kind, "server": ("localhost", 8501)}, None, send).send(None)
    body = b"".join(message.get("body", b"") for message in sent).decode()
    answered = {name.decode(): value.decode() for name, value in sent[0].get("headers", ())}
    return sent[0].get("status") or sent[0]["code"], answered, body


def proxy(trusted: str = "10.0.0.0/24") -> Proxy:
    return Proxy("X-Forwarded-User", Settings(proxy_trusted=trusted).proxy_networks)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_nothing_is_answered_to_who_does_not_come_through_the_proxy(path, kind):
    refused = (403, 1008)[kind == "websocket"]
    assert ask(proxy(), path, peer="10.0.1.5", kind=kind)[0] == refused
    assert ask(proxy(), path, USER, peer="10.0.1.5", kind=kind)[0] == refused  # the header alone proves nothing
    assert ask(proxy(), path, USER, peer=None, kind=kind)[0] == refused
    assert ask(proxy(), path, USER, peer="10.0.0.5", kind=kind)[0] == LET_IN


def test_a_proxy_that_names_nobody_or_several_lets_nobody_in():
    assert ask(proxy(), peer="10.0.0.5")[0] == 401
    assert ask(proxy(), "/", ("x-forwarded-user", " "), peer="10.0.0.5")[0] == 401
    assert ask(proxy(), "/", USER, ("x-forwarded-user", "admin"), peer="10.0.0.5")[0] == 401


def test_an_address_that_the_asker_may_have_written_is_not_believed():
    """The server puts the last entry of X-Forwarded-For in the place of a local connection's address."""
    for claimed in ("10.0.0.5", "1.2.3.4, 10.0.0.5", "10.0.0.5:80", "10.0.0.5 "):
        assert ask(proxy(), "/", USER, ("x-forwarded-for", claimed), peer="10.0.0.5")[0] == 403
    assert ask(proxy("2001:db8::1"), "/", USER, ("x-forwarded-for", "[2001:db8::1]:80"), peer="2001:db8::1")[0] == 403
    status, _, body = ask(proxy("127.0.0.1"), "/", USER, ("x-forwarded-for", "192.0.2.7"), peer="192.0.2.7")
    assert (status, "Let the proxy leave that header out" in body) == (403, True)
    assert ask(proxy(), "/", USER, ("x-forwarded-for", "10.0.0.55"), peer="10.0.0.5")[0] == LET_IN


@settings(deadline=None)  # a busy machine is no failure
@given(some.text(alphabet=some.characters(max_codepoint=255), max_size=40), some.text(alphabet="0123456789.:abcdef[]%, ", max_size=40))
def test_no_address_opens_that_is_not_the_proxy_s(peer, claimed):
    claimed_header = ("x-forwarded-for", claimed)
    assert ask(proxy("192.0.2.1"), "/", USER, claimed_header, peer=peer.replace("192.0.2.1", ""))[0] == 403


def test_an_address_of_the_older_kind_in_the_newer_notation_is_the_same():
    assert ask(proxy(), "/", USER, peer="::ffff:10.0.0.5")[0] == LET_IN


def test_only_the_probe_stands_outside_and_under_no_other_spelling():
    assert ask(proxy(), "/healthz", peer="10.0.1.5")[0] == LET_IN
    assert ask(proxy(), "/obs/healthz", peer="10.0.1.5", base="/obs")[0] == LET_IN
    for path in ("/healthz/", "/healthz/../kv", "//healthz", "/healthz/x", "/Healthz", "/kv?/healthz", "/obsx/healthz"):
        assert ask(proxy(), path, peer="10.0.1.5", base="/obs")[0] == 403


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_foreign_host_name_reads_nothing_with_or_without_a_guard(kind, monkeypatch):
    monkeypatch.setattr(st.config, "get_option", lambda name: ["localhost", "*.example"] if name == "server.allowedHosts" else None)
    refused = (403, 1008)[kind == "websocket"]
    for door, peer in ((None, "127.0.0.1"), (proxy(), "10.0.0.5")):
        for host in ("evil.test", "localhost.evil.test", "localhost@evil.test", "evil.test:8501", "", "example"):
            assert ask(door, "/metrics", USER, ("host", host), peer=peer, kind=kind)[0] == refused
        for host in ("localhost", "LOCALHOST:8501", "obs.example"):
            assert ask(door, "/metrics", USER, ("host", host), peer=peer, kind=kind)[0] == LET_IN


def test_a_refusal_is_a_sentence_in_the_reader_s_language():
    assert ask(proxy(), "/", peer="10.0.1.5")[2] == "obs is read through a sign-in proxy. Open it at the proxy's address."
    assert "proxy" in (spanish := ask(proxy(), "/", ("accept-language", "es-ES,es"), peer="10.0.1.5")[2])
    assert spanish != ask(proxy(), "/", peer="10.0.1.5")[2]


# ---- sign-in


@pytest.fixture
def sign_in(monkeypatch):
    asked = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: SECRET if name == "server.cookieSecret" else asked(name))
    return SignIn(OIDC, "")


def cookie(secret: str = SECRET, name: str = "_streamlit_user", **claims: Any) -> tuple[str, str]:
    payload = {"origin": "https://obs.example", "is_logged_in": True, "email": "ann@example.com"} | claims
    return "cookie", f"_streamlit_user={create_signed_value(secret, name, json.dumps(payload)).decode()}"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_nothing_is_answered_without_a_cookie_that_obs_signed(path, kind, sign_in):
    refused = (401, 1008)[kind == "websocket"]
    forged = [
        cookie("t" * 40),
        cookie(name="_streamlit_user_tokens"),
        cookie(origin="https://other.example"),
        cookie(is_logged_in=False),
        cookie(is_logged_in="yes"),
        ("cookie", "_streamlit_user=é\x00"),
        ("cookie", '_streamlit_user={"is_logged_in": true, "origin": "https://obs.example"}'),
    ]
    for header in (USER, *forged):
        assert ask(sign_in, path, header, kind=kind)[0] == refused
    assert ask(sign_in, path, cookie(), kind=kind)[0] == LET_IN


@pytest.mark.parametrize("address", ["//evil.test", "https://evil.test", "/\\evil.test", "\\\\evil.test", "/a\r\nset-cookie: x", "", "kv"])
def test_after_the_sign_in_nobody_is_led_to_another_site(address, sign_in):
    assert not _is_ours(address)
    header = ("cookie", f"{cookie()[1]}; obs_back={quote(address)}")
    status, answered, _ = ask(sign_in, "/", ("accept", "text/html"), header)
    assert answered.get("location", "/") == "/"
    assert status == (302 if address else LET_IN)


def test_a_secret_that_can_be_guessed_starts_nothing(monkeypatch):
    monkeypatch.setattr(st, "get_option", lambda name: "short")
    with pytest.raises(SystemExit, match="STREAMLIT_SERVER_COOKIE_SECRET"):
        secrets(OIDC)
    monkeypatch.setattr(st, "get_option", lambda name: SECRET)
    with pytest.raises(SystemExit, match="OBS_OIDC__CLIENT_SECRET_FILE"):
        secrets(OIDC)
    assert secrets(None) is None


# ---- settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OBS_PROXY_TRUSTED", "all"),
        ("OBS_PROXY_TRUSTED", ","),
        ("OBS_PROXY_TRUSTED", "10.0.0.1/8"),
        ("OBS_PROXY_USER_HEADER", "X User"),
        ("OBS_OIDC__REDIRECT_URI", "https://obs.example/"),
    ],
)
def test_a_guard_that_would_not_guard_names_its_setting(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(CallError) as error:
        config.load()
    assert name.partition("__")[0] in render(error.value.says)


def test_two_guards_at_once_are_refused(monkeypatch):
    for name, value in OIDC.model_dump(exclude_none=True).items():
        monkeypatch.setenv(f"OBS_OIDC__{name.upper()}", value)
    assert config.load().oidc == OIDC
    monkeypatch.setenv("OBS_PROXY_USER_HEADER", "X-User")
    with pytest.raises(CallError, match="two guards"):
        config.load()


@pytest.mark.parametrize(
    ("address", "settings", "said"),
    [
        ("0.0.0.0", {}, True),
        ("::", {}, True),
        (None, {}, True),
        ("obs.example", {}, True),
        ("127.0.0.1", {}, False),
        ("::1", {}, False),
        ("localhost", {}, False),
        ("0.0.0.0", {"proxy_user_header": "X-User"}, False),
        ("0.0.0.0", {"oidc": OIDC}, False),
    ],
)
def test_listening_to_all_without_a_guard_is_said_at_the_start(address, settings, said, monkeypatch, caplog):
    monkeypatch.setattr(st, "get_option", lambda name: address)
    warn_if_open(Settings(**settings))
    assert ("Everybody who reaches" in caplog.text) == said


def test_the_settings_choose_the_door():
    assert guard(Settings()).kwargs["door"] is None
    assert isinstance(guard(Settings(proxy_user_header="X-User")).kwargs["door"], Proxy)
    assert isinstance(guard(Settings(oidc=OIDC)).kwargs["door"], SignIn)

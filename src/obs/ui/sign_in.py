"""Sign-in by OIDC: Streamlit's own login routes and signed cookie, asked for before anything is served.

`st.login` signs in the pages only. Here the same cookie opens every route, and who has none is led to the provider and back to the
address that was asked for. Streamlit's page is not shown before.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse
from streamlit.auth_util import encode_provider_token, get_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from obs.config import OidcSettings
from obs.errors import CallError
from obs.language import render
from obs.text import say
from obs.ui.door import Refusal

_BACK = "obs_back"  # the address that was asked for, while the provider asks who it is
_BACK_SECONDS = 600
_LONGEST = 2000
_OWN = ("/auth/login", "/auth/logout", "/oauth2callback")  # Streamlit's, for those who are not signed in yet
_SECRET_BYTES = 32
_REFUSED = say("Sign in first: open obs in a browser.")
_DOCUMENT = "text/html"


class SignIn:
    """Opens to a cookie that this dashboard signed after the provider named the user."""

    def __init__(self, settings: OidcSettings, base: str) -> None:
        parts = urlsplit(settings.redirect_uri)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.base = base
        self.secret = str(st.get_option("server.cookieSecret") or "")

    def refusal(self, asked: HTTPConnection, path: str) -> Refusal | None:
        """See Door."""
        if path in _OWN:
            return None
        is_document = asked.scope["type"] == "http" and asked.scope["method"] == "GET" and _DOCUMENT in asked.headers.get("accept", "")
        if not self._is_signed_in(asked):
            return Refusal(401, _REFUSED, self._to_provider(asked) if is_document else None)
        back = unquote(asked.cookies.get(_BACK, ""))
        if not (is_document and back):
            return None
        answer = RedirectResponse(back if _is_ours(back) else f"{self.base}/", status_code=302, headers={"Cache-Control": "no-store"})
        answer.delete_cookie(_BACK, path=self.base or "/")
        return Refusal(302, _REFUSED, answer)

    def _is_signed_in(self, asked: HTTPConnection) -> bool:
        """Whether the cookie carries our signature, is of this address and not older than Streamlit allows (31 days)."""

        def one(name: str) -> bytes | None:
            value = asked.cookies.get(name)
            return decode_signed_value(self.secret, name, value.encode("latin-1", "replace")) if value else None

        found = get_cookie_with_chunks(one, USER_COOKIE_NAME)
        try:
            user: Any = json.loads(found) if found else None
        except ValueError:
            return False
        return isinstance(user, dict) and user.get("is_logged_in") is True and user.get("origin") == self.origin

    def _to_provider(self, asked: HTTPConnection) -> RedirectResponse:
        wanted = asked.url.path + (f"?{asked.url.query}" if asked.url.query else "")
        answer = RedirectResponse(
            f"{self.base}/auth/login?provider={encode_provider_token('default')}", status_code=302, headers={"Cache-Control": "no-store"}
        )
        if len(wanted) <= _LONGEST and _is_ours(wanted):
            https = self.origin.startswith("https:")
            answer.set_cookie(
                _BACK, quote(wanted), max_age=_BACK_SECONDS, path=self.base or "/", httponly=True, samesite="lax", secure=https
            )
        return answer


def _is_ours(address: str) -> bool:
    """Whether a browser stays here when it is sent there: one slash first, and nothing that a browser would read as another."""
    return address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()


def secrets(settings: OidcSettings | None) -> dict[str, Any] | None:
    """What Streamlit's login reads, made of the settings. A cookie secret that can be guessed ends the process with a sentence."""
    if settings is None:
        return None
    if len(str(st.get_option("server.cookieSecret") or "")) < _SECRET_BYTES:
        says = say(
            "Signing in needs a secret that nobody can guess: set STREAMLIT_SERVER_COOKIE_SECRET to {count} characters or more, "
            "the same in every process. `openssl rand -hex 32` makes one.",
            count=_SECRET_BYTES,
        )
        sys.exit(f"obs: {render(says)}")
    try:
        secret = settings.secret()
    except CallError as error:
        sys.exit(f"obs: {render(error.says)}")
    return {
        "auth": {
            "redirect_uri": settings.redirect_uri,
            "cookie_secret": str(st.get_option("server.cookieSecret")),
            "client_id": settings.client_id,
            "client_secret": secret,
            "server_metadata_url": settings.metadata_url,
        }
    }

"""Who is let in: one middleware before every page, route, download and websocket. Only /healthz stands outside.

Streamlit's own checks cover its websocket alone; the JSON, the metrics and the media files are plain HTTP, and need the same guard.
"""

from __future__ import annotations

import logging
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from obs.config import Settings
from obs.language import negotiate, render
from obs.text import Names, say
from obs.ui.door import Door, Refusal
from obs.ui.markup import base_path
from obs.ui.sign_in import SignIn

_POLICY_VIOLATION = 1008  # the close code of a websocket that is refused


class Proxy:
    """Trusts the header in which a sign-in proxy names the user, from the addresses of that proxy and from no other."""

    def __init__(self, header: str, trusted: tuple[IPv4Network | IPv6Network, ...]) -> None:
        self.header, self.trusted = header, trusted

    def refusal(self, asked: HTTPConnection, path: str) -> Refusal | None:
        """See Door."""
        peer = asked.client.host if asked.client else ""
        if _may_be_claimed(peer, asked):
            return Refusal(
                403,
                say(
                    "Whether this comes from the sign-in proxy cannot be told: X-Forwarded-For took the place of its address. "
                    "Let the proxy leave that header out."
                ),
            )
        if not self._trusts(peer):
            return Refusal(403, say("obs is read through a sign-in proxy. Open it at the proxy's address."))
        names = asked.headers.getlist(self.header)
        if len(names) != 1 or not names[0].strip():
            return Refusal(401, say("The sign-in proxy named no user. Sign in there, or let it send {header}.", header=self.header))
        return None

    def _trusts(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.trusted)


def _may_be_claimed(peer: str, asked: HTTPConnection) -> bool:
    """Whether the address may be what the asker wrote: the server replaces that of a local connection by one of X-Forwarded-For."""
    entries = [entry.strip() for value in asked.headers.getlist("x-forwarded-for") for entry in value.split(",")]
    return any(entry == peer or entry.startswith((f"{peer}:", f"[{peer}]")) for entry in entries)


class Guard:
    """Lets through what the door opens to, asked for under a host name of `server.allowedHosts` (a foreign name is DNS rebinding)."""

    def __init__(self, app: ASGIApp, base: str, door: Door | None) -> None:
        self.app, self.base, self.door = app, base, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        path = scope["path"].removeprefix(self.base) or "/"
        refused = None if path == "/healthz" else self._refusal(asked, path)
        if refused is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        else:
            lang = negotiate(asked.query_params.get("lang") or "", asked.headers.get("accept-language"))
            plain = PlainTextResponse(render(refused.says, lang), status_code=refused.status, headers={"Cache-Control": "no-store"})
            await (refused.answer or plain)(scope, receive, send)

    def _refusal(self, asked: HTTPConnection, path: str) -> Refusal | None:
        host = asked.headers.get("host")
        if not is_host_allowed(host):
            says = say(
                "obs does not answer to the name {host}. Name it in STREAMLIT_SERVER_ALLOWED_HOSTS, if it is yours.",
                host=Names((host or "?",)),
            )
            return Refusal(403, says)
        return self.door.refusal(asked, path) if self.door is not None else None


def guard(settings: Settings) -> Middleware:
    """The middleware that the settings ask for; without any, it checks the host name alone."""
    base = base_path()
    door: Door | None = None
    if settings.proxy_user_header:
        door = Proxy(settings.proxy_user_header, settings.proxy_networks)
    elif settings.oidc is not None:
        door = SignIn(settings.oidc, base)
    return Middleware(Guard, base=base, door=door)


def warn_if_open(settings: Settings) -> None:
    """Says so at the start where others than this machine's users may read the pages, and nobody asks who they are."""
    address = str(st.get_option("server.address") or "0.0.0.0")  # noqa: S104  (what Streamlit listens on without one)
    if settings.proxy_user_header or settings.oidc is not None or _is_loopback(address):
        return
    says = say(
        "Everybody who reaches {address} can read what obs reads: no sign-in is set. Set OBS_PROXY_USER_HEADER or OBS_OIDC, "
        "or listen on 127.0.0.1.",
        address=address,
    )
    logging.getLogger("obs").warning("obs: %s", render(says))


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"

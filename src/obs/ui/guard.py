"""What every answer of the process carries, so that a browser refuses what the pages never ask for."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Streamlit's page has an inline script and Vega compiles its expressions: without these two words neither would run. Nothing may be
# loaded from elsewhere, and nothing be sent there.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # a link out does not tell the window that was looked at
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class Headers:
    """Adds the policy and its companions to every HTTP answer."""

    def __init__(self, app: ASGIApp, ancestors: str) -> None:
        self.app = app
        self.headers = {"Content-Security-Policy": _POLICY.format(ancestors=ancestors), **_HEADERS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, answer)


def headers(ancestors: str) -> Middleware:
    """The middleware. `ancestors` are the pages that may show this one in a frame, as a policy has them."""
    return Middleware(Headers, ancestors=ancestors)

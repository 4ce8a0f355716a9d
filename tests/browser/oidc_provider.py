"""A small OIDC provider: its metadata, keys, a form that asks who it is, and tokens signed with RS256 for a code with its PKCE verifier."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwk, jwt

CLIENT, CLIENT_SECRET = "obs", "the-client-secret-of-the-test"


class Provider:
    """What it knows: its key, and the codes it gave out. `audience` is what its tokens are made for."""

    def __init__(self) -> None:
        self.key = jwk.RSAKey.generate_key(2048, {"kid": "one"})
        self.foreign = jwk.RSAKey.generate_key(2048, {"kid": "one"})
        self.codes: dict[str, dict[str, str]] = {}
        self.base, self.audience, self.forged = "", CLIENT, False

    def metadata(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "jwks_uri": f"{self.base}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def allow(self, asked: dict[str, str]) -> str:
        """The address that the browser is sent back to, with a code."""
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The tokens for a code; None where code, client secret or verifier is not the right one."""
        asked = self.codes.pop(form.get("code", ""), None)
        given = base64.b64decode(authorization.removeprefix("Basic ")).decode() if authorization else ""
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or given != f"{CLIENT}:{CLIENT_SECRET}" or challenge != asked.get("code_challenge"):
            return None
        now = int(time.time())
        claims = {"iss": self.base, "aud": self.audience, "sub": "1", "email": "ann@example.com", "nonce": asked.get("nonce", "")}
        key = self.foreign if self.forged else self.key
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims | {"iat": now, "exp": now + 300}, key)
        return {"access_token": "access", "token_type": "Bearer", "expires_in": 300, "id_token": token}


@contextmanager
def provider() -> Iterator[Provider]:
    """The provider, on a free port."""
    known = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/authorize":
                target = escape(known.allow(query))
                self._say(f"<title>Provider</title><a href='{target}'>Sign in as ann</a>".encode(), "text/html")
            elif parts.path == "/jwks":
                self._say(json.dumps({"keys": [known.key.as_dict(private=False)]}).encode())
            else:
                self._say(json.dumps(known.metadata()).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            found = known.token({name: values[0] for name, values in parse_qs(body).items()}, self.headers.get("Authorization", ""))
            self._say(json.dumps(found or {"error": "invalid_grant"}).encode(), status=200 if found else 400)

        def _say(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""A tiny HTTP server that answers as it is told: for faults that a real Prometheus cannot be made to show."""

from __future__ import annotations

import json
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Seen:
    """One request that arrived."""

    method: str
    path: str
    params: dict[str, list[str]]
    headers: dict[str, str]
    query: str = ""


@dataclass
class Reply:
    """What is sent back. `cut` bytes are left out of the promised length; `drip` seconds pass between single bytes."""

    status: int = 200
    body: bytes | str | Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    drip: float = 0.0
    wait: float = 0.0


def success(result: Any, **more: Any) -> Reply:
    """What Prometheus answers."""
    return Reply(body={"status": "success", "data": {"resultType": "matrix", "result": result}, **more})


@contextmanager
def serving(
    answer: Callable[[Seen], Reply] | Reply, closed: threading.Event | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[Seen]]]:
    """(address, requests seen so far) of a server that answers every request so; `closed` tells that somebody hung up on it."""
    seen: list[Seen] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            parts = urlsplit(self.path)
            params = parse_qs(parts.query) | parse_qs(self.rfile.read(length).decode())
            seen.append(Seen(self.command, parts.path, params, dict(self.headers), parts.query))
            reply = answer(seen[-1]) if callable(answer) else answer
            if reply.wait and select.select([self.connection], [], [], reply.wait)[0] and closed is not None:
                closed.set()  # nobody sends anything more: what can be read is the end
            body = (
                reply.body
                if isinstance(reply.body, bytes)
                else (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
            )
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                for byte in body if reply.drip else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.drip)
                if not reply.drip:
                    self.wfile.write(body[: len(body) - reply.cut])
            except OSError:  # the other side has had enough
                if closed is not None:
                    closed.set()
            self.close_connection = bool(reply.cut)

        do_GET = do_POST = handle_one  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a handshake that fails is the other side's to tell
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

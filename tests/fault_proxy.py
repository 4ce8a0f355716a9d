"""A proxy on 127.0.0.1 before a real Prometheus that can be told to fail in every way that networks, proxies and sources do."""

from __future__ import annotations

import json
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Fault:
    """What happens to each request; without any of these it is passed on."""

    status: int = 0  # answered so, and not passed on
    body: str = ""
    kind: str = "application/json"
    wait: float = 0.0  # seconds before anything is done; who hangs up meanwhile is noticed
    reset: bool = False  # the connection is reset in the middle of the answer
    half: bool = False  # the first half of the JSON, as if that were all
    clock: float = 0.0  # seconds that the Date header is off
    refused: bool = False  # nobody listens


FINE = Fault()


def prometheus_error(status: int, words: str) -> Fault:
    """An error in Prometheus' own form."""
    return Fault(status, json.dumps({"status": "error", "errorType": "execution", "error": words}))


FAULTS = {
    "refused": Fault(refused=True),
    "reset": Fault(reset=True),
    "slow": Fault(wait=30.0),
    "429": prometheus_error(429, "slow down"),
    "500": Fault(500, "boom", "text/plain"),
    "503": Fault(503, "Service Unavailable", "text/plain"),
    "half JSON": Fault(half=True),
    "HTML": Fault(200, "<html><title>Sign in</title></html>", "text/html"),
    "wrong type": Fault(200, json.dumps({"status": "success", "data": {"resultType": "string", "result": [1, "x"]}})),
    "too many samples": prometheus_error(400, "query processing would load too many samples into memory in query execution"),
    "too many points": prometheus_error(
        400, "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution"
    ),
}


@dataclass
class FaultProxy:
    """Passes on to `upstream` unless `fault` says otherwise. Both may be changed at any time; the address stays the same."""

    upstream: str
    port: int = 0
    seen: list[str] = field(default_factory=list)  # the paths that were asked for
    hung_up: int = 0  # askers that did not wait for the answer
    under_way: int = 0
    _fault: Fault = FINE
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def fault(self) -> Fault:
        """What it does now."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        self._fault = fault
        if fault.refused:
            self.stop()
        elif self._server is None:
            self.start()

    def start(self) -> None:
        """Listens, on the port that it had before."""
        proxy = self

        class Handler(_Handler):
            of = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """Listens no more, and ends the connections that are open."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Handler(BaseHTTPRequestHandler):
    of: FaultProxy
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        proxy = self.of
        if proxy._server is None:  # it was stopped while this connection stayed open
            self.close_connection = True
            return
        fault = proxy.fault
        proxy.seen.append(urlsplit(self.path).path)
        proxy.under_way += 1
        try:
            if fault.wait and self._hangs_up(fault.wait):
                proxy.hung_up += 1
                self.close_connection = True
            elif fault.status:
                self._send(fault.status, {"Content-Type": fault.kind}, fault.body.encode(), fault)
            else:
                self._pass_on(body, fault)
        finally:
            proxy.under_way -= 1

    do_GET = do_POST = answer  # noqa: N815

    def _hangs_up(self, seconds: float) -> bool:
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(None)

    def _pass_on(self, body: bytes | None, fault: Fault) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        request = urllib.request.Request(self.of.upstream + self.path, body, headers, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                status, found, content = reply.status, dict(reply.headers), reply.read()
        except urllib.error.HTTPError as error:
            status, found, content = error.code, dict(error.headers), error.read()
        self._send(status, found, content[: len(content) // 2] if fault.half else content, fault)

    def _send(self, status: int, headers: dict[str, Any], content: bytes, fault: Fault) -> None:
        date = headers.get("Date")
        at = parsedate_to_datetime(date).timestamp() if date else None
        self.send_response_only(status)
        self.send_header("Date", formatdate(None if at is None else at + fault.clock, usegmt=True))
        self.send_header("Content-Type", headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault.reset:
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends a reset
            self.connection.close()
            self.close_connection = True
        else:
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def proxied(upstream: str) -> Iterator[FaultProxy]:
    """A proxy before `upstream`, until the end of the test."""
    proxy = FaultProxy(upstream)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.fault = FINE
        proxy.stop()

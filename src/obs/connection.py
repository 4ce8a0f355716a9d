"""Connections whose wait for an answer can be cut off from another thread, and at most so many requests at a time."""

from __future__ import annotations

import socket
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse

from obs import errand

AT_ONCE = 8  # requests; Prometheus runs 20 queries at a time (query.max-concurrency), its own rules and alerts among them


def _cut(sock: Any) -> None:
    """Ends both directions, so that the other side sees it, and whoever reads here wakes up."""
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of TLS too: its own shutdown would take the state from under the reader


class _Plain(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3 has it
        stop = errand.current()
        with stop.cutting(partial(_cut, self.sock)) if stop else nullcontext():
            return super().getresponse()


class _Secure(_Plain, HTTPSConnection):
    """The same over TLS."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _Secure


class Adapter(HTTPAdapter):
    """No retries of its own, and connections that can be cut off."""

    def __init__(self) -> None:
        super().__init__(pool_connections=AT_ONCE, pool_maxsize=AT_ONCE, max_retries=0)
        self._watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **proxy_kwargs: Any) -> Any:
        """The same through a proxy."""
        manager = super().proxy_manager_for(proxy, **proxy_kwargs)
        self._watch(manager)
        return manager

    @staticmethod
    def _watch(manager: Any) -> None:
        manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}

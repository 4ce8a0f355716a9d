"""HTTP to a Prometheus-compatible API: one session, its time-outs and credentials, and every failure as a sentence.

prometheus-api-client is used for the calls; what it leaves out is here: a whole-answer deadline (it may wait for ever), POST parameters in
the body (it puts them into the URL), no compression (on a LAN gzip costs Prometheus five times the CPU), what an error says.
"""

from __future__ import annotations

import logging
import re
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from email.utils import parsedate_to_datetime
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import orjson
import requests
from urllib3.exceptions import HTTPError

from obs import credentials, errand, matrix, unreachable
from obs.connection import AT_ONCE, Adapter
from obs.errors import SourceError
from obs.patience import Circuit, RetryBudget, pause_seconds
from obs.refusals import LeftError, QueryRefusedError, StatusError, TooSlowError, UnreachableError, is_down
from obs.refusals import error as error_for
from obs.text import Message, Quantity, say

if TYPE_CHECKING:
    from obs.config import SourceSettings

logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # a retry is no news; what fails is said in a sentence
LARGEST_BYTES = 400_000_000  # an answer above this is refused before it fills the memory
CONNECT_SECONDS = 3.0
TRANSIENT = (502, 503)  # of a proxy whose backend restarts, of a source that is busy for a moment


class Asked:
    """How long requests took, and how the source's clock stands to ours. Shared by threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.count, self.slowest_seconds, self.total_seconds = 0, 0.0, 0.0
        self.clock_seconds: float | None = None

    def took(self, seconds: float) -> None:
        """One request more."""
        with self._lock:
            self.count, self.total_seconds = self.count + 1, self.total_seconds + seconds
            self.slowest_seconds = max(self.slowest_seconds, seconds)

    def clock(self, date: str | None, now: float) -> None:
        """What an answer's Date header says at `now`; it is cut to the second, so that half of one is added."""
        with suppress(ValueError):
            self.clock_seconds = parsedate_to_datetime(date).timestamp() + 0.5 - now if date else self.clock_seconds


class PrometheusSession(requests.Session):
    """A session whose answers are whole, valid and successful, or a SourceError."""

    def __init__(self, source: SourceSettings) -> None:
        super().__init__()
        self._source = source
        parts = urlsplit(source.url)
        self.base = source.url.replace(f"{parts.netloc.rpartition('@')[0]}@", "", 1) if "@" in parts.netloc else source.url
        self.headers["Accept-Encoding"] = "identity"
        credentials.present(self, source)
        self.warnings: dict[str, None] = {}
        self.asked = Asked()
        self.retries, self.circuit = RetryBudget(), Circuit()
        self._turns = BoundedSemaphore(AT_ONCE)
        self.given_up = 0  # requests that were cut off because nobody waited any more
        self._last = say("{address} cannot be reached.", address=source.address)

    def settle(self) -> None:
        """Mounts this session's own adapter over the one that prometheus-api-client mounts."""
        for prefix in ("http://", "https://", self.base):
            self.mount(prefix, Adapter())

    def request(self, method: str, url: str, **kwargs: Any) -> requests.Response:  # type: ignore[override]  # keywords only
        """One request, answered in full and in time. Raises SourceError; QueryRefusedError where only this query is at fault."""
        if method == "POST":
            kwargs["data"] = kwargs.pop("params", None)
        seconds = kwargs.pop("timeout", None) or self._source.timeout_seconds
        kwargs["timeout"] = (min(CONNECT_SECONDS, seconds), seconds + 1)  # the server is told `seconds`: its own error should come first
        kwargs["auth"] = self.auth
        kwargs["verify"], kwargs["cert"] = credentials.files(self._source)  # they too may be gone by now
        if self.circuit.wait_seconds() > 0:
            raise SourceError(self._down())
        self.retries.asked()
        stop = errand.current()
        with stop.counted() if stop else nullcontext(), self._turn(seconds):
            deadline = time.monotonic() + seconds + 2
            try:
                return self._once(method, url, seconds, deadline, kwargs)
            except SourceError as error:
                if not _transient(error) or time.monotonic() + seconds / 2 > deadline or not self.retries.spend():
                    raise
                time.sleep(pause_seconds())
                if self.circuit.wait_seconds() > 0:  # others found it down meanwhile
                    raise
            return self._once(method, url, seconds, deadline, kwargs)

    @contextmanager
    def _turn(self, seconds: float) -> Iterator[None]:
        """One of the few requests at a time. Whoever does not come to it within the time-out hears that the source is too slow."""
        stop, until = errand.current(), time.monotonic() + seconds
        while not self._turns.acquire(timeout=errand.POLL_SECONDS):
            if stop:
                stop.check()
            if time.monotonic() > until:
                raise TooSlowError(504, self._too_slow(seconds))
        try:
            yield
        finally:
            self._turns.release()

    def _once(self, method: str, url: str, seconds: float, deadline: float, kwargs: dict[str, Any]) -> requests.Response:
        began, stop = time.monotonic(), errand.current()
        if stop:
            stop.check()
        try:
            response = super().request(method, url, stream=True, **kwargs)
            self.asked.clock(response.headers.get("Date"), time.time())
            response._content = self._read(response, deadline)
        except (requests.exceptions.RequestException, HTTPError) as error:
            if stop and stop.stopped:
                self.given_up += 1
                raise LeftError from error  # cut off by ourselves: it says nothing about the source
            self.circuit.failed()
            said = (
                TooSlowError(504, self._too_slow(seconds))
                if unreachable.timed_out(error)
                else UnreachableError(unreachable.sentence(self._source.address, error))
            )
            self._last = said.says
            raise said from error
        finally:
            self.asked.took(time.monotonic() - began)
        try:
            self._check(response)
        except StatusError as error:
            if is_down(error):
                self.circuit.failed()
                self._last = error.says
            else:
                self.circuit.worked()
            raise
        self.circuit.worked()
        return response

    def _down(self) -> Message:
        return say("{why} It is left alone for a while, and asked again by itself.", why=self._last)

    def _read(self, response: requests.Response, deadline: float) -> bytes:
        chunks, size = [], 0
        stop = errand.current()
        with stop.cutting(partial(_shut, response)) if stop else nullcontext(), response:
            while chunk := response.raw.read1(1 << 16):  # not iter_content: it waits for a full chunk, however slowly the bytes drip
                chunks.append(chunk)
                size += len(chunk)
                if time.monotonic() > deadline:
                    raise requests.exceptions.ReadTimeout
                if size > LARGEST_BYTES:
                    raise QueryRefusedError(
                        413,
                        say(
                            "{address} sent more than {size} in one answer. Choose a shorter window or a narrower scope.",
                            address=self._source.address,
                            size=Quantity(LARGEST_BYTES, "bytes"),
                        ),
                    )
        return b"".join(chunks)

    def _too_slow(self, seconds: float) -> Message:
        return say(
            "{address} did not answer within {seconds}. Choose a shorter window or a narrower scope, or raise "
            "OBS_PROMETHEUS_TIMEOUT_SECONDS.",
            address=self._source.address,
            seconds=Quantity(seconds, "seconds"),
        )

    def _check(self, response: requests.Response) -> None:
        """Raises SourceError unless this is a whole and successful answer of the API; its JSON is parsed once."""
        where, status = self._source.address, response.status_code
        try:
            body = matrix.parsed(response.content)
        except orjson.JSONDecodeError:
            body = None
        secrets = _secrets(response.request)
        said = _without(secrets, str(body["error"])) if isinstance(body, dict) and body.get("error") else ""
        if status == 200 and isinstance(body, dict) and body.get("status") == "success" and "data" in body:
            response.json = lambda **_: body  # type: ignore[method-assign]
            self.warnings.update(dict.fromkeys(_without(secrets, str(text)) for text in body.get("warnings") or ()))
            return
        raise error_for(where, status, said, body is not None, bool(response.history))


def _shut(response: requests.Response) -> None:
    """Wakes whoever reads this answer."""
    with suppress(OSError, ValueError, RuntimeError):  # it may be read to its end by now
        response.raw.shutdown()


def _secrets(sent: requests.PreparedRequest) -> list[str]:
    """What was sent as a credential, in the forms that a source or a proxy may repeat."""
    kind, _, value = str(sent.headers.get("Authorization") or "").partition(" ")
    password = ""
    if kind == "Basic":
        with suppress(ValueError):
            password = b64decode(value).decode("utf-8", "replace").partition(":")[2]
    tenant = str(sent.headers.get("X-Scope-OrgID") or "")
    return [secret for secret in (value, password, quote(password, safe=""), tenant) if secret]


def _without(secrets: list[str], text: str) -> str:
    """What a source said, on one line, cut, and without the credentials that it may have been so free to repeat."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return re.sub(r"\s+", " ", text)[:300]


def _transient(error: SourceError) -> bool:
    """Whether the same request may succeed a moment later. A query that took too long would take as long again."""
    if isinstance(error, TooSlowError):
        return False
    return isinstance(error, UnreachableError) or (isinstance(error, StatusError) and error.status in TRANSIENT)

"""HTTP to a Prometheus-compatible API: one session, its time-outs and credentials, and every failure as a sentence.

prometheus-api-client is used for the calls; what it leaves out is here: a whole-answer deadline (it may wait for ever), POST parameters in
the body (it puts them into the URL), no compression (on a LAN gzip costs Prometheus five times the CPU), what an error says.
"""

from __future__ import annotations

import logging
import re
import time
from base64 import b64decode
from contextlib import suppress
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import orjson
import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError, ProtocolError, ReadTimeoutError

from obs.errors import CallError, SourceError
from obs.patience import Circuit, RetryBudget, pause_seconds
from obs.refusals import QueryRefusedError, StatusError, TooSlowError, UnreachableError
from obs.refusals import error as error_for
from obs.text import Message, Quantity, say

if TYPE_CHECKING:
    from obs.config import SourceSettings

logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # a retry is no news; what fails is said in a sentence
POOL = 16
LARGEST_BYTES = 400_000_000  # an answer above this is refused before it fills the memory
CONNECT_SECONDS = 3.0
TRANSIENT = (502, 503)  # of a proxy whose backend restarts, of a source that is busy for a moment


class _Token(AuthBase):
    """The bearer token, read for each request (mounted secrets are rotated), and never shown. Keeps a .netrc from replacing it."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        token = self._source.token.get_secret_value() if self._source.token else ""
        if self._source.token_file:
            try:
                token = self._source.token_file.read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise CallError(
                    say(
                        "The token file {path} of the source “{name}” cannot be read. Check OBS_PROMETHEUS_TOKEN_FILE and its rights.",
                        path=str(self._source.token_file),
                        name=self._source.name,
                    )
                ) from error
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        return request


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
        self.auth = HTTPBasicAuth(*(unquote(word or "") for word in (parts.username, parts.password))) if parts.username else _Token(source)
        self.headers["Accept-Encoding"] = "identity"
        if source.tenant:
            self.headers["X-Scope-OrgID"] = source.tenant
        if source.ca_file:
            if not source.ca_file.is_file():
                raise CallError(
                    say(
                        "The CA file {path} of the source “{name}” does not exist. Check OBS_PROMETHEUS_CA_FILE.",
                        path=str(source.ca_file),
                        name=source.name,
                    )
                )
            self.verify = str(source.ca_file)
        self.warnings: dict[str, None] = {}
        self.asked = Asked()
        self.retries, self.circuit = RetryBudget(), Circuit()
        self._last = say("{address} cannot be reached.", address=source.address)

    def settle(self) -> None:
        """Mounts this session's own adapter over the one that prometheus-api-client mounts."""
        for prefix in ("http://", "https://", self.base):
            self.mount(prefix, HTTPAdapter(pool_connections=POOL, pool_maxsize=POOL, max_retries=0))

    def request(self, method: str, url: str, **kwargs: Any) -> requests.Response:  # type: ignore[override]  # keywords only
        """One request, answered in full and in time. Raises SourceError; QueryRefusedError where only this query is at fault."""
        if method == "POST":
            kwargs["data"] = kwargs.pop("params", None)
        seconds = kwargs.pop("timeout", None) or self._source.timeout_seconds
        kwargs["timeout"] = (min(CONNECT_SECONDS, seconds), seconds + 1)  # the server is told `seconds`: its own error should come first
        kwargs["auth"] = self.auth
        if self.circuit.wait_seconds() > 0:
            raise SourceError(self._down())
        deadline = time.monotonic() + seconds + 2
        self.retries.asked()
        try:
            return self._once(method, url, seconds, deadline, kwargs)
        except SourceError as error:
            if not _transient(error) or time.monotonic() + seconds / 2 > deadline or not self.retries.spend():
                raise
        time.sleep(pause_seconds())
        return self._once(method, url, seconds, deadline, kwargs)

    def _once(self, method: str, url: str, seconds: float, deadline: float, kwargs: dict[str, Any]) -> requests.Response:
        began = time.monotonic()
        try:
            response = super().request(method, url, stream=True, **kwargs)
            self.asked.clock(response.headers.get("Date"), time.time())
            response._content = self._read(response, deadline)
        except (requests.exceptions.RequestException, HTTPError) as error:
            self.circuit.failed()
            said = TooSlowError(504, self._too_slow(seconds)) if _timed_out(error) else UnreachableError(self._unreachable(error))
            self._last = said.says
            raise said from error
        finally:
            self.asked.took(time.monotonic() - began)
        self.circuit.worked()
        self._check(response)
        return response

    def _down(self) -> Message:
        return say("{why} It is left alone for a while, and asked again by itself.", why=self._last)

    def _read(self, response: requests.Response, deadline: float) -> bytes:
        chunks, size = [], 0
        with response:
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

    def _unreachable(self, error: Exception) -> Message:
        where = self._source.address
        reason = getattr(error.args[0] if error.args else None, "reason", None)
        if isinstance(error, requests.exceptions.SSLError):
            return say(
                "The certificate of {address} was not accepted. If your own authority signed it, name that authority's file in "
                "OBS_PROMETHEUS_CA_FILE; if the port speaks plain HTTP, write http://.",
                address=where,
            )
        if isinstance(reason, NameResolutionError):
            return say(
                "The host name in {address} is not known. Check it for a slip, and whether this machine can resolve it.", address=where
            )
        if isinstance(reason, NewConnectionError) and "refused" in str(reason):
            return say("{address} refused the connection. Check host and port, and whether Prometheus is running there.", address=where)
        if isinstance(reason, NewConnectionError):
            return say("{address} cannot be reached: {reason}. Check the network between.", address=where, reason=_system_reason(reason))
        if isinstance(error, requests.exceptions.ConnectTimeout) or isinstance(reason, ConnectTimeoutError):
            return say("{address} did not take the connection in time. Check the address, and the network between.", address=where)
        if isinstance(error, (ProtocolError, requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError)):
            return say(
                "The answer of {address} broke off half-way. Try again; if it lasts, look at the proxy in front of it.", address=where
            )
        if isinstance(error, requests.exceptions.TooManyRedirects):
            return say("{address} redirects in a circle. Give the address of the Prometheus API itself.", address=where)
        if "refused" in str(error):
            return say("{address} refused the connection. Check host and port, and whether Prometheus is running there.", address=where)
        return say(
            "{address} closed the connection or cannot be reached. Check the address, and whether Prometheus is running.", address=where
        )

    def _check(self, response: requests.Response) -> None:
        """Raises SourceError unless this is a whole and successful answer of the API; its JSON is parsed once."""
        where, status = self._source.address, response.status_code
        try:
            body = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            body = None
        secrets = _secrets(response.request)
        said = _without(secrets, str(body["error"])) if isinstance(body, dict) and body.get("error") else ""
        if status == 200 and isinstance(body, dict) and body.get("status") == "success" and "data" in body:
            response.json = lambda **_: body  # type: ignore[method-assign]
            self.warnings.update(dict.fromkeys(_without(secrets, str(text)) for text in body.get("warnings") or ()))
            return
        raise error_for(where, status, said, body is not None, bool(response.history))


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


def _timed_out(error: Exception) -> bool:
    """Whether the connection stood and the answer did not come; a connection that is not taken is another matter."""
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(error, requests.exceptions.ConnectTimeout) or isinstance(reason, ConnectTimeoutError):
        return False
    return isinstance(error, (requests.exceptions.Timeout, ReadTimeoutError)) or isinstance(reason, ReadTimeoutError)


def _system_reason(error: Exception) -> str:
    """What the operating system said: "No route to host"."""
    return getattr(error.__cause__, "strerror", None) or str(error).rpartition("] ")[2]

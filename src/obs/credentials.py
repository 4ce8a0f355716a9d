"""What a source is shown of who asks: a token or a password, a tenant, a client certificate; and whose signature it has to show itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import requests
from requests.auth import AuthBase, HTTPBasicAuth

from obs.errors import CallError
from obs.text import say

if TYPE_CHECKING:
    from obs.config import SourceSettings


def present(session: requests.Session, source: SourceSettings) -> None:
    """Gives the session what the settings name. Raises CallError for a file that is not there."""
    parts = urlsplit(source.url)
    session.auth = HTTPBasicAuth(*(unquote(word or "") for word in (parts.username, parts.password))) if parts.username else _Token(source)
    if source.tenant:
        session.headers["X-Scope-OrgID"] = source.tenant
    session.verify, session.cert = files(source)


def files(source: SourceSettings) -> tuple[str | bool, tuple[str, str] | None]:
    """(whose signature the source has to show, certificate and key to show it). Raises CallError for a file that cannot be read."""
    if source.key_file and not source.cert_file:
        raise CallError(say("OBS_PROMETHEUS_KEY_FILE is of no use without OBS_PROMETHEUS_CERT_FILE. Name both."))
    verify = _file(source.ca_file, "OBS_PROMETHEUS_CA_FILE", source) if source.ca_file else True
    if not source.cert_file:
        return verify, None
    certificate = _file(source.cert_file, "OBS_PROMETHEUS_CERT_FILE", source)
    return verify, (certificate, _file(source.key_file or source.cert_file, "OBS_PROMETHEUS_KEY_FILE", source))


def _file(path: Path, setting: str, source: SourceSettings) -> str:
    """The path of a file that can be read. Each connection opens it anew, so that it may be rotated."""
    try:
        path.open("rb").close()
    except OSError as error:
        says = say(
            "The file {path} of the source “{name}” cannot be read. Check {setting} and its rights.",
            path=str(path),
            name=source.name,
            setting=setting,
        )
        raise CallError(says) from error
    return str(path)


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

"""Settings: environment variables (`OBS_...`), and a TOML file named by `OBS_CONFIG`. Command line > environment > file.

Secrets come from a file or the environment only, and are in no repr, log, link or bundle.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from obs.errors import CallError
from obs.text import Names, say
from obs.thresholds import THRESHOLDS

PREFIX = "OBS_"
T = TypeVar("T")


def masked(url: str) -> str:
    """The address as it may be shown: without user name, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, f"***@{host}" if "@" in parts.netloc else host, parts.path, "", ""))


class SourceSettings(BaseModel):
    """One Prometheus-compatible source. The URL may carry credentials, so it is never in a repr: show `address`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(repr=False, description="Base address of the Prometheus HTTP API, as a browser would open it.")
    token_file: Path | None = Field(None, description="File with a bearer token; read again for each request.")
    token: SecretStr | None = Field(None, repr=False, description="The bearer token itself, from the environment.")
    ca_file: Path | None = Field(None, description="PEM file with the certificate authority of an https address.")
    cert_file: Path | None = Field(None, description="PEM file with the client certificate that the source asks for.")
    key_file: Path | None = Field(
        None, description="PEM file with its key, without a passphrase; not needed where the key is in the same file."
    )
    tenant: str | None = Field(None, description="Sent as X-Scope-OrgID (Mimir, Cortex, Loki's kin).")
    timeout_seconds: float = Field(10.0, gt=0, le=600, description="How long one question may take.")
    link: bool = Field(True, description="Whether pages link to its own graph, at this address without user name and password.")
    name: str = Field("default", description="What links and the page call it.")

    @field_validator("url")
    @classmethod
    def _http(cls, value: str) -> str:
        parts = urlsplit(value.strip())  # ValueError for a broken IPv6 address or the like
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError("not an http:// or https:// address")
        return value.strip().rstrip("/")

    @property
    def address(self) -> str:
        """The URL as it may be shown."""
        return masked(self.url)


class OidcSettings(BaseModel):
    """The provider that people sign in with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metadata_url: str = Field(pattern=r"^https?://", description="Its .well-known/openid-configuration.")
    client_id: str = Field(min_length=1, description="What the provider calls obs.")
    client_secret: SecretStr | None = Field(None, repr=False, description="The secret that the provider gave obs.")
    client_secret_file: Path | None = Field(None, description="A file with it, which is better; read at the start.")
    redirect_uri: str = Field(
        pattern=r"^https?://[^/?#]+/(.+/)?oauth2callback$", description="The dashboard's address and /oauth2callback."
    )

    def secret(self) -> str:
        """The client secret. Raises CallError where there is none."""
        try:
            found = self.client_secret_file.read_text("utf-8").strip() if self.client_secret_file else ""
        except (OSError, UnicodeDecodeError) as error:
            raise CallError(say("{variable} names no file that can be read.", variable="OBS_OIDC__CLIENT_SECRET_FILE")) from error
        found = found or (self.client_secret.get_secret_value() if self.client_secret else "")
        if not found:
            raise CallError(say("Signing in needs OBS_OIDC__CLIENT_SECRET_FILE: the file with the secret that the provider gave obs."))
        return found


class Settings(BaseSettings):
    """Everything that can be set. Each field is an environment variable: OBS_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, env_ignore_empty=True)

    prometheus_url: str | None = Field(None, repr=False, description="The default source. Without it the sample recording is shown.")
    prometheus_token_file: Path | None = Field(None, description="File with a bearer token for it.")
    prometheus_token: SecretStr | None = Field(None, repr=False, description="The token itself; a file is better.")
    prometheus_ca_file: Path | None = Field(None, description="Certificate authority for it.")
    prometheus_cert_file: Path | None = Field(None, description="Client certificate for it; opened again for each connection.")
    prometheus_key_file: Path | None = Field(
        None, description="Key of that certificate, without a passphrase, where it is a file of its own."
    )
    prometheus_tenant: str | None = Field(None, description="Tenant (X-Scope-OrgID) for it.")
    prometheus_timeout_seconds: float = Field(
        10.0, gt=0, le=600, description="How long one question may take; three times as long where the window is of more than eight hours."
    )
    prometheus_link: bool = Field(True, description="Whether pages link to its own graph page; not where browsers cannot reach it.")
    frame_ancestors: str = Field(
        "'self'",
        pattern=r"^('none'|'self'( https?://[\w.:*-]+)*|https?://[\w.:*-]+( https?://[\w.:*-]+)*)$",
        description="Which pages may show obs in a frame: 'none', 'self', or addresses like https://grafana.example, with spaces between.",
    )
    proxy_user_header: str | None = Field(
        None, pattern=r"^[A-Za-z0-9-]+$", description="Guard: the header in which a sign-in proxy names the user, like X-Forwarded-User."
    )
    proxy_trusted: str = Field(
        "127.0.0.1 ::1", description="Addresses or networks of that proxy, with spaces between; no other is believed."
    )
    oidc: OidcSettings | None = Field(
        None,
        description="Guard: sign-in by OIDC, as OBS_OIDC__METADATA_URL, __CLIENT_ID, __CLIENT_SECRET_FILE and __REDIRECT_URI.",
    )
    cache_megabytes: int = Field(256, ge=1, le=65536, description="Memory for what a source answered, of each source, in the dashboard.")
    sources: dict[str, SourceSettings] = Field(default_factory=dict, description="More sources by name, as [sources.NAME] in the file.")
    bundle_dir: Path | None = Field(None, description="Where evidence bundles are looked for and kept.")
    notes_dir: Path | None = Field(None, description="Where incident notes are kept.")
    thresholds: dict[str, float] = Field(default_factory=dict, description="Thresholds of the rules, by their id; a ratio is 0 to 1.")
    promql: dict[str, str] = Field(
        default_factory=dict,
        description="PromQL for a signal, by its id, instead of the vocabulary's; or the name of a recording rule, which comes first.",
    )

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The addresses of the proxy."""
        return tuple(ip_network(one) for one in self.proxy_trusted.replace(",", " ").split())

    @field_validator("proxy_trusted")
    @classmethod
    def _networks(cls, value: str) -> str:
        if not [ip_network(one) for one in value.replace(",", " ").split()]:  # ValueError names the one that is none
            raise ValueError("no address")
        return value

    @field_validator("sources", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: {"name": name, **entry} if isinstance(entry, dict) else entry for name, entry in value.items()}
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line, then environment, then the file."""
        path = os.environ.get(PREFIX + "CONFIG")
        return (init_settings, env_settings, *([TomlConfigSettingsSource(settings_cls, Path(path))] if path else []))

    def source(self, name: str | None = None) -> SourceSettings | None:
        """The source of that name; the default one without a name, None where none is set. Raises CallError for an unknown name."""
        if name and name != "default":
            if name not in self.sources:
                raise CallError(
                    say("There is no source called “{name}”. Known: {known}.", name=name[:80], known=Names(("default", *self.sources)))
                )
            return self.sources[name]
        if self.prometheus_url is None:
            return next(iter(self.sources.values()), None)
        return _checked(
            lambda: SourceSettings(
                url=self.prometheus_url or "",
                token_file=self.prometheus_token_file,
                token=self.prometheus_token,
                ca_file=self.prometheus_ca_file,
                cert_file=self.prometheus_cert_file,
                key_file=self.prometheus_key_file,
                tenant=self.prometheus_tenant,
                timeout_seconds=self.prometheus_timeout_seconds,
                link=self.prometheus_link,
                name="default",
            ),
            "PROMETHEUS_",
        )


def _checked(make: Callable[[], T], prefix: str = "") -> T:
    """What `make` returns; a CallError that names the wrong variable, and does not repeat the value: it may be a secret."""
    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        variable = PREFIX + prefix + "__".join(str(part) for part in first["loc"]).upper()
        problem = str(first["msg"]).removeprefix("Value error, ")
        raise CallError(say("{variable} is wrong: {problem}.", variable=variable, problem=problem)) from None


def load(**overrides: Any) -> Settings:
    """The settings, `overrides` (the command line; None = not given) first. Raises CallError that names the wrong variable."""
    path = os.environ.get(PREFIX + "CONFIG")
    if path and not Path(path).is_file():
        raise CallError(say("OBS_CONFIG names {path}, which is no file.", path=path))
    given: Mapping[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    try:
        settings = _checked(lambda: Settings(**given))
    except ValueError as error:  # a nested variable that is not JSON, a file that is not TOML
        raise CallError(say("The settings cannot be read: {problem}.", problem=str(error).splitlines()[0])) from error
    if settings.proxy_user_header and settings.oidc is not None:
        raise CallError(say("OBS_PROXY_USER_HEADER and OBS_OIDC are two guards. Set one of them."))
    _check_thresholds(settings.thresholds)
    try:
        settings.source()  # the address too is checked at the start
    except CallError as error:
        if given.get("prometheus_url") is None:
            raise
        raise CallError(say("--prometheus-url is no address: write it as a browser opens it, with http:// or https:// first.")) from error
    return settings


def _check_thresholds(given: Mapping[str, float]) -> None:
    """A figure that no reading can reach, or that every one does, would silence a rule: it is refused, and its variable named."""
    for name, value in given.items():
        variable = f"{PREFIX}THRESHOLDS__{name.upper()}"
        if name not in THRESHOLDS:
            known = ", ".join(THRESHOLDS)
            raise CallError(say("{variable} is wrong: there is no such threshold. Known: {known}.", variable=variable, known=known))
        most = 1.0 if THRESHOLDS[name].unit == "ratio" else math.inf
        if not (math.isfinite(value) and 0 < value <= most):
            raise CallError(
                say("{variable} is wrong: a ratio lies above 0 and is 1 at most (0.9 is 90 %).", variable=variable)
                if most == 1
                else say("{variable} is wrong: the figure must be finite and above 0.", variable=variable)
            )

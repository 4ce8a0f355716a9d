"""Why no whole answer came from an address, as a sentence: refused, unknown, not in time, broken off, a certificate that does not fit."""

from __future__ import annotations

import requests
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError, ProtocolError, ReadTimeoutError

from obs.text import Message, say

# What OpenSSL says of a file that it was given.
_PEM = ("private key is encrypted", "PEM lib", "KEY_VALUES_MISMATCH", "NO_START_LINE", "key values mismatch")
_CLOSED = ("ALERT", "EOF occurred", "reset by peer", "Broken pipe", "RemoteDisconnected")  # a refused client is told, or just dropped


def sentence(where: str, error: Exception) -> Message:
    """What happened at the address `where`, and what to do."""
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(error, requests.exceptions.SSLError) and any(word in str(error) for word in _PEM):
        return say(
            "The client certificate for {address} cannot be used: it, or its key, is no PEM, or the two do not belong together. Check "
            "OBS_PROMETHEUS_CERT_FILE and OBS_PROMETHEUS_KEY_FILE; the key has no passphrase.",
            address=where,
        )
    if where.startswith("https:") and any(word in str(error) for word in _CLOSED):
        return say(
            "{address} closed the encrypted connection. Perhaps it asks for a client certificate, or did not accept the one that was sent: "
            "check OBS_PROMETHEUS_CERT_FILE and OBS_PROMETHEUS_KEY_FILE, and whether Prometheus is running.",
            address=where,
        )
    if isinstance(error, requests.exceptions.SSLError):
        return say(
            "The certificate of {address} was not accepted. If your own authority signed it, name that authority's file in "
            "OBS_PROMETHEUS_CA_FILE; if the port speaks plain HTTP, write http://.",
            address=where,
        )
    if isinstance(reason, NameResolutionError):
        return say("The host name in {address} is not known. Check it for a slip, and whether this machine can resolve it.", address=where)
    if isinstance(reason, NewConnectionError) and "refused" in str(reason):
        return say("{address} refused the connection. Check host and port, and whether Prometheus is running there.", address=where)
    if isinstance(reason, NewConnectionError):
        return say("{address} cannot be reached: {reason}. Check the network between.", address=where, reason=_system_reason(reason))
    if isinstance(error, requests.exceptions.ConnectTimeout) or isinstance(reason, ConnectTimeoutError):
        return say("{address} did not take the connection in time. Check the address, and the network between.", address=where)
    if isinstance(error, (ProtocolError, requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError)):
        return say("The answer of {address} broke off half-way. Try again; if it lasts, look at the proxy in front of it.", address=where)
    if isinstance(error, requests.exceptions.TooManyRedirects):
        return say("{address} redirects in a circle. Give the address of the Prometheus API itself.", address=where)
    if "refused" in str(error):
        return say("{address} refused the connection. Check host and port, and whether Prometheus is running there.", address=where)
    return say("{address} closed the connection or cannot be reached. Check the address, and whether Prometheus is running.", address=where)


def timed_out(error: Exception) -> bool:
    """Whether the connection stood and the answer did not come; a connection that is not taken is another matter."""
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(error, requests.exceptions.ConnectTimeout) or isinstance(reason, ConnectTimeoutError):
        return False
    return isinstance(error, (requests.exceptions.Timeout, ReadTimeoutError)) or isinstance(reason, ReadTimeoutError)


def _system_reason(error: Exception) -> str:
    """What the operating system said: "No route to host"."""
    return getattr(error.__cause__, "strerror", None) or str(error).rpartition("] ")[2]

"""What a source that does not give what was asked for is said to do: kinds of errors, and their sentences."""

from __future__ import annotations

from obs.errors import SourceError
from obs.text import Message, say

DOWN = (429, 502, 503, 504)  # statuses of what is to be left alone, as if it were not there


class StatusError(SourceError):
    """There was an answer, and it is not the one that was asked for."""

    def __init__(self, status: int, says: Message) -> None:
        super().__init__(says)
        self.status = status


class UnreachableError(SourceError):
    """No whole answer came: refused, reset, broken off."""


class QueryRefusedError(StatusError):
    """This one query was refused; the source itself works, and a smaller query may pass."""


class TooSlowError(StatusError):
    """The answer did not come in time; a smaller query may."""


class LeftError(SourceError):
    """Nobody waits for this answer any more, so that it was given up. Nobody reads this sentence either."""

    def __init__(self) -> None:
        super().__init__(say("The question was given up: nobody waits for its answer any more."))


def is_down(failed: BaseException) -> bool:
    """Whether the source is not there, or wants to be left alone. One that takes too long for a query is there."""
    if isinstance(failed, TooSlowError):
        return False
    return isinstance(failed, UnreachableError) or (isinstance(failed, StatusError) and failed.status in DOWN)


def error(where: str, status: int, said: str, is_json: bool, redirected: bool) -> StatusError:
    """The error for an answer that is no success. `said` is the source's own words."""
    if status in (400, 405, 413, 414, 422):
        return QueryRefusedError(status, _refusal(where, status, said))
    if status >= 500 and ("timed out" in said or "canceled" in said or "timeout" in said):
        return TooSlowError(
            status,
            say(
                "{address} gave up on a query ({said}). Choose a shorter window or a narrower scope, or raise "
                "OBS_PROMETHEUS_TIMEOUT_SECONDS.",
                address=where,
                said=said,
            ),
        )
    return StatusError(status, _failure(where, status, said, is_json, redirected))


def _failure(where: str, status: int, said: str, is_json: bool, redirected: bool) -> Message:
    if status in (401, 403):
        return say(
            "{address} asks for a login that was not accepted (HTTP {status}). Name a file with a token in OBS_PROMETHEUS_TOKEN_FILE, "
            "and the tenant in OBS_PROMETHEUS_TENANT where there are several.",
            address=where,
            status=status,
        )
    if status == 404:
        return say(
            "{address} has no Prometheus API (HTTP 404). Give the address under which /api/v1/query answers, with its path.", address=where
        )
    if status == 429:
        return say("{address} is asked too often (HTTP 429). Wait a moment, refresh less often, or raise its limit.", address=where)
    if status >= 500:
        words = f": {said}" if said else ""
        return say(
            "{address} has a fault of its own (HTTP {status}{said}). Try again; if it lasts, look at its log.",
            address=where,
            status=status,
            said=words,
        )
    if status == 200 and not is_json and redirected:
        return say("{address} led to a page that is no Prometheus API, perhaps a login. Give a token or the API's address.", address=where)
    if status == 200 and not is_json:
        return say("{address} answered what is not JSON, or only half of it. Check that it is a Prometheus API.", address=where)
    return say("{address} answered, but not as a Prometheus API does (HTTP {status}). Check the address.", address=where, status=status)


def _refusal(where: str, status: int, said: str) -> Message:
    if status in (413, 414) or "too many samples" in said or "exceeded maximum resolution" in said:
        words = said or f"HTTP {status}"
        return say(
            "The window holds too much for {address} ({said}). Choose a shorter window or a narrower scope.", address=where, said=words
        )
    if status == 405:
        return say("{address} does not take this kind of request (HTTP 405). Give the address of the Prometheus API itself.", address=where)
    return say("{address} refused a query (HTTP {status}): {said}", address=where, status=status, said=said or "?")

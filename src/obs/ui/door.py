"""What a way of knowing the reader answers to the middleware that stands before everything."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from starlette.requests import HTTPConnection
from starlette.responses import Response

from obs.text import Message


class Refusal(NamedTuple):
    """What is answered instead: an HTTP status with a sentence, or a whole answer (the way to the sign-in)."""

    status: int
    says: Message
    answer: Response | None = None


class Door(Protocol):
    """A way to know who asks."""

    def refusal(self, asked: HTTPConnection, path: str) -> Refusal | None:
        """None where it opens. `path` is within the base path, and starts with a slash."""

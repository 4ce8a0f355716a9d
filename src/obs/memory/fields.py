"""The fields of a pasted config.json, read with suspicion: every wrong one becomes a sentence that names it and says what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from obs.errors import CallError
from obs.text import Names, say

MOST_CHARACTERS = 1_000_000  # the largest public files have some tens of thousands
_LARGEST = 10**9  # no size, count or length of a model comes near it

NESTED = ("text_config", "llm_config", "language_config")  # where files of multimodal models keep the language model


def parsed(text: str) -> Mapping[str, Any]:
    """The object in a pasted file. Raises `CallError`."""
    if len(text) > MOST_CHARACTERS:
        raise CallError(
            say(
                "This text has {size} characters, and a config.json some thousands. Paste the config.json of the model, nothing else.",
                size=len(text),
            )
        )
    if not text.strip():
        raise CallError(say("Nothing was pasted. Paste the file config.json of the model, or choose a model from the list."))
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise CallError(
            say("This is not JSON: line {line}, column {column}. Paste the whole file config.json.", line=error.lineno, column=error.colno)
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets nested thousands deep
        raise CallError(
            say("This JSON cannot be read: a number is too long, or it is nested too deeply. Paste the file config.json.")
        ) from error
    if not isinstance(found, dict):
        raise CallError(say("A config.json is an object in braces, and this is none. Paste the whole file."))
    return found


def language_model(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of the language model: those of a nested `text_config` before those around it."""
    for name in NESTED:
        inner = found.get(name)
        if isinstance(inner, Mapping):
            return {**found, **inner}
    return found


@dataclass(frozen=True)
class Fields:
    """Access by name, and by the older names that mean the same."""

    found: Mapping[str, Any]

    def has(self, *names: str) -> bool:
        """Whether one of these is given; `null` is not."""
        return any(self.found.get(name) is not None for name in names)

    def whole(self, *names: str, default: int | None = None, least: int = 1, most: int = _LARGEST) -> int:
        """A whole number between the limits; where none of the names is given, the default, or an error that names the first."""
        for name in names:
            value = self.found.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise CallError(say("{field} in this config.json is no whole number, and obs needs one. Correct it.", field=Names((name,))))
            if not least <= value <= most:
                raise CallError(
                    say(
                        "{field} in this config.json is {value}, and must lie between {least} and {most}. Correct it.",
                        field=Names((name,)),
                        value=str(value) if abs(value) < 10**15 else "10^15",
                        least=least,
                        most=most,
                    )
                )
            return value
        if default is None:
            raise CallError(
                say(
                    "This config.json has no {field}, without which its memory cannot be computed. "
                    "Paste the whole file of a language model, or add the field.",
                    field=Names((names[0],)),
                )
            )
        return default

    def text(self, name: str) -> str:
        """A text, empty where it is none."""
        value = self.found.get(name)
        return value if isinstance(value, str) else ""

    def flag(self, name: str, default: bool = False) -> bool:
        """A yes or no; the default where it is neither."""
        value = self.found.get(name)
        return value if isinstance(value, bool) else default

    def words(self, name: str) -> tuple[str, ...]:
        """A list of words; an error where it is something else."""
        value = self.found.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            raise CallError(say("{field} in this config.json is no list of words. Correct it.", field=Names((name,))))
        return tuple(value)

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers, empty where there is none; an error where it is something else."""
        value = self.found.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            raise CallError(say("{field} in this config.json is no list of whole numbers. Correct it.", field=Names((name,))))
        return tuple(value)

    def inner(self, name: str) -> Mapping[str, Any]:
        """A nested object, empty where there is none."""
        value = self.found.get(name)
        return value if isinstance(value, Mapping) else {}

"""The planner's inputs as one word of a link: `model~llama-3.1-70b~gpu~h100-80gb~share~0.92~tp~4`, names and values in turn.

A link that leaves a name out means what the window presets; names are added, never renamed. A pasted config.json travels packed, with
those of its fields that decide its shape.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from obs.errors import CallError
from obs.memory.config_json import from_config
from obs.memory.dtype import KV_BYTES, WEIGHTS
from obs.memory.fields import NESTED, parsed
from obs.memory.listed import gpus, model, models
from obs.memory.shape import ModelShape
from obs.text import Message, Names, say

FILE, MEASURED, GIVEN = "config.json", "measured", "given"
LONGEST = 2000  # characters of a packed config.json: with more, mailers and chats cut a link
_MOST_BYTES = 200_000  # unpacked


@dataclass(frozen=True)
class Choice:
    """What a person chose. `model`: an id of the list or FILE; `gpu`: an id of the list, MEASURED or GIVEN (then `gib` counts); sizes in
    tokens and sequences. `runs`: somebody said that it is the model that runs, whatever the engine calls it. `config`: the text of FILE."""

    model: str
    gpu: str
    weights: str = ""  # "" as published
    kv: str = "bf16"
    gib: float = 80.0
    share: float = 0.9
    tensor: int = 1
    pipeline: int = 1
    tokens: int = 8192
    seqs: int = 256
    longest: int = 4096
    at_once: int = 1
    runs: bool = False
    config: str = ""

    @property
    def shape(self) -> ModelShape:
        """The model. Raises `CallError` where the config.json is none."""
        return from_config(self.config) if self.model == FILE else model(self.model)


_WORDS = {"tensor": "tp", "pipeline": "pp", "tokens": "batched", "longest": "len", "at_once": "sequences"}  # shorter in the link
_LIMITS: Mapping[str, tuple[float, float]] = {
    "gib": (1.0, 10_000.0), "share": (0.01, 1.0), "tensor": (1, 32), "pipeline": (1, 8), "tokens": (1, 10_000_000), "seqs": (1, 100_000),
    "longest": (1, 100_000_000), "at_once": (1, 100_000),
}  # fmt: skip


def written(choice: Choice) -> str:
    """The choice in a link, whole: what is preset today may be preset otherwise tomorrow."""
    parts: list[str] = []
    for each in fields(Choice):
        value = getattr(choice, each.name)
        if each.name == "config":
            value = packed(value) if choice.model == FILE and value else ""
        if value in ("", False) or (each.name == "gib" and choice.gpu != GIVEN):
            continue
        parts += [_WORDS.get(each.name, each.name), "1" if value is True else f"{value:g}" if isinstance(value, float) else str(value)]
    return "~".join(parts)


def read(text: str, preset: Choice) -> tuple[Choice, tuple[Message, ...]]:
    """The choice that a link holds, and what in it means nothing: there the preset stays."""
    names = {_WORDS.get(each.name, each.name): each.name for each in fields(Choice)}
    words, found, notes = text.split("~"), {}, []
    for word, value in zip(words[::2], words[1::2], strict=False):
        try:
            found[names[word]] = _value(names[word], value)
        except (KeyError, ValueError):
            notes.append(say("{name} in the plan of this link was ignored: {value} means nothing there.",
                             name=Names((word[:40],)), value=Names((value[:40],))))  # fmt: skip
    return replace(preset, **found), tuple(notes)


def _value(name: str, text: str) -> Any:
    """One value. Raises ValueError."""
    if name in _LIMITS:
        value = float(text) if name in ("gib", "share") else int(text)
        low, high = _LIMITS[name]
        if not low <= value <= high:  # also where it is NaN
            raise ValueError
        return value
    if name == "runs":
        return text == "1"
    if name == "config":
        return unpacked(text)
    known = {"model": (*models(), FILE), "gpu": (*gpus(), MEASURED, GIVEN), "weights": ("", *WEIGHTS), "kv": tuple(KV_BYTES)}
    if text not in known[name]:
        raise ValueError
    return text


def packed(config: str) -> str:
    """A config.json for a link; "" where it is none, or too long for one."""
    try:
        text = base64.urlsafe_b64encode(zlib.compress(slim(config).encode(), 9)).decode().rstrip("=")
    except CallError:
        return ""
    return text if len(text) <= LONGEST else ""


def unpacked(text: str) -> str:
    """The config.json in a link. Raises ValueError."""
    try:
        held = zlib.decompressobj()
        data = held.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), _MOST_BYTES)
        return data.decode() if held.eof else ""
    except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
        raise ValueError from error


def slim(config: str) -> str:
    """The same model in fewer words: every field that changes nothing is left out. Raises `CallError` where it is no config.json."""
    whole = parsed(config)
    wanted, kept = from_config(whole), dict(whole)
    for name in NESTED:
        inner = kept.get(name)
        if isinstance(inner, Mapping):
            kept = {**kept, **inner}
            del kept[name]
            break
    for name in list(kept):
        rest = {other: value for other, value in kept.items() if other != name}
        if _shape(rest) == wanted:
            kept = rest
        elif isinstance(kept[name], Mapping) and _shape({**rest, name: {"-": 0}}) == wanted:
            kept[name] = {"-": 0}  # only that it is there counts
    return json.dumps(kept if _shape(kept) == wanted else whole, separators=(",", ":"))


def _shape(config: Mapping[str, Any]) -> ModelShape | None:
    try:
        return from_config(config)
    except CallError:
        return None

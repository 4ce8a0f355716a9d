"""The models and GPUs to choose from: data that lies beside this file, each entry with where its figures stand."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from obs.errors import CallError
from obs.memory.config_json import from_config
from obs.memory.figure import GIB
from obs.memory.shape import ModelShape
from obs.text import Names, say


@dataclass(frozen=True)
class Gpu:
    """A GPU: what of its memory a process sees, in GiB, and whether CUDA (or HIP) or only the driver's tool showed that."""

    id: str
    name: str
    gib: float
    read_by: str  # "cuda" or "driver"
    source: str

    @property
    def bytes(self) -> float:
        """The same in bytes."""
        return self.gib * GIB


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("obs.memory").joinpath(name).read_text("utf-8"))


@cache
def models() -> dict[str, ModelShape]:
    """The listed models by id, in the order of the list."""
    return {entry["id"]: _model(entry) for entry in _read("models.toml")["model"]}


def _model(entry: dict[str, Any]) -> ModelShape:
    config = dict(entry["config"])
    if "layer_types" in config:  # the list gives one period of it
        layers, period = config["num_hidden_layers"], config["layer_types"]
        config["layer_types"] = (period * layers)[:layers]
    shape = from_config(config, entry["name"])
    return replace(shape, parameters=entry["parameters"], published=True, nominal=entry.get("nominal"), source=entry["source"])


@cache
def gpus() -> dict[str, Gpu]:
    """The listed GPUs by id, in the order of the list."""
    return {entry["id"]: Gpu(**entry) for entry in _read("gpus.toml")["gpu"]}


def model(name: str) -> ModelShape:
    """A listed model. Raises `CallError` where there is none of that id."""
    if name not in models():
        raise CallError(say("There is no model {name} in the list. Choose one that is, or paste the config.json.", name=Names((name,))))
    return models()[name]


def gpu(name: str) -> Gpu:
    """A listed GPU. Raises `CallError` where there is none of that id."""
    if name not in gpus():
        raise CallError(say("There is no GPU {name} in the list. Choose one that is, or give its memory in GiB.", name=Names((name,))))
    return gpus()[name]

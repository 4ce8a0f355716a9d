"""Vocabularies: one system's names for the signals, as data (`engines/`, `gateways/`, `hardware/`, one TOML file each).

A new engine is a new file. A file that does not hold together (an unknown signal, a candidate without a metric) raises `CallError` with
its name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from obs.errors import CallError
from obs.signals import SIGNALS, Kind
from obs.text import say

FOLDERS = ("engines", "gateways", "hardware")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Candidate(_Strict):
    """One way to read a signal: a metric, asked for as the signal's kind wants, or an expression of its own.

    Holes of `expr`: `$sel` (matchers), `$by` (labels of the rows), `$rate` and `$resets` (ranges).
    """

    metric: str = ""
    name: str = ""  # what it is called in keys and on screen; the metric where not given
    expr: str = ""
    needs: tuple[str, ...] = ()  # every one of these must exist; the metric itself where not given
    match: str = ""
    combine: Literal["max", "min", "sum", ""] = ""  # over what lies below a row; a rate is summed, a level takes the largest
    scale: float = 1.0  # to the signal's unit
    most: float | None = None  # in the exporter's unit: anything above is a blank
    from_labels: tuple[str, ...] = ()  # the figure is in labels: the first of these products that is there
    carries: tuple[str, ...] = ()  # labels that are wanted for what they say, beside the figure
    since: str = ""  # version in which the name came
    until: str = ""  # and the last one that shows it

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.metric) == bool(self.expr):
            raise ValueError("give either metric or expr")
        if self.expr and not self.name:
            raise ValueError("an expr needs a name")
        return self

    @property
    def title(self) -> str:
        """The name in keys and on screen."""
        return self.name or self.metric

    def metrics(self, kind: Kind) -> tuple[str, ...]:
        """The metric names that must exist for this candidate."""
        own = (f"{self.metric}_count", f"{self.metric}_sum") if kind is Kind.MEAN else (self.metric,)
        return (*(own if self.metric else ()), *self.needs)


class Naming(_Strict):
    """How one system names one signal."""

    candidates: tuple[Candidate, ...] = Field(min_length=1)  # in the order of preference
    pick: Literal["first", "max", "sum"] = "first"  # how candidates that are there together combine, by replica and step
    worst: Literal["high", "low"] = "high"  # which side a coarse step must not hide


class Labels(_Strict):
    """Which labels say what a row is about; the first one that is set counts."""

    namespace: tuple[str, ...] = ("namespace",)
    pod: tuple[str, ...] = ("pod",)
    instance: tuple[str, ...] = ("instance",)
    job: tuple[str, ...] = ("job",)
    model: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    row: tuple[str, ...] = ()


class Variant(_Strict):
    """A second way in which the same series may be labelled: (namespace label, pod label), and what tells the two apart."""

    labels: tuple[str, str] = ("namespace", "pod")
    match: str = ""


class Vocabulary(_Strict):
    """One system: its names for the signals, and its labels."""

    id: str
    title: str
    role: Literal["engine", "gateway", "hardware", "target"]
    job_hint: str = ""
    probe: tuple[str, ...] = ()  # signals that tell that it is there, and how often it is scraped
    match: str = ""
    labels: Labels = Labels()
    variants: tuple[Variant, ...] = (Variant(),)
    signals: dict[str, Naming]

    @model_validator(mode="after")
    def _known(self) -> Self:
        unknown = sorted(set(self.signals) - set(SIGNALS)) + sorted(set(self.probe) - set(self.signals))
        if unknown:
            raise ValueError(f"unknown signals: {', '.join(unknown)}")
        if self.role in ("engine", "gateway") and not self.probe:
            raise ValueError("an engine or gateway needs a probe")
        return self

    def identity(self, variant: Variant) -> tuple[str, ...]:
        """The labels that rows are grouped by."""
        label, own = self.labels, variant.labels
        if self.role == "hardware":
            names = [*own, *label.host, *(label.instance if label.host else ())]
        else:
            names = [*own, *label.namespace, *label.pod, *label.instance, *label.job, *label.model, *label.rank, *label.row]
        return tuple(dict.fromkeys(names))

    def scope_label(self, word: str, variant: Variant) -> str | None:
        """The label behind a scope word here; None where this system has no such thing."""
        if word == "namespace":
            return variant.labels[0]
        if word == "model":
            return self.labels.model[0] if self.labels.model else None
        return word

    def names(self) -> frozenset[str]:
        """Every metric name that this vocabulary may ask for."""
        return frozenset(name for s, naming in self.signals.items() for c in naming.candidates for name in c.metrics(SIGNALS[s].kind))

    def knows(self, names: Iterable[str]) -> bool:
        """Whether anything of this system is among these metric names."""
        there = set(names)
        return any(set(c.metrics(SIGNALS[s].kind)) <= there for s, naming in self.signals.items() for c in naming.candidates)


def parse(text: str, origin: str) -> Vocabulary:
    """One vocabulary from TOML text; `origin` is named where it is wrong."""
    try:
        return Vocabulary.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise CallError(say("The vocabulary {file} is not valid TOML: {problem}", file=origin, problem=str(error))) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CallError(
            say("The vocabulary {file} is wrong at {where}: {problem}", file=origin, where=where or "/", problem=first["msg"])
        ) from error


@cache
def vocabularies() -> tuple[Vocabulary, ...]:
    """Every vocabulary that ships with the package, engines first."""
    found = []
    for folder in FOLDERS:
        entries = sorted(
            (entry for entry in files("obs").joinpath(folder).iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name
        )
        found += [parse(entry.read_text("utf-8"), f"{folder}/{entry.name}") for entry in entries]
    return tuple(found)

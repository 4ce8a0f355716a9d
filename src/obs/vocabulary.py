"""Vocabularies: one system's names for the signals, as data (`engines/`, `gateways/`, `hardware/`, one TOML file each).

A new engine is a new file. A file that does not hold together (an unknown signal, a candidate without a metric) raises `CallError` with
its name.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from obs.errors import CallError
from obs.signals import SIGNALS, Kind
from obs.text import say

FOLDERS = ("engines", "gateways", "hardware")
FIRST = ("vllm", "sglang", "envoy", "dcgm", "kubernetes")  # named first where nothing was found: the most common ones


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Candidate(_Strict):
    """One way to read a signal: a metric, asked for as the signal's kind wants, or an expression of its own.

    Holes of `expr` and `count`: `$sel` (matchers), `$by` (labels of the rows), `$rate` and `$resets` (ranges).
    """

    metric: str = ""
    name: str = ""  # what it is called in keys and on screen; the metric where not given
    expr: str = ""
    count: str = ""  # of a mean that is no histogram: `expr` gives the total per second, this the observations per second
    needs: tuple[str, ...] = ()  # every one of these must exist; the metric itself where not given
    match: str = ""
    zero_where: str = ""  # a counter: where it is there and this series is not, nothing was counted yet (made at its first use)
    combine: Literal["max", "min", "sum", ""] = ""  # over what lies below a row; a rate is summed, a level takes the largest
    scale: float = 1.0  # to the signal's unit
    most: float | None = None  # in the exporter's unit: anything above is a blank
    from_labels: tuple[str, ...] = ()  # the figure is in labels: the first of these products that is there
    of_all_ranks: tuple[str, ...] = ()  # labels of `from_labels` that hold the sum over the ranks of a process: each rank has its part
    carries: tuple[str, ...] = ()  # labels that are wanted for what they say, beside the figure
    bounds: tuple[float, ...] = ()  # the lowest and the highest finite bucket, in the exporter's unit: beyond them a quantile is not known
    since: str = ""  # version in which the name came
    until: str = ""  # and the last one that shows it
    note: str = ""  # for whoever reads the file: why, and what is unverified
    native: bool = False  # set where the source keeps this histogram as a native one; no file says so
    own: bool = False  # set where it comes from the site's settings; no file says so

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.metric) == bool(self.expr):
            raise ValueError("give either metric or expr")
        if self.expr and not self.name:
            raise ValueError("an expr needs a name")
        if self.count and not self.expr:
            raise ValueError("count goes with an expr: it counts what the expr adds up")
        if self.expr and (self.zero_where or self.bounds):
            raise ValueError("zero_where and bounds go with a metric")
        if self.bounds and (len(self.bounds) != 2 or not 0 <= self.bounds[0] < self.bounds[1]):
            raise ValueError("bounds are two: the lowest and the highest finite bucket")
        if self.native:
            raise ValueError("native is found in the source, not written")
        return self

    @property
    def title(self) -> str:
        """The name in keys and on screen."""
        return self.name or self.metric

    def metrics(self, kind: Kind) -> tuple[str, ...]:
        """The metric names that must exist for this candidate."""
        if not self.metric:
            return self.needs
        if kind is Kind.MEAN and not self.native:
            return (f"{self.metric}_count", f"{self.metric}_sum", *self.needs)
        return (self.zero_where or self.metric, *self.needs)


class Naming(_Strict):
    """How one system names one signal."""

    candidates: tuple[Candidate, ...] = Field(min_length=1)  # in the order of preference
    pick: Literal["first", "max", "sum"] = "first"  # how candidates that are there together combine, by replica and step
    worst: Literal["high", "low"] = "high"  # which side a coarse step must not hide
    lacks: str = ""  # what the figure leaves out by the system's own way of counting, and what would tell: so it proves nothing alone
    without: str = ""  # what would tell where none of the candidates is there (another version of the system)


class Labels(_Strict):
    """Which labels say what a row is about; the first one that is set counts."""

    namespace: tuple[str, ...] = ("namespace",)
    pod: tuple[str, ...] = ("pod",)
    instance: tuple[str, ...] = ("instance",)
    job: tuple[str, ...] = ("job",)
    model: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()  # the part of the work that the process does: prefill or decode
    process: tuple[str, ...] = ()  # what tells engine processes behind one target apart: they are replicas of their own
    host: tuple[str, ...] = ()
    row: tuple[str, ...] = ()
    dotted: tuple[str, ...] = ()  # labels of matchers, as they are called where the source keeps dotted names (Prometheus 3)


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
    wraps: bool = (
        False  # a layer around another engine's process: where both show themselves they are one replica, and the engine's word counts
    )
    labels: Labels = Labels()
    variants: tuple[Variant, ...] = (Variant(),)
    signals: dict[str, Naming]
    gaps: dict[str, str] = Field(default_factory=dict)  # what the system does not tell: why, and what would (may be empty)

    @model_validator(mode="after")
    def _known(self) -> Self:
        unknown = sorted((set(self.signals) | set(self.gaps)) - set(SIGNALS)) + sorted(set(self.probe) - set(self.signals))
        if unknown:
            raise ValueError(f"unknown signals: {', '.join(unknown)}")
        both = sorted(set(self.signals) & set(self.gaps))
        if both:
            raise ValueError(f"named and a gap at once: {', '.join(both)}")
        told = [*self.gaps.items(), *((name, text) for name, n in self.signals.items() for text in (n.lacks, n.without))]
        for name, text in told:
            if text.endswith(".") or "{" in text:
                raise ValueError(f"the gap of {name} is the end of a sentence: leave its full stop out, and braces")
        for name, naming in self.signals.items():
            for candidate in naming.candidates:
                if (candidate.count or candidate.bounds) and SIGNALS[name].kind is not Kind.MEAN:
                    raise ValueError(f"{name}: count and bounds belong to a mean")
                if candidate.zero_where and SIGNALS[name].kind is not Kind.RATE:
                    raise ValueError(f"{name}: zero_where belongs to a rate")
        if self.role in ("engine", "gateway") and not self.probe:
            raise ValueError("an engine or gateway needs a probe")
        return self

    def identity(self, variant: Variant) -> tuple[str, ...]:
        """The labels that rows are grouped by."""
        label, own = self.labels, variant.labels
        if self.role == "hardware":
            names = [*own, *label.host, *(label.instance if label.host else ())]
        else:
            names = [*own, *label.namespace, *label.pod, *label.process, *label.instance, *label.job, *label.model, *label.rank]
            names += [*label.pool, *label.row]
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
        own = [parse(entry.read_text("utf-8"), f"{folder}/{entry.name}") for entry in entries]
        found += sorted(
            own, key=lambda v: (v.wraps, FIRST.index(v.id) if v.id in FIRST else len(FIRST))
        )  # the first one that has a figure counts
    return tuple(found)

"""A figure with its origin: the engine measured it, it is computed, or assumed. What cannot be one number is a band."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from obs.text import Message, Quantity, say

GB, GIB = 1e9, 2.0**30


class Origin(StrEnum):
    """Where a figure comes from; the weakest of what went into it."""

    MEASURED = "measured"  # an engine or an exporter shows it
    COMPUTED = "computed"  # follows from the shape and the settings
    ASSUMED = "assumed"  # from experience, stated in `how`


def origin_title(origin: Origin) -> Message:
    """The origin as a word beside the figure."""
    if origin is Origin.MEASURED:
        return say("measured")
    return say("computed") if origin is Origin.COMPUTED else say("assumed")


def weakest(*origins: Origin) -> Origin:
    """A sum is as sure as its least sure part."""
    return max(origins, key=list(Origin).index)


@dataclass(frozen=True)
class Figure:
    """One figure, in bytes where `unit` is `bytes`; `how` says in a sentence where it comes from."""

    value: float
    origin: Origin
    how: Message
    unit: str = "bytes"

    @property
    def gb(self) -> float:
        """In units of 1e9 bytes, as makers of GPUs and model cards count."""
        return self.value / GB

    @property
    def gib(self) -> float:
        """In units of 2**30 bytes, as nvidia-smi and the engines count."""
        return self.value / GIB

    @property
    def says(self) -> Message:
        """`141 GB (131 GiB)`; a figure that is no size of memory with its own unit."""
        return size_of(self.value) if self.unit == "bytes" else say("{value}", value=Quantity(self.value, self.unit))


@dataclass(frozen=True)
class Band:
    """A figure that is only known to lie between two: `low <= high` always."""

    low: float
    high: float
    origin: Origin
    how: Message
    unit: str = "bytes"

    def __post_init__(self) -> None:
        if not self.low <= self.high:  # also where one of them is NaN
            raise ValueError(f"{self.low} is not below {self.high}")

    @property
    def gb(self) -> tuple[float, float]:
        """Both ends in units of 1e9 bytes."""
        return self.low / GB, self.high / GB

    @property
    def gib(self) -> tuple[float, float]:
        """Both ends in units of 2**30 bytes."""
        return self.low / GIB, self.high / GIB

    def contains(self, value: float) -> bool:
        """Whether a measured figure lies in the band."""
        return self.low <= value <= self.high

    @property
    def says(self) -> Message:
        """`33.1 GB (30.8 GiB) to 40.5 GB (37.8 GiB)`; one figure where both ends are the same."""
        if self.low == self.high:
            return Figure(self.low, self.origin, self.how, self.unit).says
        if self.unit == "bytes":
            return say("{low} to {high}", low=size_of(self.low), high=size_of(self.high))
        return say("{low} to {high}", low=Quantity(self.low, self.unit), high=Quantity(self.high, self.unit))


def size_of(value: float) -> Message:
    """A size in both units: `141 GB (131 GiB)`."""
    return say("{decimal} ({binary})", decimal=Quantity(value, "decimal_bytes"), binary=Quantity(value, "binary_bytes"))

"""What a plan is made for: model, GPU, and the engine's settings, each within limits that make sense."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from obs.errors import CallError
from obs.memory.dtype import WEIGHTS, WeightDtype
from obs.memory.figure import GIB, Figure, Origin
from obs.memory.kv import KvCache
from obs.memory.listed import Gpu
from obs.memory.shape import ModelShape
from obs.memory.split import Parallel, check_heads
from obs.text import Message, Names, Quantity, say

_LARGEST_GPU_GIB = 10_000.0
_MOST_TOKENS = 10_000_000
_MOST_SEQUENCES = 100_000


@dataclass(frozen=True)
class Length:
    """A length of sequences (prompt and output together, tokens) with the name of where it comes from: `p50`, `p95`, `max`."""

    label: str
    tokens: float


def listed_gpu(gpu: Gpu) -> Figure:
    """The memory of a GPU of the list."""
    if gpu.read_by == "cuda":
        how = say("what CUDA or HIP reports on {name}", name=gpu.name)
    else:
        how = say("what the driver's tool shows on {name}; CUDA reports up to 2 % less", name=gpu.name)
    return Figure(gpu.bytes, Origin.ASSUMED, how)


def measured_gpu(total_bytes: float) -> Figure:
    """The memory of a GPU as its exporter shows it: used, free and reserved together."""
    return Figure(total_bytes, Origin.MEASURED, say("used, free and reserved memory as the GPU's exporter shows them"))


def given_gpu(gib: float) -> Figure:
    """The memory of a GPU as a person gave it, in GiB."""
    return Figure(gib * GIB, Origin.ASSUMED, say("as given"))


def default_limits(gpu: Gpu) -> tuple[int, int]:
    """vLLM's own (`max_num_batched_tokens`, `max_num_seqs`) for its server on this GPU: larger from 70 GiB on, but not on an A100."""
    return (8192, 1024) if gpu.gib >= 70 and "A100" not in gpu.name else (2048, 256)


@dataclass(frozen=True)
class Setup:
    """A deployment to plan. Raises `CallError` where a setting is out of its limits, with its name."""

    shape: ModelShape
    gpu: Figure  # bytes of one GPU
    weights: str = ""  # key of `WEIGHTS`; what the published checkpoint holds where empty
    kv: KvCache = field(default_factory=KvCache)
    parallel: Parallel = field(default_factory=Parallel)
    gpu_memory_utilization: float = 0.9
    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256
    max_model_len: int = 0  # the model's context where 0
    cuda_graphs: bool = True
    lengths: tuple[Length, ...] = ()  # `longest` alone where none is known
    sequences: int = 1  # that are to run at once

    def __post_init__(self) -> None:
        if self.weights and self.weights not in WEIGHTS:
            raise CallError(
                say(
                    "{dtype} is no weight format that obs knows. Choose one of {known}.",
                    dtype=Names((self.weights,)),
                    known=Names(tuple(WEIGHTS)),
                )
            )
        check_heads(self.shape, self.parallel.tensor)
        _limit("gpu_memory_utilization", self.gpu_memory_utilization, 0.01, 1.0)
        _limit(say("GPU memory in GiB"), self.gpu.gib, 0.1, _LARGEST_GPU_GIB)
        _limit("max_num_batched_tokens", self.max_num_batched_tokens, 1, _MOST_TOKENS)
        _limit("max_num_seqs", self.max_num_seqs, 1, _MOST_SEQUENCES)
        _limit("max_model_len", self.max_model_len, 0, _MOST_TOKENS * 10)
        _limit("sequences", self.sequences, 1, _MOST_SEQUENCES)
        for length in self.lengths:
            _limit(length.label, length.tokens, 0, _MOST_TOKENS * 10)

    @property
    def weight_dtype(self) -> WeightDtype:
        """The format of the weights."""
        return WEIGHTS[self.weights or self.shape.weight_dtype]

    @property
    def longest(self) -> int:
        """The longest sequence that the engine accepts, tokens."""
        return self.max_model_len or self.shape.context or 4096

    @property
    def asked_lengths(self) -> tuple[Length, ...]:
        """The lengths to plan for, whole tokens, none longer than the engine accepts."""
        given = self.lengths or (Length("max_model_len", self.longest),)
        return tuple(Length(length.label, min(self.longest, max(1, math.ceil(length.tokens)))) for length in given)


def _limit(name: str | Message, value: float, least: float, most: float) -> None:
    if not least <= value <= most:  # also where it is NaN
        raise CallError(
            say(
                "{name} is {value}, and must lie between {least} and {most}.",
                name=Names((name,)) if isinstance(name, str) else name,
                value=Quantity(value, "count"),
                least=Quantity(least, "count"),
                most=Quantity(most, "count"),
            )
        )

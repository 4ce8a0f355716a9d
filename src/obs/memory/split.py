"""How a model is laid out on GPUs: pipeline stages of whole layers, each stage split by tensor parallelism."""

from __future__ import annotations

from dataclasses import dataclass

from obs.errors import CallError
from obs.memory.shape import ModelShape
from obs.text import Names, say

_MOST_RANKS = 1_024


@dataclass(frozen=True)
class Parallel:
    """Degrees of tensor and pipeline parallelism: the model stands on `gpus` GPUs."""

    tensor: int = 1
    pipeline: int = 1

    def __post_init__(self) -> None:
        for name, value in (("tensor_parallel_size", self.tensor), ("pipeline_parallel_size", self.pipeline)):
            if not 1 <= value <= _MOST_RANKS:
                raise CallError(
                    say("{name} is {value}, and must lie between 1 and {most}.", name=Names((name,)), value=value, most=_MOST_RANKS)
                )

    @property
    def gpus(self) -> int:
        """How many GPUs one copy of the model takes."""
        return self.tensor * self.pipeline


def stages(shape: ModelShape, pipeline: int) -> tuple[range, ...]:
    """The layers of each pipeline stage. What does not divide goes to the last stages but one, as vLLM does (`get_pp_indices`)."""
    layers = len(shape.layers)
    if pipeline > layers:
        raise CallError(
            say("The model has {layers} layers, fewer than {pipeline} pipeline stages. Choose fewer.", layers=layers, pipeline=pipeline)
        )
    sizes = [layers // pipeline] * pipeline
    for i in range(layers % pipeline):
        sizes[-2 - i] += 1  # never reached with one stage: nothing remains then
    ends = [sum(sizes[: i + 1]) for i in range(pipeline)]
    return tuple(range(end - size, end) for end, size in zip(ends, sizes, strict=True))


def check_heads(shape: ModelShape, tensor: int) -> None:
    """Engines refuse a tensor parallelism by which the query heads do not divide. Raises `CallError`."""
    if shape.attention_heads % tensor:
        raise CallError(
            say(
                "The model's {heads} attention heads cannot be split over {tensor} GPUs. Choose a divisor of {heads}.",
                heads=shape.attention_heads,
                tensor=tensor,
            )
        )

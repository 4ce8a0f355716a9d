"""How many bytes a number takes: in the weights, with what quantization adds and leaves out, and in the KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from obs.text import Message, say


class Scope(StrEnum):
    """Which weights a checkpoint of this kind holds in the small dtype; the rest stays in 16 bits."""

    ALL = "all"
    LINEAR = "linear"  # every matrix of the layers, but neither the embedding nor the output head
    EXPERTS = "experts"  # the experts' matrices only


@dataclass(frozen=True)
class WeightDtype:
    """A weight format: bytes a value, bytes that its scales and zero points add to each value, and what it covers."""

    id: str
    title: str
    raw: float
    overhead: float
    scope: Scope
    how: Message

    @property
    def each(self) -> float:
        """Bytes a weight, scales included."""
        return self.raw + self.overhead


REST = 2.0  # bytes of what a quantized checkpoint leaves as it is: BF16 or FP16
_FULL = say("every weight in this format")

WEIGHT_DTYPES: tuple[WeightDtype, ...] = (
    WeightDtype("fp32", "FP32", 4, 0, Scope.ALL, _FULL),
    WeightDtype("bf16", "BF16", 2, 0, Scope.ALL, _FULL),
    WeightDtype("fp16", "FP16", 2, 0, Scope.ALL, _FULL),
    # one FP32 scale for 128 x 128 weights (DeepSeek), or one a channel: under 0.03 %, not counted
    WeightDtype("fp8", "FP8", 1, 0, Scope.LINEAR, say("1 byte a weight in the layers; embedding and output head stay in 16 bits")),
    WeightDtype("int8", "INT8", 1, 0, Scope.LINEAR, say("1 byte a weight in the layers; embedding and output head stay in 16 bits")),
    # a 16-bit scale and a 4-bit zero point for each group of 128: 2.5 bytes / 128
    WeightDtype(
        "int4",
        "INT4 (AWQ, GPTQ)",
        0.5,
        2.5 / 128,
        Scope.LINEAR,
        say(
            "4 bits a weight in the layers, with a 16-bit scale and a 4-bit zero point for each group of 128; "
            "embedding and output head stay in 16 bits"
        ),
    ),
    # OCP MX: one 8-bit scale for each block of 32
    WeightDtype(
        "mxfp4",
        "MXFP4",
        0.5,
        1 / 32,
        Scope.EXPERTS,
        say("4 bits a weight in the experts, with an 8-bit scale for each block of 32; everything else stays in 16 bits"),
    ),
    # one FP8 scale for each block of 16
    WeightDtype(
        "nvfp4",
        "NVFP4",
        0.5,
        1 / 16,
        Scope.LINEAR,
        say("4 bits a weight in the layers, with an 8-bit scale for each block of 16; embedding and output head stay in 16 bits"),
    ),
)
WEIGHTS = {dtype.id: dtype for dtype in WEIGHT_DTYPES}

KV_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
"""Bytes a value of the KV cache. Engines' `auto` is the dtype that the model computes in: BF16 or FP16."""


def kv_dtype_of(label: str) -> str | None:
    """The KV dtype that an engine's own name means (`cache_dtype`, `--kv-cache-dtype`); None where it is not known."""
    name = label.strip().lower()
    if name in ("auto", "bfloat16", "half", "float16"):
        return "fp16" if name in ("half", "float16") else "bf16"
    if name.startswith("fp8"):
        return "fp8"
    return {"float32": "fp32", "float": "fp32"}.get(name, name if name in KV_BYTES else None)


QUANT_METHODS = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "awq": "int4",
    "gptq": "int4",
    "awq_marlin": "int4",
    "gptq_marlin": "int4",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "bitsandbytes": "int4",
}
"""`quantization_config.quant_method` of a config.json -> weight dtype; bitsandbytes and GPTQ also exist with 8 bits (see `bits`)."""

"""Bytes of the weights: of the whole model, and on the GPU that holds most of them."""

from __future__ import annotations

import math

from obs.memory.dtype import REST, Scope, WeightDtype
from obs.memory.figure import Figure, Origin
from obs.memory.parameters import LayerCount, ParameterCount, count
from obs.memory.shape import ModelShape
from obs.memory.split import Parallel, stages
from obs.text import Quantity, say


def raw_bytes(parameters: float, dtype: WeightDtype) -> float:
    """The rule of thumb: every parameter in the format, without scales and without exceptions. 70e9 in FP16: 140 GB."""
    return parameters * dtype.raw


def nominal_weights(shape: ModelShape, dtype: WeightDtype) -> Figure | None:
    """The rule of thumb on the figure in the model's name; None where the name has none."""
    if shape.nominal is None:
        return None
    how = say(
        "{n} billion parameters, as the name says, x {each} B", n=Quantity(shape.nominal / 1e9, "count"), each=Quantity(dtype.raw, "count")
    )
    return Figure(raw_bytes(shape.nominal, dtype), Origin.COMPUTED, how)


def model_weights(shape: ModelShape, dtype: WeightDtype) -> Figure:
    """The whole model once, with scales, and with what its format leaves in 16 bits."""
    counted = count(shape)
    layers = sum(_layer_bytes(layer.split, layer.keys, layer.whole, layer.experts, dtype) for layer in counted.layers)
    total = layers + (counted.embedding + counted.head) * _ends(dtype)
    parameters = say("{n} billion parameters", n=Quantity(shape.parameters / 1e9, "count"))
    if shape.published:
        how = say("{parameters} (published); {format}", parameters=parameters, format=dtype.how)
    else:
        how = say("{parameters} (counted from the shape); {format}", parameters=parameters, format=dtype.how)
    return Figure(total * _scale(shape, counted), Origin.COMPUTED, how)


def weights_by_stage(shape: ModelShape, dtype: WeightDtype, parallel: Parallel) -> tuple[float, ...]:
    """Bytes on each GPU of each pipeline stage. Tensor ranks of a stage hold the same amount; what cannot be split, each holds whole."""
    counted = count(shape)
    scale = _scale(shape, counted)
    ranges = stages(shape, parallel.pipeline)
    ends = _ends(dtype)
    found = []
    for i, part in enumerate(ranges):
        held = sum(_rank_bytes(counted.layers[layer], shape.kv_heads, parallel.tensor, dtype) for layer in part)
        first, last = i == 0, i == len(ranges) - 1
        held += counted.embedding * ends / parallel.tensor if first or (last and shape.tied_embeddings) else 0.0
        held += counted.head * ends / parallel.tensor if last else 0.0
        found.append(held * scale)
    return tuple(found)


def _rank_bytes(layer: LayerCount, kv_heads: int, tensor: int, dtype: WeightDtype) -> float:
    """One layer on one tensor rank: KV projections are copied where there are more ranks than KV heads."""
    held = math.ceil(kv_heads / tensor) / kv_heads if layer.keys else 0.0
    return _layer_bytes(layer.split / tensor, layer.keys * held, layer.whole, layer.experts / tensor, dtype)


def _layer_bytes(split: float, keys: float, whole: float, experts: float, dtype: WeightDtype) -> float:
    if dtype.scope is Scope.EXPERTS:
        return experts * dtype.each + (split - experts + keys + whole) * REST
    return (split + keys + whole) * dtype.each


def _ends(dtype: WeightDtype) -> float:
    """Bytes a value of embedding and output head."""
    return dtype.each if dtype.scope is Scope.ALL else REST


def _scale(shape: ModelShape, counted: ParameterCount) -> float:
    """What the publisher's total has more or less than the count from the shape, spread evenly."""
    return shape.parameters / counted.total if shape.parameters else 1.0

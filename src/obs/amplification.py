"""What if each layer retried so many times: how many attempts reach the engines for each request.

A layer tries once and retries up to `retries` times while the attempt fails, and the layers stand one behind the other. At worst every
attempt fails. At a failure rate, an attempt fails with that probability whatever the others do; in an overload they do not fail
independently, so the truth lies between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_LAYERS, MOST_RETRIES = 6, 10  # that anybody would set


@dataclass(frozen=True)
class Amplification:
    """Attempts for each request: `worst`, where all of them fail, and `expected`, at the failure rate. `failed` is the part of the
    requests that fail all the same, at that rate (ratio)."""

    worst: float
    expected: float
    failed: float


def amplification(layers: int, retries: int, failing: float) -> Amplification:
    """`failing`: the part of the attempts at the innermost layer that fail, 0 to 1."""
    expected, fails = 1.0, min(1.0, max(0.0, failing))
    for _layer in range(layers):
        expected *= _tries(retries, fails)
        fails **= retries + 1  # what the layer before sees: all tries of this one failed
    return Amplification(float((retries + 1) ** layers), expected, fails)


def _tries(retries: int, fails: float) -> float:
    """The mean number of tries until one succeeds or all are used up."""
    return float(retries + 1) if fails == 1.0 else (1.0 - fails ** (retries + 1)) / (1.0 - fails)

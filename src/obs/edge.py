"""What the gateways in front tell: retries, time-outs, errors, and the time between them and the engines.

Every gateway row is judged by itself, against its own baseline: a healthy one beside it dilutes nothing. What bears on the engines
is mapped to the replicas of the row's namespace, or to all where it has none.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from obs.baseline import follow
from obs.means import Means
from obs.series import Array, divide, trailing, worst

LEAST_RETRIES = 2  # in five minutes: fewer are chance
TIMEOUT_SECONDS = 600.0  # time-outs are rare events: counted over ten minutes
SAME_REQUESTS = 0.2  # gateway and engine count the same requests where their numbers differ by no more
QUIET_RETRY_RATIO = 0.02  # with more retries the gateway's request time holds several attempts


class Edge(Means):
    """Figures at the gateways, [gateways, steps], and what of them bears on the replicas, [replicas, steps]."""

    def for_replicas(self, values: Array) -> Array:
        """The worst over the gateway rows in front of each replica, [replicas, steps]."""
        out = np.full((self.rows, self.grid.count), np.nan)
        for row, replica in enumerate(self.readings.replicas):
            mine = [i for i, (namespace, _) in enumerate(self.gateways) if namespace in ("", replica.namespace) or not replica.namespace]
            out[row] = worst(values[mine]) if mine else np.nan
        return out

    @cached_property
    def retry_ratio(self) -> Array:
        """Retries over original requests, [gateways, steps]: attempts are originals and retries."""
        retries, attempts = self.values("gateway_retries"), self.values("gateway_attempts")
        ratio = self.shortest(retries, np.maximum(attempts - retries, 1e-9), (attempts,))[0]
        few = trailing(retries, self.minutes(5)) * self.grid.step < LEAST_RETRIES
        return np.where(np.isfinite(ratio) & few, 0.0, ratio)

    @cached_property
    def timeouts(self) -> Array:
        """Time-outs in the last ten minutes, [gateways, steps]."""
        values = self.values("gateway_timeouts")
        return np.where(np.isfinite(values), trailing(values, self.grid.steps(TIMEOUT_SECONDS)) * self.grid.step, np.nan)

    @cached_property
    def error_ratio(self) -> Array:
        """5xx answers that are no time-outs, of all answers, [replicas, steps]; NaN where it cannot be told.

        By the gateways, else by the engines. Where the time-outs are not counted, many 5xx may be nothing but them.
        """
        steps = self.minutes(2)
        if self.has("gateway_responses"):
            late = self.values("gateway_timeouts")
            errors = np.maximum(np.nan_to_num(self.values("gateway_errors")) - np.nan_to_num(late), 0.0)
            ratio = self.for_replicas(divide(trailing(errors, steps), trailing(self.values("gateway_responses"), steps)))
            untold = (ratio >= self.limit("error_ratio")) & ~self.has("gateway_timeouts")
            return np.where(untold, np.nan, ratio)
        errors, done = self.values("engine_errors"), self.values("requests_finished")
        ratio = np.nan_to_num(divide(trailing(errors, steps), trailing(errors + np.nan_to_num(done), steps)))
        return np.where(np.isfinite(errors), ratio, np.nan)

    @cached_property
    def edge_ttft(self) -> Array:
        """Mean time to first token at the gateways in front of each replica, [replicas, steps]."""
        return self.for_replicas(self.mean("gateway_ttft"))

    @cached_property
    def network(self) -> Array:
        """First-token time at the gateways less the engines', [replicas, steps]; else request times, where both saw the same requests.

        Both are means over the same minutes. Only while the engines' part is flat: in a ramp the two see different requests.
        """
        if self.has("gateway_ttft"):
            outside, seen = self.pair("gateway_ttft")
            return self.for_replicas(self._transit(outside, seen, "ttft", "ttft_ratio"))
        if not self.has("gateway_duration", "e2e_latency"):
            return np.full((self.rows, self.grid.count), np.nan)
        outside, seen = self.summed("gateway_duration")
        done = trailing(self.summed("e2e_latency")[1], self.minutes(2))
        at_gateway = trailing(seen, self.minutes(2))
        same = np.abs(at_gateway - done) <= SAME_REQUESTS * np.maximum(at_gateway, done)
        quiet = ~(np.nan_to_num(worst(self.retry_ratio)) > QUIET_RETRY_RATIO)
        difference = np.where(same & quiet, self._transit(outside, seen, "e2e_latency", "latency_ratio"), np.nan)
        return np.broadcast_to(difference, (self.rows, self.grid.count))

    def _transit(self, outside: Array, seen: Array, engine: str, ratio: str) -> Array:
        """Mean at the gateway less the engines' mean, shape of `outside`; NaN while the engines' own mean is out of line."""
        total, count = (np.broadcast_to(values, outside.shape) for values in self.summed(engine))
        inside = self.shortest(total, count, (count, seen))[0]
        difference = self.shortest(outside, seen, (count, seen))[0] - inside

        def limit(base: Array) -> Array:
            usual = np.maximum(base * self.limit(ratio), base + self.limit("ttft_rise"))
            return np.where(np.isfinite(base), usual, np.inf)

        flat = ~(inside >= limit(follow(inside, self.grid, limit)))
        return np.where(flat, np.maximum(difference, 0.0), np.nan)

"""What the gateways in front tell: retries, time-outs, errors, and the time between them and the engines.

Every gateway row is judged by itself, against its own baseline: a healthy one beside it dilutes nothing. What bears on the engines
is mapped to the replicas of the row's namespace, or to all where it has none.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from obs.baseline import follow
from obs.means import Means, keys
from obs.series import Array, Mask, anywhere, divide, nothing, total_of, trailing, worst

MOST_RETRIES = 64.0  # for each request; in a crash the originals of a minute are too few to divide by
LEAST_RETRIES = 2  # in five minutes: fewer are chance
TIMEOUT_SECONDS = 600.0  # time-outs are rare events: counted over ten minutes
SAME_REQUESTS = 0.2  # gateway and engine count the same requests where their numbers differ by no more
QUIET_RETRY_RATIO = 0.02  # with more retries the gateway's request time holds several attempts


class Edge(Means):
    """Figures at the gateways, [gateways, steps], and what of them bears on the replicas, [replicas, steps]."""

    @cached_property
    def in_front(self) -> Mask:
        """Which gateway rows stand in front of which replicas, [gateways, replicas]: those of its namespace, or without one."""
        spaces = [replica.namespace for replica in self.readings.replicas]
        return np.array([[not own or not space or own == space for space in spaces] for own, _ in self.gateways], dtype=np.bool_).reshape(
            len(self.gateways), self.rows
        )

    def for_replicas(self, values: Array) -> Array:
        """The worst over the gateway rows in front of each replica, [replicas, steps]."""
        out = np.full((self.rows, self.grid.count), np.nan)
        for mine in np.unique(self.in_front, axis=1).T:
            out[(mine == self.in_front.T).all(axis=1)] = worst(values[mine]) if mine.any() else np.nan
        return out

    def systems(self, signal: str) -> dict[tuple[str, str], str]:
        """The system (Envoy, a router, ...) of each gateway row that has the signal, by the row's key in `gateways`; "" if unknown."""
        reading = self.reading(signal)
        return dict(zip(keys(reading), (labels.get("system", "") for labels in reading.row_labels), strict=False))

    def over_layers(self, signal: str) -> Array:
        """A gateway signal over the whole view, [steps]. The rows of one system in a namespace add up; of several systems there, one stands
        behind the other and sees the same requests, so the largest total counts."""
        reading = self.reading(signal)
        totals: dict[str, dict[str, Array]] = {}
        labels = reading.row_labels or ({},) * len(reading.rows)
        for label, values in zip(labels, reading.values, strict=True):
            systems = totals.setdefault(label.get("namespace", ""), {})
            before = systems.get(label.get("system", ""))
            systems[label.get("system", "")] = values if before is None else total_of(np.stack([before, values]))
        spaces = [worst(np.stack(list(systems.values()))) for systems in totals.values()]
        return total_of(np.stack(spaces)) if spaces else np.full(self.grid.count, np.nan)

    @cached_property
    def retry_ratio(self) -> Array:
        """Retries over original requests, [gateways, steps]: attempts are originals and retries."""
        retries, attempts = self.values("gateway_retries"), self.values("gateway_attempts")
        share = self.shortest(retries, attempts, (attempts,))[0]  # of all attempts
        few = trailing(retries, self.minutes(5)) * self.grid.step < LEAST_RETRIES
        share = np.where(np.isfinite(share) & few, 0.0, share)
        share = np.where(np.isfinite(retries).any(axis=1, keepdims=True), share, np.nan)  # a gateway that counts none may make many
        most = MOST_RETRIES / (1.0 + MOST_RETRIES)
        return np.minimum(share, most) / (1.0 - np.minimum(share, most))

    @cached_property
    def layers(self) -> dict[str, Array]:
        """Attempts for each request at each system that exports retries (Envoy, a router, ...), {system: [replicas, steps]}.

        Of several rows of one system in front of a replica the worst counts: they stand side by side, not one behind the other.
        """
        found, systems = {}, self.systems("gateway_retries")
        for system in sorted(set(systems.values()) - {""}):
            mine = np.array([systems.get(key) == system for key in self.gateways])
            found[system] = self.for_replicas(np.where(mine[:, None], 1.0 + self.retry_ratio, np.nan))
        return found

    @cached_property
    def layers_product(self) -> Array:
        """Attempts for each request where every layer stands behind the one before it, [replicas, steps]; NaN where under two are known."""
        layers = np.stack([np.ones((self.rows, self.grid.count)) * np.nan, *self.layers.values()])
        known = np.isfinite(layers)
        return np.where(known.sum(axis=0) > 1, np.where(known, layers, 1.0).prod(axis=0), np.nan)

    @cached_property
    def timeouts(self) -> Array:
        """Time-outs in the last ten minutes, [gateways, steps]."""
        values = self.values("gateway_timeouts")
        return np.where(np.isfinite(values), trailing(values, self.grid.steps(TIMEOUT_SECONDS)) * self.grid.step, np.nan)

    @cached_property
    def error_ratio(self) -> Array:
        """5xx answers, time-outs aside, of all answers, [replicas, steps]: by the gateways, else the engines; NaN where neither tells."""
        steps = self.minutes(2)
        if self.has("gateway_responses"):
            errors = np.maximum(np.nan_to_num(self.values("gateway_errors")) - np.nan_to_num(self.values("gateway_timeouts")), 0.0)
            return self.for_replicas(divide(trailing(errors, steps), trailing(self.values("gateway_responses"), steps)))
        errors, done = self.values("engine_errors"), self.values("requests_finished")
        ratio = np.nan_to_num(divide(trailing(errors, steps), trailing(errors + np.nan_to_num(done), steps)))
        return np.where(np.isfinite(errors), ratio, np.nan)

    @cached_property
    def errors_untold(self) -> Mask:
        """Where many answers are 5xx and the time-outs are not counted: they may be nothing but time-outs. [replicas, steps]"""
        many = self.error_ratio >= self.limit("error_ratio")
        return many & (self.has("gateway_responses") and not self.has("gateway_timeouts"))

    @cached_property
    def edge_ttft(self) -> Array:
        """Mean time to first token at the gateways in front of each replica, [replicas, steps]."""
        return self.for_replicas(self.mean("gateway_ttft"))

    @property
    def network_told(self) -> bool:
        """Whether the time between gateway and engine is measured at all."""
        return self.has("gateway_ttft", "ttft") or self.has("gateway_duration", "e2e_latency")

    @cached_property
    def network(self) -> Array:
        """First-token time at each gateway less the engines', [replicas, steps]; else request times, where both saw the same requests.

        Both are means over the same minutes, and only while the engines' own part is flat: in a ramp the two see different requests.
        """
        if self.has("gateway_ttft", "ttft"):
            return self.for_replicas(self._transit("gateway_ttft", "ttft", "ttft_ratio"))
        if not self.has("gateway_duration", "e2e_latency"):
            return nothing((self.rows, self.grid.count))
        at_gateways, done = (trailing(self.summed(signal)[1], self.minutes(2)) for signal in ("gateway_duration", "e2e_latency"))
        same = np.abs(at_gateways - done) <= SAME_REQUESTS * np.maximum(at_gateways, done)
        tries = np.nan_to_num(self.retry_ratio) > QUIET_RETRY_RATIO
        late = np.nan_to_num(self.timeouts) >= self.limit("timeouts")  # what timed out took as long as the limit, not the network
        return self.for_replicas(np.where(same & ~tries & ~late, self._transit("gateway_duration", "e2e_latency", "latency_ratio"), np.nan))

    def _transit(self, gateway: str, engine: str, ratio: str) -> Array:
        """Mean at each gateway less that of the engines behind it, [gateways, steps]; NaN while any of those is out of line."""
        outside, seen = self.pair(gateway)
        total, count = self.pair(engine)
        own = self.mean(engine)

        def limit(base: Array) -> Array:
            usual = np.maximum(base * self.limit(ratio), base + self.limit("ttft_rise"))
            return np.where(np.isfinite(base), usual, np.inf)

        out_of_line = own >= limit(follow(own, self.grid, limit))
        difference = np.full(outside.shape, np.nan)
        for row, behind in enumerate(self.in_front):
            if not behind.any():
                continue
            made, took = (total_of(values[behind])[None, :] for values in (count, total))
            both = (made, seen[row : row + 1])
            inside = self.shortest(took, made, both)[0]
            outer = self.shortest(outside[row : row + 1], seen[row : row + 1], both)[0]
            judged = (seen[row] > 0) & ~anywhere(out_of_line[behind])  # without requests now, the means are of minutes ago
            difference[row] = np.where(judged, np.maximum(outer - inside, 0.0), np.nan)[0]
        return difference

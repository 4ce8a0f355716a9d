"""What the rules look at: when a replica can be judged at all, and the figures derived from the readings.

Arrays have shape [replicas, steps], or [1, steps] for what is measured in front of the engines, so that the two combine.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from obs.baseline import follow
from obs.means import Means
from obs.series import Array, Mask, backward_max, divide, latch, median, runs, settle, total_of, trailing

LEAST_RETRIES = 2  # in five minutes: fewer are chance
TIMEOUT_SECONDS = 600.0  # time-outs are rare events: counted over ten minutes
SAME_REQUESTS = 0.2  # gateway and engine count the same requests where their numbers differ by no more
QUIET_RETRY_RATIO = 0.02  # with more retries the gateway's request time holds several attempts
STALL_WITHOUT_STEPS_SECONDS = 300.0  # tokens may be counted at a request's end: silence must be longer to mean a stall


class Facts(Means):
    """The readings, seen as the rules need them. Every figure is made once and kept."""

    # -- when a replica can be judged ------------------------------------------------------------------------------

    @cached_property
    def working(self) -> Array:
        """Running and waiting requests of each replica; NaN where neither is measured."""
        running, waiting = self.values("requests_running"), self.values("requests_waiting")
        both = np.nan_to_num(running) + np.nan_to_num(waiting)
        return np.where(np.isfinite(running) | np.isfinite(waiting), both, np.nan)

    @cached_property
    def measured(self) -> Mask:
        """The replica's own series are there: its gauges, or its token counters."""
        return np.isfinite(self.working) | np.isfinite(self.values("generation_tokens")) | np.isfinite(self.values("kv_use"))

    @cached_property
    def down(self) -> Mask:
        """The target is there and the scrape fails: nothing is known of the replica."""
        return self.values("up") < 0.5

    @cached_property
    def stalled(self) -> Mask:
        """Work is held and no engine step is made, for two minutes and more. Backdated to where it began."""
        steps = self.values("engine_steps")
        tokens = self.values("generation_tokens")
        exact = np.isfinite(steps)
        silent = np.where(exact, steps == 0, (tokens == 0) & (np.nan_to_num(self.values("requests_finished")) == 0))
        idle = silent & (np.nan_to_num(self.working) > 0) & ~self.down
        hold = self.limit("stall")
        with_steps = settle(idle & exact, self.grid.steps(hold), 0)
        without = settle(idle & ~exact, self.grid.steps(max(hold, STALL_WITHOUT_STEPS_SECONDS)), 0)
        return with_steps | without

    @cached_property
    def started(self) -> Mask:
        """The process came up at this step: its counters began again, or its series came back after two minutes or a failed scrape."""
        resets = self.values("counter_resets") > 0
        first = resets & ~np.roll(resets, 1, axis=1)
        first[:, 0] = False
        restarts = np.diff(self.values("container_restarts"), axis=1, prepend=np.nan) > 0
        return first | restarts | self._appeared

    @cached_property
    def _appeared(self) -> Mask:
        """The replica's series begin here, after a gap, while the grid is longer: it is new, or it was away."""
        out = np.zeros_like(self.measured)
        gap = self.grid.steps(self.limit("hold"))
        for row in range(self.rows):
            stretches = runs(self.measured[row])
            for number, (first, _) in enumerate(stretches):
                away = first - (stretches[number - 1][1] if number else -1) - 1
                out[row, first] = away >= gap and (number > 0 or self._others_before(row, first))
        return out

    def _others_before(self, row: int, step: int) -> bool:
        """Whether the source held anything before: else a late beginning is the recording's, not the replica's."""
        return bool(self.measured[:, : max(0, step - 1)].any())

    @cached_property
    def warming(self) -> Mask:
        """The minutes after a start, and a rate window more: compilation, an empty prefix cache. Nothing is judged."""
        return backward_max(self.started, self.grid.steps(self.limit("warm_up") + self.readings.rate_seconds))

    @cached_property
    def excused(self) -> Mask:
        """Not judged: stalled, down or warming up."""
        return self.stalled | self.down | self.warming

    # -- derived figures -------------------------------------------------------------------------------------------

    @cached_property
    def remainder(self) -> Array:
        """The part of the mean TTFT that is neither queue nor prefill: tokenization, template, images, IPC. Seconds."""
        return np.maximum(self.mean("ttft") - self.mean("queue_time") - self.mean("prefill_time"), 0.0)

    @cached_property
    def network(self) -> Array:
        """First-token time at the gateway less the engines', [1, steps]; else request times, where both saw the same requests.

        Both are means over the same minutes. Only while the engines' part is flat: in a ramp the two see different requests.
        """
        if self.has("gateway_ttft"):
            return self._transit("gateway_ttft", "ttft", "ttft_ratio", "ttft_rise")
        if self.has("gateway_duration", "e2e_latency"):
            seen, done = (trailing(self.summed(signal)[1], self.minutes(2)) for signal in ("gateway_duration", "e2e_latency"))
            same = np.abs(seen - done) <= SAME_REQUESTS * np.maximum(seen, done)
            quiet = ~(np.nan_to_num(self.retry_ratio) > QUIET_RETRY_RATIO)
            return np.where(same & quiet, self._transit("gateway_duration", "e2e_latency", "latency_ratio", "ttft_rise"), np.nan)
        return np.full((1, self.grid.count), np.nan)

    def _transit(self, gateway: str, engine: str, ratio: str, rise: str) -> Array:
        total, count = self.summed(engine)
        outside, seen = self.summed(gateway)
        inside = self.shortest(total, count, (count, seen))[0]
        difference = self.shortest(outside, seen, (count, seen))[0] - inside

        def limit(base: Array) -> Array:
            return np.where(np.isfinite(base), np.maximum(base * self.limit(ratio), base + self.limit(rise)), np.inf)

        flat = ~(inside >= limit(follow(inside, self.grid, limit)))
        return np.where(flat, np.maximum(difference, 0.0), np.nan)

    @cached_property
    def expected_wait(self) -> Array:
        """Little's law: waiting requests over completions per second. Seconds; infinite where none completes."""
        done = trailing(self.values("requests_finished"), self.minutes(2)) / self.minutes(2)
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = self.values("requests_waiting") / done
        known = np.isfinite(self.values("requests_finished")) & (self.values("requests_waiting") >= self.limit("waiting"))
        return np.where(known, wait, np.where(np.isfinite(self.values("requests_waiting")), 0.0, np.nan))

    @cached_property
    def queue_leads(self) -> Mask:
        """The queue takes the larger part of the first token, or nobody tells: then a growing queue is its own explanation."""
        queue, prefill = self.mean("queue_time"), self.mean("prefill_time")
        stages = np.isfinite(queue) & np.isfinite(prefill)
        return ~stages | (queue >= np.maximum(prefill, 0.0))

    @cached_property
    def error_ratio(self) -> Array:
        """5xx answers that are no time-outs, of all answers: at the gateway [1, steps], else by the engine [replicas, steps]."""
        steps = self.minutes(2)
        if self.has("gateway_responses", "gateway_errors"):
            late = np.nan_to_num(self.values("gateway_timeouts"))
            errors = np.maximum(np.nan_to_num(self.values("gateway_errors")) - late, 0.0)
            return divide(trailing(errors, steps), trailing(self.values("gateway_responses"), steps))
        errors, done = self.values("engine_errors"), self.values("requests_finished")
        return np.where(np.isfinite(errors), np.nan_to_num(divide(trailing(errors, steps), trailing(errors + done, steps))), np.nan)

    @cached_property
    def retry_ratio(self) -> Array:
        """Retries over original requests, [1, steps]: attempts are originals and retries."""
        retries, attempts = self.values("gateway_retries"), self.values("gateway_attempts")
        ratio = self.shortest(retries, np.maximum(attempts - retries, 1e-9), (attempts,))[0]
        few = trailing(retries, self.minutes(5)) * self.grid.step < LEAST_RETRIES
        return np.where(np.isfinite(ratio) & few, 0.0, ratio)

    @cached_property
    def timeouts(self) -> Array:
        """Time-outs in the last ten minutes, [1, steps]."""
        values = self.values("gateway_timeouts")
        return np.where(np.isfinite(values), trailing(values, self.grid.steps(TIMEOUT_SECONDS)) * self.grid.step, np.nan)

    @cached_property
    def waste(self) -> Array:
        """The part of the generated tokens that no finished request delivered, in the rate window; what still runs is no waste. Ratio."""
        seconds = self.readings.rate_seconds
        steps = self.grid.steps(seconds)
        made = self.values("generation_tokens") * seconds
        reading = self.reading("output_length")
        if reading.total is None:
            return np.full_like(made, np.nan)
        delivered = reading.total * seconds
        running = np.nan_to_num(self.values("requests_running"))
        grown = running.copy()
        grown[:, steps:] -= running[:, :-steps]
        in_flight = np.maximum(grown, 0.0) * np.nan_to_num(self.mean("output_length"))
        known = np.isfinite(self.values("generation_tokens")) & np.isfinite(reading.total)
        return np.where(known & (made > 0), np.clip(1.0 - (delivered + in_flight) / np.maximum(made, 1e-9), 0.0, 1.0), np.nan)

    # -- figures of the whole view ---------------------------------------------------------------------------------

    @cached_property
    def prefill_allowance(self) -> Array:
        """Seconds that prompts of the lengths seen may take by themselves, [replicas]; 0 where lengths are not measured."""
        return np.nan_to_num(median(self.mean("prompt_length"))) / self.limit("prefill_speed")

    @cached_property
    def work_left(self) -> Array:
        """Running and waiting requests over the usual number, [1, steps]. A factor."""
        work = total_of(self.working)[None, :]
        usual = follow(work, self.grid, lambda base: np.where(np.isfinite(base), base * 1.5 + 5.0, np.inf))
        return np.where(usual > 0, work / np.maximum(usual, 1e-9), np.where(work > 0, 1.0, work))

    @cached_property
    def fleet_waste(self) -> Array:
        """The waste of all replicas together, each weighed by the tokens that it made, [1, steps]."""
        made = np.nan_to_num(self.values("generation_tokens"))
        lost = np.nan_to_num(self.waste) * made
        known = np.isfinite(self.waste).any(axis=0)
        return np.where(known, np.nan_to_num(divide(lost.sum(axis=0), made.sum(axis=0))), np.nan)[None, :]

    @cached_property
    def oom_events(self) -> Array:
        """GPU out-of-memory events counted at each step. A counter that is born while others were scraped counts from nothing."""
        counts = self.values("gpu_oom_events")
        known = np.isfinite(counts)
        before = np.full_like(counts, np.nan)
        last = np.maximum.accumulate(np.where(known, np.arange(counts.shape[1]), -1), axis=1)[:, :-1]
        seen = last >= 0
        rows = np.arange(self.rows)[:, None]
        before[:, 1:] = np.where(seen, counts[rows, np.maximum(last, 0)], 0.0)
        grown = np.where(counts >= before, counts - before, counts)
        return np.where(known & np.isfinite(before), grown, 0.0)


def crossed(values: Array, on: Array | float, off: Array | float) -> Mask:
    """Above `on`, and from there until below `off`. Steps without a value keep what was."""
    with np.errstate(invalid="ignore"):
        return latch(values >= on, values < off)

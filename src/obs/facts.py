"""What the rules look at: when a replica can be judged at all, and the figures derived from the readings.

Arrays have shape [replicas, steps], or [1, steps] for what is true of the whole view.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from obs.edge import Edge
from obs.series import Array, Mask, anywhere, backward_max, divide, latch, median, nothing, settle, spans, total_of, trailing

ONE_START_SECONDS = 120.0  # counters that begin again and a pod's restart within this are one
LEAST_TIMEOUTS = 2.0  # in two minutes: to fewer, aborts are not held
FOR_EVER_SECONDS = 86400.0
STALL_BY_ANSWERS_SECONDS = 600.0  # where answers alone are counted: a long one may take minutes
STALL_WITHOUT_STEPS_SECONDS = 300.0  # tokens may be counted at a request's end: silence must be longer to mean a stall


class Facts(Edge):
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
        """The replica's own series are there: its gauges, or its token counters; of a server that has none of them, its answers."""
        own = np.isfinite(self.working) | np.isfinite(self.values("generation_tokens")) | np.isfinite(self.values("kv_use"))
        return own | (~own.any(axis=1, keepdims=True) & np.isfinite(self.values("requests_finished")))

    @cached_property
    def down(self) -> Mask:
        """The target is there and the scrape fails: nothing is known of the replica."""
        return self.values("up") < 0.5

    @cached_property
    def gone(self) -> Mask:
        """Down for a minute and for two scrapes, and more: a lost scrape is no death."""
        return settle(self.down, max(2, self.grid.steps(60.0)), 0)

    @cached_property
    def silent(self) -> Mask:
        """No engine step is made: no step counted; where steps are not counted, no token and no finished request; else none finished."""
        steps, tokens, done = (self.values(signal) for signal in ("engine_steps", "generation_tokens", "requests_finished"))
        unsaid = np.where(np.isfinite(tokens), (tokens == 0) & (np.nan_to_num(done) == 0), done == 0)
        return np.asarray(np.where(np.isfinite(steps), steps == 0, unsaid), dtype=np.bool_)

    @cached_property
    def stalled(self) -> Mask:
        """Work is held and no engine step is made, for two minutes and more; longer where less tells of it. Backdated to where it began."""
        by_step, by_token = (np.isfinite(self.values(signal)) for signal in ("engine_steps", "generation_tokens"))
        idle = self.silent & (np.nan_to_num(self.working) > 0) & ~self.down
        hold = self.limit("stall")
        with_steps = settle(idle & by_step, self.grid.steps(hold), 0)
        with_tokens = settle(idle & ~by_step & by_token, self.grid.steps(max(hold, STALL_WITHOUT_STEPS_SECONDS)), 0)
        by_answer = settle(idle & ~by_step & ~by_token, self.grid.steps(max(hold, STALL_BY_ANSWERS_SECONDS)), 0)
        return with_steps | with_tokens | by_answer

    @cached_property
    def started(self) -> Mask:
        """The process came up at this step: its counters began again, or its series came back after two minutes or a failed scrape."""
        resets = self.values("counter_resets") > 0
        first = resets & ~np.roll(resets, 1, axis=1)
        first[:, 0] = False
        restarts = np.diff(self.values("container_restarts"), axis=1, prepend=np.nan) > 0
        return first | restarts | self._appeared

    @cached_property
    def restarts(self) -> Mask:
        """Starts of a process that was there before; what shows one start within two minutes (a counter, a pod) is one stretch."""
        before = np.cumsum(self.measured, axis=1) - self.measured > 0
        return settle(self.started & before, 1, self.grid.steps(ONE_START_SECONDS))

    @cached_property
    def _appeared(self) -> Mask:
        """The replica's series begin here, after a gap, while the grid is longer: it is new, or it was away."""
        row, first, last = spans(self.measured)
        again = np.zeros(row.size, dtype=np.bool_)
        again[1:] = row[1:] == row[:-1]
        away = first - np.where(again, np.roll(last, 1), -1) - 1
        anything = np.logical_or.accumulate(anywhere(self.measured))
        before = np.concatenate(([False, False], anything))  # until the step before last
        new = (away >= self.grid.steps(self.limit("hold"))) & (again | before[first])  # else a late beginning is the recording's
        out = np.zeros_like(self.measured)
        out[row[new], first[new]] = True
        return out

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
        rest: Array = np.maximum(self.mean("ttft") - self.mean("queue_time") - self.mean("prefill_time"), 0.0)
        return np.where(rest < 1e-6, 0.0 * rest, rest)  # less is rounding

    @cached_property
    def expected_wait(self) -> Array:
        """Little's law: waiting requests over completions per second. Seconds, at most a day: where none completes it is for ever."""
        done = trailing(self.values("requests_finished"), self.minutes(2)) / self.minutes(2)
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = np.minimum(self.values("requests_waiting") / done, FOR_EVER_SECONDS)
        known = np.isfinite(self.values("requests_finished")) & (self.values("requests_waiting") >= self.limit("waiting"))
        return np.where(known, wait, np.where(np.isfinite(self.values("requests_waiting")), 0.0, np.nan))

    @cached_property
    def queue_leads(self) -> Mask:
        """The queue takes the larger part of the first token, or nobody tells: then a growing queue is its own explanation."""
        queue, prefill = self.mean("queue_time"), self.mean("prefill_time")
        stages = np.isfinite(queue) & np.isfinite(prefill)
        waited = queue + np.nan_to_num(self.remainder)  # who still queues is in the remainder: the queue is observed at the finish
        return ~stages | (waited >= np.maximum(prefill, 0.0))

    @cached_property
    def waste(self) -> Array:
        """The part of the generated tokens that no finished request delivered, in the rate window; what still runs is no waste. Ratio."""
        seconds = self.readings.rate_seconds
        steps = self.grid.steps(seconds)
        made = self.values("generation_tokens") * seconds
        reading = self.reading("output_length")
        if reading.total is None:
            return nothing(made.shape)
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
    def work(self) -> Array:
        """Running and waiting requests of all replicas, [1, steps]."""
        return total_of(self.working)[None, :]

    @cached_property
    def unattended(self) -> Array:
        """Requests in the engines beyond those that the gateways hold open, mean of two minutes, [1, steps]. NaN where the gateways or
        the engines do not tell."""
        steps, open_ = self.minutes(2), self.over_layers("gateway_active")[None, :]
        known = np.isfinite(open_) & np.isfinite(self.work)
        beyond = trailing(np.where(known, self.work - open_, 0.0), steps) / steps
        return np.where(known, np.maximum(beyond, 0.0), np.nan)  # below 0 while requests are on their way

    @cached_property
    def aborts_per_timeout(self) -> Array:
        """Engine aborts for each time-out, over two minutes, [1, steps]; NaN where next to nothing timed out."""
        late, aborts = self.over_layers("gateway_timeouts"), total_of(self.values("engine_aborts"))
        late, aborts = (trailing(rate[None, :], self.minutes(2)) for rate in (late, aborts))
        return np.where(late * self.grid.step >= LEAST_TIMEOUTS, divide(aborts, late), np.nan)

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

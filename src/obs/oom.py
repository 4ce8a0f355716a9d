"""Row 1, judged by events: a GPU out-of-memory error needs an out-of-memory event, or a death with full GPU memory and no other cause.

A bare restart is not one, a full KV pool is not one (it preempts or queues), and a container killed for host memory is another thing.
CUDA raises no metric: the event comes from a counter that a log pipeline makes, which many sites do not have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from obs.facts import Facts
from obs.series import Mask, anywhere, backward_max, median, near, runs, spans
from obs.verdict import Episode

AROUND_SECONDS = 300.0  # what led to the event, and what it did
LASTS_SECONDS = 300.0  # an event is over this long after it, or once the replica works again
RESERVED_RATIO = 0.85  # engines reserve most of the memory at start: weights and KV pool leave this little for activations


@dataclass(frozen=True)
class OutOfMemory:
    """Events and deaths by replica and step, and what explains them; masks of shape [replicas, steps]."""

    events: Mask
    deaths: Mask  # the process ended here: its scrapes or its series stop, or its counters began again
    reserved: Mask  # weights and KV pool leave little
    longer: Mask  # prompts are longer than is usual, or more sequences run
    broke: Mask  # the replica died, stalled, or answers with errors
    suspected: Mask  # a death with full GPU memory and no other cause
    host: Mask  # the container was killed for host memory


def out_of_memory(facts: Facts) -> OutOfMemory:
    """Look at every replica's events and deaths."""
    around = facts.grid.steps(AROUND_SECONDS)
    events = facts.oom_events > 0
    deaths = _deaths(facts)
    memory = facts.values("gpu_memory")
    restarted = near(np.diff(facts.values("container_restarts"), axis=1, prepend=np.nan) > 0, around)
    host = (facts.values("container_oom_killed") > 0) & restarted | (facts.values("host_memory") >= facts.limit("host_memory"))
    full = backward_max(memory >= facts.limit("gpu_memory"), around)
    errors = facts.error_ratio >= facts.limit("error_ratio")
    return OutOfMemory(
        events=events,
        deaths=deaths,
        reserved=near(memory >= RESERVED_RATIO, around),
        longer=near(_above_usual(facts), around),
        broke=near(deaths | facts.stalled | facts.down | errors, around),
        suspected=deaths & full & ~near(host, around) & ~near(facts.stalled, around),
        host=host & near(deaths, around),
    )


def _deaths(facts: Facts) -> Mask:
    """In place: the same replica was measured before, and is known to be down or comes back later."""
    measured = facts.measured
    row, _, last = spans(measured & ~facts.down)
    later = np.zeros((facts.rows, facts.grid.count + 1), dtype=np.bool_)
    later[:, :-1] = np.logical_or.accumulate((facts.down | measured)[:, ::-1], axis=1)[:, ::-1]
    known = later[row, last + 1]
    out = np.zeros_like(measured)
    out[row[known], last[known] + 1] = True
    resets = facts.started & backward_max(measured, facts.grid.steps(AROUND_SECONDS) + 1) & (np.cumsum(measured, axis=1) > 1)
    return out & _long_enough(facts) | resets


def _long_enough(facts: Facts) -> Mask:
    """A lost scrape or two is no death."""
    gone = facts.down | ~facts.measured
    steps = facts.grid.steps(facts.limit("hold") / 2)
    ahead = backward_max(~gone[:, ::-1], steps)[:, ::-1]
    return ~ahead


def _above_usual(facts: Facts) -> Mask:
    """Prompt lengths or running sequences at one and a half times the median of the grid, and more."""
    out = np.zeros((facts.rows, facts.grid.count), dtype=np.bool_)
    for values in (facts.mean("prompt_length"), facts.values("requests_running")):
        usual = median(values)[:, None]
        out |= values >= np.maximum(1.5 * usual, usual + 1.0)
    return out


def explained(found: OutOfMemory) -> Mask:
    """Events with something that explains them, or that shows what they did."""
    return found.events & (found.reserved | found.longer | found.broke)


def oom_episodes(facts: Facts, found: OutOfMemory, names: tuple[str, ...]) -> tuple[Episode, ...]:
    """From the first event until the replica works again and nothing new was counted for five minutes."""
    grid = facts.grid
    lasting = backward_max(explained(found), grid.steps(LASTS_SECONDS))
    broken = facts.stalled | facts.down  # where nothing at all is known of the replica any more, nothing is said of it
    for row in np.flatnonzero(lasting.any(axis=1)):
        for first, last in runs(broken[row]):
            if lasting[row, max(0, first - 1) : last + 1].any():
                lasting[row, first : last + 1] = True
    out = []
    for first, last in runs(anywhere(lasting)):
        rows = [r for r in range(facts.rows) if lasting[r, first : last + 1].any()]
        first = min(
            int(np.flatnonzero(found.events[r, first : last + 1])[0]) + first for r in rows if found.events[r, first : last + 1].any()
        )
        end = None if last >= grid.count - 2 else grid.start + last * grid.step
        if end is None or end > facts.readings.start:
            out.append(Episode(grid.start + max(0, first - 1) * grid.step, end, tuple(names[r] for r in rows)))
    return tuple(out)

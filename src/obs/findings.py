"""What lies outside the table. Each can excuse a row: a hung engine is not "latency", five minutes after a start are a warm-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from obs.baseline import follow
from obs.facts import Facts
from obs.oom import OutOfMemory
from obs.series import Array, Mask, anywhere, backward_max, divide, median_of_others, near, runs, settle, total_of, trailing
from obs.signals import Kind, Level
from obs.text import Message, Moment, Names, Quantity, say
from obs.verdict import Finding

GAP_SECONDS = 120.0
TAIL_SECONDS = 60.0  # as for the rows
NO_TRAFFIC_SECONDS = 300.0
SHARE_SECONDS = 600.0
IMBALANCE_SECONDS = 300.0
WASTE_HOLD_SECONDS = 90.0
FEW_LEAVE = 8.0  # callers in three minutes, over twice the usual: fewer are chance
LEAVE_RATIO = 0.1  # and of the requests that begin
VANISH_RATIO = 0.3  # of the requests that begin, with no end
WASTE_RISE = 0.25  # some engines count more tokens than they deliver at all times

Says = Callable[[float, tuple[str, ...]], Message]

TITLES = {
    "engine_stalled": say("Engine stalled"),
    "stale_gauges": say("Frozen gauges"),
    "no_traffic": say("No traffic"),
    "restarted": say("Restarted"),
    "host_oom": say("Host memory exhausted"),
    "replica_imbalance": say("Replica imbalance"),
    "series_vanished": say("Series vanished"),
    "scrape_failing": say("Scrapes fail"),
    "abandoned_work": say("Abandoned work"),
}


def findings(facts: Facts, oom: OutOfMemory) -> tuple[Finding, ...]:
    """All findings that meet the window, by time."""
    found = [
        *_found(facts, "engine_stalled", facts.stalled, lambda at, who: say(
            "Work is held and no engine step is made, on {replicas}. This is a hang, not latency: restart it.", replicas=Names(who))),
        *_found(facts, "stale_gauges", _frozen(facts), lambda at, who: say(
            "The gauges of {replicas} are frozen above zero: they tell what was true before the stall.", replicas=Names(who))),
        *_found(facts, "no_traffic", _no_traffic(facts), lambda at, who: say("No request arrives and none runs.")),
        *_found(facts, "restarted", near_event(facts, facts.started), lambda at, who: say(
            "{replicas} started at {at}: the five minutes after it are a warm-up and are not judged.", replicas=Names(who), at=Moment(at))),
        *_found(facts, "host_oom", oom.host, lambda at, who: say(
            "{replicas} ran out of host memory. That is RAM, not GPU memory.", replicas=Names(who))),
        *_found(facts, "replica_imbalance", _imbalance(facts), lambda at, who: say(
            "{replicas}: KV cache use far above the median of the others. The router may be sticky.", replicas=Names(who))),
        *_found(facts, "scrape_failing", _scrape_failing(facts), lambda at, who: say(
            "Scrapes of {replicas} fail: what happened between the ones that succeed is not known.", replicas=Names(who))),
        *_found(facts, "abandoned_work", _abandoned(facts), lambda at, who: say(
            "Of the tokens generated, {share} or more reach nobody: their callers have left.",
            share=Quantity(facts.limit("waste"), "ratio"))),
        *_vanished(facts),
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda f: (f.start, f.id)))


def _found(facts: Facts, finding: str, mask: Mask, says: Says) -> Iterator[Finding]:
    grid, names = facts.grid, tuple(replica.name for replica in facts.readings.replicas)
    stretches = settle(anywhere(mask)[None, :], 1, grid.steps(GAP_SECONDS))[0]
    for first, last in runs(stretches):
        start, end = grid.start + first * grid.step, grid.start + last * grid.step
        if end <= facts.readings.start + TAIL_SECONDS:
            continue
        rows = [r for r in range(mask.shape[0]) if mask[r, first : last + 1].any()]
        who = tuple(names[r] for r in rows) if mask.shape[0] == len(names) else ()
        yield Finding(finding, TITLES[finding], says(start, who), start, None if last >= grid.count - 2 else end, who)


def near_event(facts: Facts, mask: Mask) -> Mask:
    """An event, shown for a minute; a new replica is not a restart: only one that was measured before."""
    before = np.cumsum(facts.measured, axis=1) - facts.measured > 0
    return backward_max(mask & before, facts.grid.steps(60.0))


def _frozen(facts: Facts) -> Mask:
    held = np.zeros_like(facts.stalled)
    for signal in ("kv_use", "requests_running"):
        values = facts.values(signal)
        same = np.abs(np.diff(values, axis=1, prepend=np.nan)) == 0
        held |= same & (values > 0)
    return settle(held & facts.stalled, facts.grid.steps(facts.limit("hold")), facts.grid.steps(30.0))


def _no_traffic(facts: Facts) -> Mask:
    """Measured everywhere, nothing held anywhere, nothing finished and nothing generated for five minutes."""
    idle = np.ones(facts.grid.count, dtype=np.bool_)
    seen = np.zeros(facts.grid.count, dtype=np.bool_)
    for values in (facts.working, facts.values("generation_tokens"), facts.values("requests_finished")):
        known = np.isfinite(values)
        seen |= known.any(axis=0)
        idle &= ~((values > 0) & known).any(axis=0)
    arrivals = facts.reading("ttft").count
    if arrivals is not None:
        idle &= ~(np.nan_to_num(arrivals) > 0).any(axis=0)
    quiet = (idle & seen & ~facts.down.any(axis=0))[None, :]
    return settle(quiet, facts.grid.steps(NO_TRAFFIC_SECONDS), 0)


def _imbalance(facts: Facts) -> Mask:
    """KV use far above the median of the others, and in trouble for it: full, or with a queue."""
    kv = np.where(facts.measured, facts.values("kv_use"), np.nan)
    if facts.rows < 2:
        return np.zeros(kv.shape, dtype=np.bool_)
    busy = (kv >= facts.limit("kv_use")) | (facts.values("requests_waiting") >= facts.limit("waiting"))
    out = busy & (kv - median_of_others(kv) >= facts.limit("imbalance"))
    return settle(out, facts.grid.steps(IMBALANCE_SECONDS), facts.grid.steps(GAP_SECONDS))


def _scrape_failing(facts: Facts) -> Mask:
    """Down for a minute, or one scrape in ten over ten minutes."""
    up = facts.values("up")
    steps = facts.grid.steps(SHARE_SECONDS)
    down = facts.down
    share = divide(trailing(down.astype(np.float64), steps), trailing(np.isfinite(up).astype(np.float64), steps))
    often = (share >= facts.limit("scrape_failures")) & (trailing(down.astype(np.float64), steps) * facts.grid.step >= 60.0)
    long = settle(down, facts.grid.steps(60.0), 0)
    return long | (often & backward_max(down, facts.grid.steps(SHARE_SECONDS / 2)))


def _abandoned(facts: Facts) -> Mask:
    """Half of the tokens wasted, more than is usual here, and callers are seen to leave: requests vanish, time out or are cancelled."""
    waste = facts.fleet_waste
    usual = _quiet_level(waste)
    wasted = (waste >= facts.limit("waste")) & (waste >= usual + WASTE_RISE)
    return settle(wasted & near(_left(facts), facts.grid.steps(60.0)), facts.grid.steps(WASTE_HOLD_SECONDS), facts.grid.steps(60.0))


def _quiet_level(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, 0.1)) if known.size else 0.0


def _left(facts: Facts) -> Mask:
    """Callers leave: first tokens that no finished and no running request accounts for, aborts, time-outs or cancellations."""
    steps = facts.grid.steps(180.0)
    out = np.zeros((1, facts.grid.count), dtype=np.bool_)
    first = np.nan_to_num(trailing(facts.summed("ttft")[1][0], steps)) * facts.grid.step
    if facts.has("ttft", "requests_finished"):
        done = trailing(total_of(facts.values("requests_finished")), steps) * facts.grid.step
        running = np.nan_to_num(total_of(facts.values("requests_running")))
        grown = running.copy()
        grown[steps:] -= running[:-steps]
        out |= (first - done - np.maximum(grown, 0.0) >= np.maximum(VANISH_RATIO * first, FEW_LEAVE))[None, :]
    for signal in ("engine_aborts", "gateway_timeouts", "gateway_cancelled"):
        counted = trailing(total_of(facts.values(signal))[None, :], steps) * facts.grid.step
        usual = follow(counted, facts.grid, lambda base: np.where(np.isfinite(base), 2 * base + FEW_LEAVE, np.inf))
        out |= (counted >= np.nan_to_num(2 * usual) + FEW_LEAVE) & (counted >= LEAVE_RATIO * first)
    return out


def _vanished(facts: Facts) -> Iterator[Finding]:
    """Signals that a replica gave and gives no more, while the rest of it is still there."""
    grid, hold = facts.grid, facts.grid.steps(facts.limit("hold"))
    alive = np.isfinite(facts.values("ttft")) | facts.measured
    gone_since: dict[int, list[str]] = {}
    who: set[str] = set()
    for signal, reading in facts.readings.signals.items():
        if reading.signal.level is not Level.REPLICA or signal in NOT_OF_THE_ENGINE:
            continue
        values = reading.count if reading.signal.kind is Kind.MEAN and reading.count is not None else reading.values
        known = np.isfinite(values)
        ends = grid.count - 1 - known[:, ::-1].argmax(axis=1)
        inside = (grid.times[ends] >= facts.readings.start) & (ends < grid.count - 1 - hold)
        for row in np.flatnonzero(known.any(axis=1) & inside):
            last = int(ends[row])
            if not alive[row, last + hold :].any() or facts.down[row, last + 1 :].all():
                continue
            if alive[row, last + 1 :].mean() > 0.5:
                gone_since.setdefault(last, []).append(signal)
                who.add(facts.readings.replicas[row].name)
    if gone_since:
        first = min(gone_since)
        lost = sorted({facts.reading(s).metric or s for signals in gone_since.values() for s in signals})
        at = grid.start + first * grid.step
        says = say(
            "Since {at} these series are gone: {metrics}. What needs them is unknown, not clear.", at=Moment(at), metrics=Names(tuple(lost))
        )
        yield Finding("series_vanished", TITLES["series_vanished"], says, at, None, tuple(sorted(who)))


NOT_OF_THE_ENGINE = frozenset({
    "up", "scrape_duration", "container_restarts", "container_oom_killed", "host_memory", "gpu_memory", "gpu_memory_free",
    "gpu_memory_total", "gpu_xid", "gpu_utilization", "gpu_oom_events", "host_oom_kills", "container_image", "counter_resets",
})  # fmt: skip

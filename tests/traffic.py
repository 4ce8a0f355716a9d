"""A small simulated fleet: engines with a paged KV pool and a prefill queue, behind a gateway that times out and retries.

Second by second and deterministic by seed. Requests have lengths; an engine admits them while sequences and KV space last,
prefills them one after the other, decodes them together, and preempts the youngest where the space runs out. Histograms are
observed when vLLM observes them: the first token's at the first token, the rest at the finish. Nothing here knows a rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

Course = float | tuple[tuple[float, float], ...]  # a figure, or steps: (from this second on, figure)

STEP_SECONDS = 0.015  # one engine step with nothing in the batch
STEP_PER_SEQUENCE = 0.0004
ADMIT = 0.97  # of the KV pool may be promised at admission
RETRY_PAUSE = 0.1
WARM_SECONDS, WARM = 240, 8.0  # after a start the engine compiles: everything takes so many times as long
REPLICA_COUNTERS = (
    "preemptions", "engine_steps", "requests_finished", "engine_errors", "engine_aborts", "prompt_tokens", "generation_tokens",
    *(f"{mean}.{part}" for mean in ("ttft", "itl", "e2e_latency", "queue_time", "prefill_time", "prompt_length", "output_length")
      for part in ("sum", "count")),
)  # fmt: skip
ENGINE_COURSES = ("slowdown", "prefill_speed", "front_end", "sequences", "kv_floor", "idle_preemptions")
REPLICA_GAUGES = ("kv_use", "requests_running", "requests_waiting")
GATEWAY_COUNTERS = (
    "gateway_attempts", "gateway_retries", "gateway_timeouts", "gateway_responses", "gateway_errors",
    "gateway_ttft.sum", "gateway_ttft.count", "gateway_duration.sum", "gateway_duration.count",
)  # fmt: skip


@dataclass(frozen=True)
class Death:
    """The process of a replica ends at a second, and works again so many seconds later."""

    replica: int
    at: int
    away: int = 60
    oom_event: bool = False
    oom_killed: bool = False


@dataclass(frozen=True)
class Site:
    """A fleet and what happens to it. `only` gives a replica courses of its own."""

    replicas: int = 4
    seconds: int = 5400
    rate: Course = 1.5  # original requests per second and replica
    prompt: Course = 500.0
    output: Course = 150.0
    slowdown: Course = 1.0  # of an engine step
    prefill_speed: Course = 10_000.0
    front_end: Course = 0.02
    network: Course = 0.01
    sequences: Course = 64.0
    kv_tokens: float = 12_000.0
    kv_floor: Course = 0.0  # a cache that keeps what is finished: the gauge never shows less
    idle_preemptions: Course = 0.0  # per second, without an effect
    timeout: float = 120.0
    retries: int = 0
    lost: Course = 0.0  # the part of the attempts that never reaches an engine
    refused: Course = 0.0  # the part that is answered 503 at once
    failing: Course = 0.0  # the part that an engine answers with an error
    cancels: bool = False  # the engine drops what its caller has left
    hung: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # replica -> (from, to): no engine step
    deaths: tuple[Death, ...] = ()
    gpu_memory: Course = 0.90
    singles: tuple[tuple[int, float, float], ...] = ()  # one request more: (second, prompt, output)
    only: Mapping[int, Mapping[str, Course]] = field(default_factory=dict)

    def course(self, name: str, replica: int | None = None) -> list[float]:
        """The figure of a course at every second."""
        value: Course = getattr(self, name)
        if replica is not None:
            value = self.only.get(replica, {}).get(name, value)
        if isinstance(value, (int, float)):
            return [float(value)] * (self.seconds + 2)
        since, figures = zip(*value, strict=True)
        return np.asarray(figures)[np.maximum(np.searchsorted(since, np.arange(self.seconds + 2), "right") - 1, 0)].tolist()


@dataclass(eq=False)
class Request:
    """One attempt. `done` once the gateway has an answer or has given up."""

    asked: float
    prompt: float
    output: float
    tries: int = 0
    engine: int = -1
    arrived: float = 0.0
    admitted: float = -1.0
    first_token: float = -1.0
    decodes: bool = False
    begun: float = 0.0  # the engine's token clock when this began to decode
    made: float = 0.0  # tokens before the last preemption
    life: int = 0  # counts preemptions, so that an old finish is known as such
    done: bool = False
    wrong: bool = False


class Engine:
    """One replica's process: a queue, a prefill that takes one at a time, and a batch that decodes together."""

    def __init__(self, site: Site, number: int) -> None:
        self.site, self.number = site, number
        self.course = {name: site.course(name, number) for name in ENGINE_COURSES}
        self.count = dict.fromkeys(REPLICA_COUNTERS, 0.0)
        self.gauges = dict.fromkeys(REPLICA_GAUGES, 0.0)
        self.restart(0.0)

    def restart(self, second: float) -> list[Request]:
        """A new process: its counters begin again. Gives the requests that died with the old one."""
        lost = [*getattr(self, "waiting", ()), *getattr(self, "running", {}).values()]
        self.waiting: deque[Request] = deque()
        self.running: dict[int, Request] = {}  # in the order of admission
        self.prefilling: deque[tuple[float, Request]] = deque()
        self.finishing: list[tuple[float, int, int, Request]] = []
        self.clock = self.free = self.held = self.made = 0.0
        self.serial, self.born = 0, second if second else -WARM_SECONDS
        self.count.update(dict.fromkeys(REPLICA_COUNTERS, 0.0))
        self.gauges.update(dict.fromkeys(REPLICA_GAUGES, 0.0))
        return lost

    def observe(self, mean: str, value: float, times: float = 1.0) -> None:
        self.count[f"{mean}.sum"] += value * times
        self.count[f"{mean}.count"] += times

    def step(self, second: int, arrivals: list[Request]) -> list[tuple[float, Request]]:
        """One second: finishes, prefills, preemptions, admissions. Gives what finished, and when."""
        site, n = self.site, self.number
        hung = site.hung.get(n)
        if hung and hung[0] <= second < hung[1]:
            self.waiting.extend(arrivals)
            return []
        slow = self.course["slowdown"][second] * (WARM if second - self.born < WARM_SECONDS else 1.0)
        if site.cancels:
            self._drop()
        batch = len(self.running) - len(self.prefilling)
        each = (STEP_SECONDS + STEP_PER_SEQUENCE * max(batch, 1)) * slow
        speed = 1.0 / each
        while self.prefilling and self.prefilling[0][0] < second + 1:
            at, request = self.prefilling.popleft()
            self._first_token(at, request, self.clock + speed * (at - second))
        self.clock += speed
        done = self._finish(second, speed)
        self._make_room()
        self._admit(float(second + 1), arrivals, slow)
        made = self.made + self._making() - self.count["generation_tokens"]
        self.count["generation_tokens"] += made
        self.observe("itl", each, made)
        self.count["engine_steps"] += int(speed) if self.running else 0
        extra = self.course["idle_preemptions"][second]
        self.count["preemptions"] += int((second + 1) * extra) - int(second * extra) if extra else 0
        use = (self.held + self._making()) / site.kv_tokens
        self.gauges.update(
            kv_use=min(1.0, max(use, self.course["kv_floor"][second])),
            requests_running=float(len(self.running)), requests_waiting=float(len(self.waiting)),
        )  # fmt: skip
        return done

    def _making(self) -> float:
        """Tokens made so far by the requests that decode, since they began or were taken up again."""
        return sum(self.clock - r.begun for r in self.running.values() if r.decodes)

    def _first_token(self, at: float, request: Request, clock: float) -> None:
        if request.first_token < 0:
            request.first_token = at
            self.observe("ttft", at - request.arrived)
        request.begun, request.decodes = clock, True
        heappush(self.finishing, (clock + request.output - request.made, id(request), request.life, request))

    def _finish(self, second: int, speed: float) -> list[tuple[float, Request]]:
        done = []
        while self.finishing and self.finishing[0][0] <= self.clock:
            end, key, life, request = heappop(self.finishing)
            if life != request.life or key not in self.running:
                continue
            at = second + 1 - (self.clock - end) / speed
            self.made -= self.clock - end
            self._leave(request)
            done.append((at, request))
            self.count["engine_errors" if request.wrong else "requests_finished"] += 1
            self.observe("e2e_latency", at - request.arrived)
            self.observe("queue_time", request.admitted - request.arrived - self.course["front_end"][second])
            self.observe("prefill_time", request.first_token - request.admitted)
            self.observe("prompt_length", request.prompt)
            self.observe("output_length", request.output)
        return done

    def _leave(self, request: Request) -> None:
        del self.running[id(request)]
        self.held -= request.prompt + request.made
        if request.decodes:
            self.made += self.clock - request.begun
            request.made += self.clock - request.begun
        request.decodes = False
        request.life += 1

    def _make_room(self) -> None:
        """Preempt the youngest that decodes until the rest fits; it is computed again later, with what it has made."""
        room = self.site.kv_tokens
        used = self.held + self._making()
        for request in [r for r in reversed(self.running.values()) if r.decodes]:
            if used <= room or len(self.running) <= 1:
                return
            used -= request.prompt + request.made + self.clock - request.begun
            self._leave(request)
            self.waiting.appendleft(request)
            self.count["preemptions"] += 1

    def _admit(self, now: float, arrivals: list[Request], slow: float) -> None:
        self.waiting.extend(arrivals)
        limit, room = self.course["sequences"][int(now)], self.site.kv_tokens * ADMIT
        used = self.held + self._making()
        while self.waiting and len(self.running) < limit:
            request = self.waiting[0]
            need = request.prompt + request.made
            if used + need > room and self.running:
                return
            self.waiting.popleft()
            queued = request.made > 0 or len(self.waiting) + 1 > len(arrivals) or request not in arrivals
            front = self.course["front_end"][int(now)]
            ready = request.arrived + front
            at = max(now, ready) if queued else ready + 0.002
            if request.admitted < 0:
                request.admitted = at
            self.free = max(self.free, at) + slow * need / self.course["prefill_speed"][int(now)]
            self.count["prompt_tokens"] += need
            self.held += need
            used += need
            self.running[id(request)] = request
            self.prefilling.append((self.free, request))

    def _drop(self) -> None:
        """The engine stops what nobody waits for."""
        self.waiting = deque(r for r in self.waiting if not r.done)
        gone = {id(r) for r in self.running.values() if r.done}
        self.prefilling = deque((at, r) for at, r in self.prefilling if id(r) not in gone)
        for request in [r for r in self.running.values() if r.done]:
            self._leave(request)


Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What every exporter would have shown at each second: arrays of shape [replicas, seconds + 1] or [seconds + 1] of the gateway.

    NaN where the process is away; its counters begin again at 0.
    """

    site: Site
    replica: Mapping[str, Array]
    gateway: Mapping[str, Array]


def simulate(site: Site, seed: int = 1) -> Truth:
    """Run the fleet from a warm start."""
    from tests.gateway import Gateway  # the other half of the simulator; it needs the requests of this one

    return Gateway(site, seed).run()

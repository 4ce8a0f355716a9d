"""The other half of the simulated fleet: arrivals, routing, time-outs and retries in front of the engines of `tests.traffic`."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

import numpy as np
from tests.traffic import GATEWAY_COUNTERS, REPLICA_COUNTERS, REPLICA_GAUGES, RETRY_PAUSE, Engine, Request, Site, Truth

STATES = ("up", "container_restarts", "container_oom_killed", "gpu_memory", "gpu_oom_events", "host_memory")


class Gateway:
    """A fleet that runs: round robin over the replicas that are up; each attempt has a deadline, and is tried again after it."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.rng = site, np.random.default_rng(seed)
        self.course = {name: site.course(name) for name in ("prompt", "output", "network", "lost", "refused")}
        self.each = {name: [site.course(name, n) for n in range(site.replicas)] for name in ("rate", "failing", "gpu_memory")}
        self.engines = [Engine(site, n) for n in range(site.replicas)]
        self.count = dict.fromkeys(GATEWAY_COUNTERS, 0.0)
        self.deadlines: list[tuple[float, int, Request]] = []
        self.again: list[tuple[float, int, Request]] = []
        self.order = count()
        self.active = 0
        self.turn = 0
        self.state = {name: np.zeros(site.replicas) for name in STATES}
        self.state["up"][:] = 1.0
        self.state["host_memory"][:] = 0.5

    def run(self) -> Truth:
        """Every second of the site."""
        site, n = self.site, self.site.replicas
        shape = (n, site.seconds + 1)
        replica = {name: np.full(shape, np.nan) for name in (*REPLICA_COUNTERS, *REPLICA_GAUGES, *STATES)}
        gateway = {name: np.zeros(site.seconds + 1) for name in (*GATEWAY_COUNTERS, "gateway_active")}
        for second in range(site.seconds + 1):
            self._deaths(second)
            for i, engine in enumerate(self.engines):
                if self.state["up"][i]:
                    for name in REPLICA_COUNTERS:
                        replica[name][i, second] = engine.count[name]
                    for name in REPLICA_GAUGES:
                        replica[name][i, second] = engine.gauges[name]
                self.state["gpu_memory"][i] = self.each["gpu_memory"][i][second] if self.state["up"][i] else 0.02
                for name in STATES:
                    replica[name][i, second] = self.state[name][i]
            for name in GATEWAY_COUNTERS:
                gateway[name][second] = self.count[name]
            gateway["gateway_active"][second] = self.active
            self._second(second)
        return Truth(site, replica, gateway)

    def _deaths(self, second: int) -> None:
        for death in self.site.deaths:
            i = death.replica
            if second == death.at:
                self.state["up"][i] = 0.0
                self.state["container_restarts"][i] += 1
                self.state["gpu_oom_events"][i] += death.oom_event
                self.state["container_oom_killed"][i] = float(death.oom_killed)
                for request in self.engines[i].restart(float(second)):
                    self._answer(float(second), request, wrong=True)
            if second == death.at + death.away:
                self.engines[i].restart(float(second))
                self.state["up"][i] = 1.0

    def _second(self, second: int) -> None:
        site = self.site
        arrivals: list[list[Request]] = [[] for _ in self.engines]
        fresh = self.rng.poisson(sum(rate[second] for rate in self.each["rate"]))
        times = np.sort(self.rng.random(fresh)) + second
        sizes = self.rng.lognormal(-0.08, 0.4, (fresh, 2))
        attempts = [
            Request(float(t), self.course["prompt"][second] * float(a), max(2.0, self.course["output"][second] * float(b)))
            for t, (a, b) in zip(times, sizes, strict=True)
        ]
        attempts += [Request(second + 0.5, prompt, output) for at, prompt, output in site.singles if at == second]
        while self.again and self.again[0][0] < second + 1:
            attempts.append(heappop(self.again)[2])
        up = [i for i in range(site.replicas) if self.state["up"][i]]
        for request in attempts:
            self.count["gateway_attempts"] += 1
            self.active += 1
            chance = float(self.rng.random())
            heappush(self.deadlines, (request.asked + site.timeout, next(self.order), request))
            if chance < self.course["refused"][second] or not up:
                self._answer(request.asked + 0.005, request, wrong=True)
            elif chance >= self.course["refused"][second] + self.course["lost"][second]:
                self.turn += 1
                request.engine = up[self.turn % len(up)]
                request.arrived = request.asked + self.course["network"][second] / 2
                request.wrong = float(self.rng.random()) < self.each["failing"][request.engine][second]
                arrivals[request.engine].append(request)
        for i in up:
            for at, request in self.engines[i].step(second, arrivals[i]):
                self._finished(at, request)
        while self.deadlines and self.deadlines[0][0] < second + 1:
            at, _, request = heappop(self.deadlines)
            if not request.done:
                self.count["gateway_timeouts"] += 1
                self._answer(at, request, wrong=True)

    def _finished(self, at: float, request: Request) -> None:
        if request.done:
            return  # nobody waits for it any more
        way = self.course["network"][int(at)]
        self.count["gateway_ttft.sum"] += request.first_token + way / 2 - request.asked
        self.count["gateway_ttft.count"] += 1
        self._answer(at + way / 2, request, wrong=request.wrong, retry=False)

    def _answer(self, at: float, request: Request, *, wrong: bool, retry: bool = True) -> None:
        if request.done:
            return
        request.done = True
        self.active -= 1
        self.count["gateway_responses"] += 1
        self.count["gateway_errors"] += wrong
        self.count["gateway_duration.sum"] += at - request.asked
        self.count["gateway_duration.count"] += 1
        if wrong and retry and request.tries < self.site.retries:
            self.count["gateway_retries"] += 1
            more = Request(at + RETRY_PAUSE, request.prompt, request.output, tries=request.tries + 1)
            heappush(self.again, (more.asked, next(self.order), more))

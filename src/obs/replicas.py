"""Which engine process a row is about: rows of engines make the replicas, rows of everything else are tied to them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from obs.combined import both
from obs.plan import Ask, node, scraped_as
from obs.series import Array
from obs.signals import Replica
from obs.vocabulary import vocabularies


@dataclass(frozen=True)
class Row:
    """One series of an answer, with what its labels say."""

    ask: Ask
    values: Array
    labels: Mapping[str, str]
    namespace: str
    pod: str
    instance: str
    job: str
    model: str
    rank: str
    process: str = ""
    pool: str = ""
    cluster: str = ""  # a label of the site's own: where one source holds several clusters, names come twice

    @property
    def node(self) -> str:
        """What names the process: its own label where several stand behind one target, else the pod, else the instance."""
        return self.process or self.pod or self.instance or self.job


@dataclass
class Seat:
    """A replica with the labels that rows are tied to it by."""

    replica: Replica
    node: str
    pod: str
    rank: str
    cluster: str = ""
    targets: set[tuple[str, str]] = field(default_factory=set)  # (job, instance)


def row(ask: Ask, labels: Mapping[str, str], values: Array) -> Row:
    """Reads a row's labels as its vocabulary names them: the first one that is set counts."""
    named = ask.vocabulary.labels

    def first(names: Sequence[str]) -> str:
        return next((labels[name] for name in names if labels.get(name)), "")

    named_as = (named.namespace, named.pod, named.instance, named.job, named.model, named.rank, named.process, named.pool, ("cluster",))
    return Row(ask, values, labels, *(first(names) for names in named_as))


def once(rows: Sequence[Row]) -> list[Row]:
    """A target that several jobs scrape says each thing once, or its rates would double. Where one job ends its rate fades, so the larger
    figure counts. Only engines and gateways: `up` is each job's own."""
    found: dict[tuple[object, ...], Row] = {}
    for number, r in enumerate(rows):
        same: object = number
        if r.instance and r.ask.vocabulary.role in ("engine", "gateway"):
            jobs = scraped_as(r.ask.vocabulary)
            same = frozenset(item for item in r.labels.items() if item[0] not in jobs)
        known = found.get((r.ask.query.key, same))
        found[r.ask.query.key, same] = r if known is None else replace(known, values=both(known.values, r.values, "max"))
    return list(found.values())


def scraped_twice(rows: Sequence[Row]) -> frozenset[str]:
    """The vocabularies of which several jobs scrape one target: what is summed up by the source would double."""
    told, left = (Counter(r.ask.vocabulary.id for r in each) for each in (rows, once(rows)))
    return frozenset(system for system, count in told.items() if count > left[system])


def seats(rows: Iterable[Row]) -> list[Seat]:
    """One seat for each engine process. Series without the model or rank that others of the same process carry make none of their own,
    nor does a layer around an engine that shows itself."""
    processes: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for r in rows:
        if r.ask.vocabulary.role == "engine" and not r.ask.candidate.own and np.isfinite(r.values).any():  # a rule's series is no process
            processes[r.ask.vocabulary.id, r.namespace, r.node].append(r)
    layers = _inside(processes)
    clash = _clash((namespace, name) for _, namespace, name in processes)
    found = []
    for (system, namespace, name), members in sorted(processes.items(), key=lambda item: (item[0][1], item[0][2], item[0][0])):
        models = sorted({r.model for r in members if r.model}) or [""]
        ranks = sorted({r.rank for r in members if r.rank}, key=lambda rank: (len(rank), rank)) or [""]
        clusters = sorted({r.cluster for r in members if r.cluster}) or [""]
        there = {(r.model or models[0], r.rank or ranks[0], r.cluster or clusters[0]) for r in members}
        for model, rank, cluster in product(models, ranks, clusters):
            if (model, rank, cluster) in there:
                shown = f"{cluster}/" if len(clusters) > 1 else ""
                shown += f"{namespace}/{name}" if name in clash else name
                shown += f"/{rank}" if len(ranks) > 1 else ""
                shown += f" {model}" if len(models) > 1 else ""
                own = [r for r in members if r.cluster in ("", cluster)]
                targets = {(r.job, r.instance) for r in (*own, *layers.get((namespace, name), ())) if r.instance}
                pod = next((r.pod for r in own if r.pod), "")
                part = next((r.pool for r in own if r.pool), "")
                found.append(Seat(Replica(shown, namespace, model, system, pool=part), name, pod, rank, cluster, targets))
    return found


def _inside(processes: dict[tuple[str, str, str], list[Row]]) -> dict[tuple[str, str], list[Row]]:
    """Takes out the layers around engines that show themselves; gives their rows by (namespace, node)."""
    layers: dict[tuple[str, str], list[Row]] = {}
    for key in [key for key, members in processes.items() if members[0].ask.vocabulary.wraps]:
        others = (members for other, members in processes.items() if other[1:] == key[1:] and other != key)
        if any(not members[0].ask.vocabulary.wraps for members in others):
            layers.setdefault(key[1:], []).extend(processes.pop(key))
    return layers


def _clash(nodes: Iterable[tuple[str, str]]) -> set[str]:
    """Pod names that several namespaces have (vllm-0 of two StatefulSets)."""
    where: dict[str, set[str]] = defaultdict(set)
    for namespace, name in nodes:
        where[name].add(namespace)
    return {name for name, namespaces in where.items() if len(namespaces) > 1}


def wanted(found: Sequence[Seat], names: Sequence[str]) -> list[Seat]:
    """The seats that a scope names: by the replica's name, its pod or its address. A name that one replica has means that one alone."""
    words = set(names)
    nodes = {node(name) for name in words - {s.replica.name for s in found} if not name.rpartition("/")[2].isdigit()}
    return [s for s in found if s.replica.name in words or s.node in nodes or any(instance in words for _, instance in s.targets)]


class Seating:
    """The seats of a view, in the order of the replicas, and which of them a row is about."""

    def __init__(self, found: Sequence[Seat]) -> None:
        self.seats = list(found)
        self._by: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for i, s in enumerate(self.seats):
            self._by["engine", s.replica.system, s.replica.namespace, s.node].append(i)
            self._by["place", s.replica.namespace, s.node].append(i)
            if s.pod:
                self._by["pod", s.pod].append(i)
            for job, instance in s.targets:
                self._by["target", job, instance].append(i)
                if not s.pod:
                    self._by["host", _host(instance)].append(i)

    def tied(self, r: Row) -> list[int]:
        """The seats that a row is about, by number. Several where a figure is a whole pod's."""
        role = r.ask.vocabulary.role
        if role == "engine":
            process = self._by.get(("engine", r.ask.vocabulary.id, r.namespace, r.node), ())
            if r.ask.vocabulary.wraps and not process:
                return [i for i in self._by.get(("place", r.namespace, r.node), ()) if self._same_place(r, i)]
            own = (i for i in process if self._same_place(r, i))
            return [i for i in own if r.model in ("", self.seats[i].replica.model) and r.rank in ("", self.seats[i].rank)]
        pods = [i for i in self._by.get(("pod", r.pod), ()) if r.pod and self._same_place(r, i)]
        if role == "target":
            exact = [i for i in self._by.get(("target", r.job, r.instance), ()) if self._same_place(r, i)]
            return exact or [i for i in pods if not self.seats[i].targets]
        if pods or not r.ask.vocabulary.labels.host:
            return pods
        hosts = {r.labels.get(label, "") for label in r.ask.vocabulary.labels.host} | {_host(r.instance)}
        return sorted({i for host in hosts if host for i in self._by.get(("host", host), ()) if self._same_place(r, i)})

    def ranks(self, r: Row) -> int:
        """How many ranks the engine process of this row has, 1 at least."""
        process = self._by.get(("engine", r.ask.vocabulary.id, r.namespace, r.node), ())
        return max(1, len({self.seats[i].rank for i in process}))

    def _same_place(self, r: Row, seat: int) -> bool:
        """Whether nothing says that a row is of another namespace or cluster."""
        own = self.seats[seat]
        return r.namespace in ("", own.replica.namespace or r.namespace) and r.cluster in ("", own.cluster or r.cluster)


def _host(instance: str) -> str:
    return re.sub(r":\d+$", "", instance)


def dead_targets(ups: Sequence[Row], seating: Seating) -> list[Seat]:
    """Targets that left only `up`: of a job whose living targets are all engines; where no engine is left, of a job called like one."""
    found = seating.seats
    loose = [r for r in ups if not seating.tied(r)]
    living_others = {r.job for r in loose if np.nanmax(r.values, initial=0.0) > 0}
    jobs = {job: s.replica.system for s in found for job, _ in s.targets if job and job not in living_others}
    extra: dict[tuple[str, str, str], Seat] = {}
    for r in loose:
        system = jobs.get(r.job) or next((v.id for v in vocabularies() if not found and v.job_hint and re.search(v.job_hint, r.job)), None)
        if system and np.isfinite(r.values).any():
            own = Seat(Replica(r.node, r.namespace, "", system), r.node, r.pod, "", r.cluster)
            seat = extra.setdefault((r.namespace, r.node, r.cluster), own)
            seat.targets.add((r.job, r.instance))
    return list(extra.values())


def pods_that_died(rows: Sequence[Row]) -> list[Seat]:
    """Where no engine ever showed itself: pods that a log names for a GPU OOM, and pods with a GPU that restarted."""
    with_gpu = {(r.namespace, r.pod) for r in rows if r.ask.signal == "gpu_memory" and r.pod}
    found: dict[tuple[str, str], Seat] = {}
    for r in rows:
        place = (r.namespace, r.pod)
        event = r.ask.signal == "gpu_oom_events" or (r.ask.signal == "container_restarts" and place in with_gpu)
        if r.pod and event and np.nanmax(r.values, initial=0.0) > 0:
            found.setdefault(place, Seat(Replica(r.pod, r.namespace, "", ""), r.pod, r.pod, ""))
    return list(found.values())

"""Incidents as data: what happens to the simulated fleet, and the verdict that a careful person would give. What is no row comes first.

The fleet's second 0 is the beginning of what Prometheus holds, the window is 1500 to 4500, and the trouble begins at 2700.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tests.scrapes import Scraping, read
from tests.traffic import Death, Site, Truth, simulate

from obs.signals import SIGNALS, Readings
from obs.verdict import ROW_IDS

OOM, LATENCY, FIRST, LOAD = ROW_IDS
TROUBLE = 2700
VIEW = Scraping(start=1500, end=4500)
GATEWAY = frozenset(signal for signal in SIGNALS if signal.startswith("gateway_"))
ENVOY_ONLY = frozenset({"gateway_ttft"})


@dataclass(frozen=True)
class Incident:
    """One incident. A row that is not named is `clear`; several words separated by `|` are all right."""

    name: str
    site: Site
    how: Scraping = VIEW
    primary: str = "none"
    now: str = "none"
    rows: Mapping[str, str] = field(default_factory=dict)
    stage: str | None = None
    onset: float = TROUBLE
    ends: float | None = None
    replicas: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    may_find: tuple[str, ...] = ()
    follows: Mapping[str, str] = field(default_factory=dict)


def _site(**courses: object) -> Site:
    return Site(**{"replicas": 2, "seconds": 4500, **courses})  # type: ignore[arg-type]


def _from(before: float, after: float, until: float | None = None) -> tuple[tuple[float, float], ...]:
    """`before`, and from the trouble on `after`."""
    return ((0, before), (TROUBLE, after), *(((until, before),) if until else ()))


CROWD = _site(rate=_from(1.5, 6.5), prompt=250.0, output=250.0)  # more than the KV pool holds
STORM = _site(rate=3.0, timeout=10.0, retries=2, slowdown=_from(1.0, 3.0, TROUBLE + 180))

INCIDENTS = (
    # nothing of the table
    Incident("a healthy hour", _site()),
    Incident("a healthy hour without a gateway", _site(), Scraping(start=1500, end=4500, without=GATEWAY),
             rows={LOAD: "unknown", FIRST: "unknown"}),
    Incident("a full cache that does its job", _site(kv_floor=0.96)),
    Incident("preemptions without latency", _site(idle_preemptions=_from(0.0, 0.2)), rows={LATENCY: "suspected"}),
    Incident("latency without pressure", _site(rate=0.5, slowdown=_from(1.0, 3.0)), rows={LATENCY: "suspected"}),
    Incident(
        "latency with errors", _site(rate=_from(1.5, 6.5), failing=_from(0.0, 0.3), timeout=3600.0),
        primary=FIRST, now=FIRST, rows={FIRST: "applies", LATENCY: "clear|suspected"}, stage="queue",
    ),
    Incident("time-outs without retries", _site(timeout=20.0, lost=_from(0.0, 0.08))),
    Incident("retries without time-outs", _site(retries=2, refused=_from(0.0, 0.15)), rows={LOAD: "suspected"}),
    Incident("callers who leave long answers", _site(timeout=3.0, output=_from(60.0, 300.0), cancels=True),
             rows={LATENCY: "suspected|clear"}, findings=("abandoned_work",)),
    Incident("a bare restart", _site(deaths=(Death(1, TROUBLE),)), findings=("restarted",), may_find=("scrape_failing",)),
    Incident("a deploy, one replica after another", _site(replicas=3, deaths=tuple(Death(n, TROUBLE + 300 * n, 40) for n in range(3))),
             findings=("restarted",), may_find=("scrape_failing",)),
    Incident("killed for host memory", _site(deaths=(Death(1, TROUBLE, oom_killed=True),), gpu_memory=((0, 0.9), (2400, 0.985))),
             findings=("host_oom", "restarted"), may_find=("scrape_failing",)),
    Incident(
        "a death with full GPU memory and no counter", _site(deaths=(Death(1, TROUBLE),), gpu_memory=((0, 0.9), (2400, 0.985))),
        Scraping(start=1500, end=4500, without=frozenset({"gpu_oom_events"})), rows={OOM: "suspected"},
        findings=("restarted",), may_find=("scrape_failing",),
    ),
    Incident("a hung engine with frozen gauges", _site(hung={0: (TROUBLE, 4600)}), primary="none|insufficient", now="none|insufficient",
             rows={LATENCY: "unknown", FIRST: "unknown"}, findings=("engine_stalled", "stale_gauges")),
    Incident("no traffic", _site(rate=_from(1.5, 0.0)), now="none|insufficient", findings=("no_traffic",)),
    Incident("scrapes that fail everywhere", _site(), Scraping(start=1500, end=4500, down={0: (3300, 4600), 1: (3300, 4600)}),
             primary="insufficient", now="insufficient", rows={LATENCY: "unknown", FIRST: "unknown"}, findings=("scrape_failing",)),
    Incident("series that vanish", _site(), Scraping(start=1500, end=4500, gone={"ttft": 3300, "queue_time": 3300}),
             primary="insufficient", now="insufficient", rows={LATENCY: "unknown", FIRST: "unknown"}, findings=("series_vanished",)),
    # out of memory
    Incident("a GPU out-of-memory event", _site(deaths=(Death(1, TROUBLE, oom_event=True),), gpu_memory=((0, 0.9), (2500, 0.985))),
             primary=OOM, rows={OOM: "applies"}, replicas=("vllm-1",), may_find=("restarted", "scrape_failing")),
    # latency
    Incident("more than the KV pool holds", CROWD, primary=LATENCY, now=LATENCY, rows={LATENCY: "applies", FIRST: "applies"}, stage="queue",
             follows={FIRST: LATENCY}),
    Incident("more than the KV pool holds, without a gateway", CROWD, Scraping(start=1500, end=4500, without=GATEWAY), primary=LATENCY,
             now=LATENCY, rows={LATENCY: "applies", FIRST: "applies", LOAD: "unknown"}, stage="queue"),
    Incident("one bad replica of four", _site(replicas=4, rate=1.0, only={2: {"slowdown": _from(1.0, 10.0)}}), primary=LATENCY, now=LATENCY,
             rows={LATENCY: "applies", FIRST: "applies|suspected|clear"}, replicas=("vllm-2",), findings=("replica_imbalance",)),
    Incident("a crowd that goes again", _site(rate=_from(1.5, 6.5, TROUBLE + 240)), primary=LATENCY, ends=TROUBLE + 270,
             rows={LATENCY: "applies", FIRST: "applies"}, stage="queue"),
    Incident("trouble from the first minute without history", _site(rate=6.5, output=250.0), Scraping(since=0, start=0, end=3000),
             primary=LATENCY, now=LATENCY, rows={LATENCY: "applies", FIRST: "applies"}, onset=30, stage="queue"),
    # the first token
    Incident("a queue with low KV use", _site(sequences=_from(64, 3)), primary=FIRST, now=FIRST,
             rows={FIRST: "applies", LATENCY: "applies|suspected|clear"}, stage="queue"),
    Incident("a slow prefill", _site(prefill_speed=_from(10_000, 1200)), primary=FIRST, now=FIRST,
             rows={FIRST: "applies"}, stage="prefill"),
    Incident("a slow front end", _site(front_end=_from(0.02, 0.9)), primary=FIRST, now=FIRST,
             rows={FIRST: "applies"}, stage="tokenization"),
    Incident("a slow network", _site(network=_from(0.01, 1.2)), primary=FIRST, now=FIRST, rows={FIRST: "applies"}, stage="network"),
    Incident("a slow network that only request times show", _site(network=_from(0.01, 1.5)),
             Scraping(start=1500, end=4500, without=ENVOY_ONLY), primary=FIRST, now=FIRST, rows={FIRST: "applies"}, stage="network"),
    # retries
    Incident("a retry storm", STORM, primary=LOAD, now=LOAD, rows={LOAD: "applies", LATENCY: "applies", FIRST: "applies|suspected"},
             onset=TROUBLE + 40, may_find=("abandoned_work",), follows={LATENCY: LOAD, FIRST: LOAD}),
    Incident("a full KV pool ten minutes before the retries",
             _site(rate=_from(1.5, 5.0), prompt=250.0, output=250.0, timeout=125.0, retries=2), primary=LATENCY, now=LATENCY,
             rows={LATENCY: "applies", FIRST: "applies", LOAD: "applies"}, may_find=("abandoned_work",),
             follows={FIRST: LATENCY, LOAD: LATENCY}),
)  # fmt: skip
BY_NAME = {incident.name: incident for incident in INCIDENTS}


@lru_cache(maxsize=64)
def _made(name: str, seed: int) -> Truth:
    return simulate(BY_NAME[name].site, seed)


def truth(name: str, seed: int = 1) -> Truth:
    """The simulated fleet of an incident; made once."""
    return _made(name, seed)


def readings(name: str, seed: int = 1) -> Readings:
    """What the incident looks like at a scrape of 15 s."""
    return read(truth(name, seed), BY_NAME[name].how)

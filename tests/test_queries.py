"""Every PromQL that goes over the wire: a real Prometheus parses and runs it, and it names nothing that no vocabulary knows."""

import re

import pytest
from tests.expositions import FOLDER, HOUR, NAMES, exposition, put, samples
from tests.recordings import T0, Recording
from tests.standins import Plain, before

from obs import promql
from obs.api import packed
from obs.collect import collect, scope_values
from obs.config import Settings, SourceSettings
from obs.configuration import VERSIONS
from obs.errors import SourceError
from obs.history import ALERTS, history, info_metrics
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.source import Query
from obs.vocabulary import vocabularies
from obs.window import Window

WORDS = {"by", "on", "ignoring", "without", "unless", "and", "or", "bool", "inf", "nan", "le"}


class Wire(Plain):
    """Passes everything on, and keeps each query; `ran` counts those that gave a result."""

    def __init__(self):
        self.queries, self.ran, self.warned = [], 0, []

    def asked(self, query):
        self.queries.append(query)
        return query

    def answered(self, body):
        self.ran += "resultType" in (body["data"] if isinstance(body["data"], dict) else {})
        self.warned += body.get("warnings", ())
        return body


def everything():
    """All systems, what stands under them, alerts and the labels of versions."""
    recording = Recording(seconds=HOUR, scrape=30)
    for system in NAMES:
        put(recording, system)
    for path in (FOLDER / "hardware").glob("*.prom"):
        target = {"job": path.stem, "namespace": "vllm-0.33", "pod": "vllm-0.33-0", "instance": "10.0.0.1:9400"}
        put(recording, path.stem, target, path.read_text("utf-8"))
    for system in NAMES:
        recording.put("up", {"job": system, "namespace": system, "pod": f"{system}-0", "instance": f"{system}-0:9000"}, 1.0)
    recording.put(ALERTS, {"alertname": "Slow", "alertstate": "firing", "namespace": "vllm-0.33"}, 1.0)
    return recording


@pytest.fixture(scope="module")
def wire(served):
    """All that a page, a link, a report, a bundle, the bar and a week ask, with every system there; and what came back."""
    seen = Wire()
    with before(served(everything()), seen) as url:
        source = Prometheus(SourceSettings(url=url, name="wire"))
        hour, week = Window(T0 + 1200, T0 + HOUR), Window(T0 + HOUR - 7 * 86400, T0 + HOUR)
        readings = collect(source, hour, {})
        history(source, readings, {})
        collect(source, hour, {"namespace": ('a"b', "c|d"), "model": ("llama",), "replica": ("vllm-0.33-0",), "cluster": ("x",)})
        history(source, collect(source, week, {}), {})
        scope_values(source, hour)
        packed(source, hour, {}, Settings())
    return seen


def names(query):
    """The metric names of a query: what stands before braces, or alone with a range; label values and grouped labels are none."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
    bare = re.sub(r"\b(by|on|ignoring|without)\s*\([^()]*\)", "", bare)
    return set(re.findall(r"([a-zA-Z_:][\w:]*)\s*(?=[{\[])", bare)) - WORDS


def test_every_query_that_is_sent_runs(wire):
    assert len(set(wire.queries)) > 150
    assert (wire.ran, wire.warned) == (len(wire.queries), [])
    assert max(map(len, wire.queries)) < 200_000


def test_a_query_names_no_metric_that_no_vocabulary_knows(wire):
    plain = str.maketrans(":", "_")
    known = {name.translate(plain) for v in vocabularies() for name in v.names()}
    known |= {f"{name.removesuffix('_sum')}_bucket" for name in known if name.endswith("_sum")}
    candidates = [c for v in vocabularies() for n in v.signals.values() for c in n.candidates]
    known |= {name.translate(plain) for c in candidates for name in names(f"{c.expr} {c.count}")}
    known |= {c.metric.translate(plain) for c in candidates}
    found = {name for query in wire.queries for name in names(query)}
    assert len(found) > 300
    unknown = {name for name in found if name.translate(plain) not in known}
    assert sorted(unknown - {ALERTS, *VERSIONS}) == sorted(info_metrics(unknown))  # labels that tell versions and configuration


def test_an_expression_names_what_a_system_shows():
    texts = [*(exposition(name) for name in NAMES), *(path.read_text("utf-8") for path in (FOLDER / "hardware").glob("*.prom"))]
    shown = {sample[0] for text in texts for sample in samples(text)}
    exporters = [v for v in vocabularies() if v.role != "target"]  # the client library's own names stand in no system's text
    written = {name for v in exporters for n in v.signals.values() for c in n.candidates for name in names(f"{c.expr} {c.count}")}
    assert len(written) > 30
    assert sorted(written - shown) == []


def test_a_query_that_does_not_parse_is_seen_here(wire, served):
    """So that the first of these tests cannot pass by chance."""
    with before(served(Recording(seconds=60).vllm("a")), seen := Wire()) as url:
        source = Prometheus(SourceSettings(url=url, name="wire"))
        try:
            refused = source.answer([Query("x", "sum by (pod (up)")], Grid(T0, 15, 2))[0].refused
        except SourceError as error:
            refused = error.says
    assert refused is not None
    assert names('sum by (pod) (rate(vllm:x{a="b{c}"}[5m])) or up[1m]') == {"vllm:x", "up"}
    assert seen.queries == ["sum by (pod (up)"]
    assert promql.duration(60) == "60s"

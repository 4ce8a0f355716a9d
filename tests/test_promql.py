"""Label values from outside reach PromQL whole and as nothing else; a real Prometheus is the judge."""

import pytest
from tests.recordings import T0, Recording

from obs import promql
from obs.errors import CallError
from obs.series import Grid
from obs.source import Query

HOSTILE = (
    'a"} or up{x="',
    "a\nb",
    "back\\slash",
    "<script>alert(1)</script>",
    "$sel and ${by} and {hole}",
    "a.b|c*d+e?f(g)h[i]j{k}l^m$n",
    "tab\tand\rreturn",
    " blank ends ",
    "Zürich 東京 🚀",
    "x" * 10_000,
    "#!~-_/&%",
)


@pytest.fixture
def source(recorded):
    recording = Recording(seconds=60)
    for i, value in enumerate(HOSTILE):
        recording.put("thing", {"name": value, "i": str(i)}, float(i))
    return recorded(recording.put("thing", {"name": "axb", "i": "plain"}, -1.0))


def asked(source, matcher):
    answer = source.answer([Query("thing", f"thing{{{matcher}}}")], Grid(T0, 15, 2))[0]
    assert answer.refused is None
    return {labels["i"] for labels in answer.labels}


def test_each_hostile_value_selects_its_own_series_and_no_other(source):
    for i, value in enumerate(HOSTILE):
        assert asked(source, promql.matcher("name", [value])) == {str(i)}, value[:40]


def test_any_of_several_hostile_values_selects_exactly_these(source):
    for i in range(len(HOSTILE) - 1):
        assert asked(source, promql.matcher("name", HOSTILE[i : i + 2])) == {str(i), str(i + 1)}


def test_a_regular_expression_is_taken_for_a_name(source):
    assert asked(source, promql.matcher("name", [".*"])) == set()
    assert asked(source, promql.matcher("name", [".*", "a.b"])) == set()


@pytest.mark.parametrize("value", ["\ud800", "a\x00", "\x00"])
def test_a_value_that_cannot_be_sent_is_refused(value):
    with pytest.raises(CallError):
        promql.matcher("name", ["good", value])


@pytest.mark.parametrize("name", ["", "a-b", "1a", 'a"}', "a b", "__name__", "é", "a\n"])
def test_a_label_that_is_no_label_name_is_refused_with_a_sentence(name):
    with pytest.raises(CallError, match="is not a label name"):
        promql.matcher(name, ["x"])


def test_what_is_filled_in_is_not_read_as_a_template_again():
    assert promql.fill("m{$sel}[$rate]", sel='a="$rate"', rate="60s") == 'm{a="$rate"}[60s]'


@pytest.mark.parametrize(("seconds", "text"), [(15, "15s"), (90, "90s"), (1.5, "1500ms"), (3600, "3600s"), (0, "1ms")])
def test_a_duration_is_exact(seconds, text):
    assert promql.duration(seconds) == text

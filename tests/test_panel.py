"""What a chart is given: which lines, which points, which colour, which file; and where a drag leads."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from obs.config import Settings
from obs.course import Course
from obs.links import View
from obs.palette import COLORS, dashes, replica_colors
from obs.strokes import thinned
from obs.ui import address, answer, panel, take, zoom
from obs.ui.plot import LINES, Plot, Rule, plotted
from obs.ui.reader import Reader
from obs.verdict import Episode

NAN = float("nan")
PODS = tuple(f"pod-{i}" for i in range(50))


def a_plot(values, **more):
    values = np.atleast_2d(np.asarray(values, float))
    times = 1_800_000_000.0 + np.arange(values.shape[1]) * 15.0
    names = tuple(f"pod-{i}" for i in range(len(values)))
    return Plot(times[0], times[-1], times, names, values, COLORS[: len(values)], "ratio", **more)


# ---------------------------------------------------------------- points and lines


def test_thinning_loses_no_peak_and_invents_no_value():
    values = np.full((1, 1000), NAN)
    values[0, 100:200] = 0.1
    values[0, 150] = 0.9
    times, shown = thinned(np.arange(1000.0), values, 100)
    assert shown.shape == (1, 100)
    assert np.nanmax(shown) == 0.9
    assert np.isnan(shown[0, :10]).all()
    assert np.isnan(shown[0, 20:]).all()
    assert times[10] == 100


def test_where_the_lowest_is_the_worst_it_is_kept():
    values = np.ones((1, 1000))
    values[0, 500] = 0.2
    assert thinned(np.arange(1000.0), values, 100, low=True)[1].min() == 0.2
    assert thinned(np.arange(1000.0), values, 100)[1].min() == 1.0


def test_parts_of_a_whole_still_add_up_when_they_are_thinned():
    parts = np.random.default_rng(1).random((3, 1000))
    parts[:, 500:510] = np.nan
    shown = thinned(np.arange(1000.0), parts, 100, whole=True)[1]
    sums = parts.sum(axis=0).reshape(100, 10)
    assert shown.sum(axis=0)[:50].tolist() == pytest.approx(sums.max(axis=1)[:50].tolist())  # the peak of each stretch, and no more
    assert np.isnan(shown[:, 50]).all()  # a gap stays one


def test_of_fifty_replicas_the_worst_eight_are_lines():
    values = np.tile(np.linspace(0, 1, 50)[:, None], (1, 20))
    values[3, 10] = 5.0
    values[4] = NAN
    drawn, rest = panel.chosen(Course(PODS, values), slice(None))
    assert drawn == [3, 49, 48, 47, 46, 45, 44, 43]
    assert len(rest) == 42
    assert panel.chosen(Course(PODS, values), slice(None), low=True)[0][0] == 0


def test_a_chart_of_fifty_replicas_and_a_day_stays_within_its_rows():
    at, shown = thinned(np.arange(5760.0), np.random.default_rng(1).random((LINES, 5760)), 1600 // 9)
    frame, _spec = plotted(Plot(0, 86400, at, PODS[:LINES], shown, COLORS, "ratio", low=shown[0], high=shown[1]), Reader())
    assert len(frame) <= 1610


def test_a_gap_stays_a_gap_and_a_point_alone_is_a_dot():
    frame, _spec = plotted(a_plot([0.1, NAN, 0.5, NAN, 0.2, 0.2]), Reader())
    lines = frame[frame.kind == "line"]
    assert lines.value.isna().tolist() == [False, True, False, True, False, False]
    assert frame[frame.kind == "lone"].value.tolist() == pytest.approx([0.1, 0.5])


@pytest.mark.parametrize(("share", "kind"), [(0.2, "onset"), (0.9, "late")])
def test_the_words_of_the_onset_stand_over_the_chart_and_within_its_width(share, kind):
    plot = a_plot([0.1] * 10)
    frame, spec = plotted(replace(plot, onset=plot.start + share * (plot.end - plot.start)), Reader())
    assert frame[frame.words.notna()].kind.tolist() == [kind]
    words = next(layer for layer in spec["layer"] if kind in str(layer.get("transform")) and layer["mark"]["type"] == "text")
    assert words["mark"]["align"] == {"onset": "left", "late": "right"}[kind]
    assert (words["encoding"]["y"], words["mark"]["dy"]) == ({"value": 0}, -8)


def test_thresholds_episodes_and_onset_are_drawn_within_the_window_only():
    start = 1_800_000_000.0
    late = Episode(start - 600, None, ("pod-0",))
    frame, _spec = plotted(a_plot([0.1] * 10, rules=(Rule(0.9, "threshold 90 %"),), episodes=(late,), onset=start - 600), Reader())
    assert "onset" not in set(frame.kind)
    assert frame[frame.kind == "threshold"].value.tolist() == [0.9]
    assert frame[frame.kind == "episode"]["at"].tolist() == [datetime.fromtimestamp(start + by, UTC) for by in (0, 135)]


def test_hostile_names_are_titles_and_never_fields():
    name = "datum['x'].__proto__ <b>"
    plot = a_plot([0.1, 0.2])
    _frame, spec = plotted(Plot(plot.start, plot.end, plot.times, (name,), plot.values, COLORS[:1], "ratio"), Reader())
    tips = [tip for layer in spec["layer"] for tip in layer["encoding"].get("tooltip") or ()]
    assert [(tip["field"], tip["title"]) for tip in tips] == [("clock", "Time"), ("wl0", name)]
    assert str(spec).count("__proto__") == 1


# ---------------------------------------------------------------- colours


def test_a_replica_keeps_its_colour_when_others_come_and_go():
    many = replica_colors(PODS)
    mixed = ("prefill-a", "decode-b", "x", "llama-0", "qwen", "host:8000", "10.0.0.7", "m")
    assert len({replica_colors([name])[name] for name in mixed}) < 8  # some would share one
    assert len(set(replica_colors(mixed).values())) == 8  # up to eight, none twice
    assert replica_colors(mixed[::-1]) == replica_colors(mixed)  # in whatever order they come
    assert all(many[name] == replica_colors([name])[name] for name in PODS)


def test_lines_of_one_colour_have_different_dashes():
    assert len({*zip(["a", "a", "b", "a"], dashes(["a", "a", "b", "a"]), strict=True)}) == 4


# ---------------------------------------------------------------- away from the chart


def test_the_csv_has_what_is_drawn_and_an_empty_field_where_there_is_none():
    text = take.written(a_plot([[0.25, NAN], [0.5, 1.0]]))
    assert text == "time,pod-0 [ratio],pod-1 [ratio]\n2027-01-15T08:00:00Z,0.25,0.5\n2027-01-15T08:00:15Z,,1\n"


def test_a_name_is_no_formula_in_a_spreadsheet():
    plot = a_plot([0.25])
    text = take.written(Plot(plot.start, plot.end, plot.times, ('=cmd|"x"',), plot.values, COLORS[:1], "count"))
    assert text.splitlines()[0].startswith("time,\"'=cmd")


def test_the_way_to_prometheus_has_the_expression_and_the_window():
    link = take.graph_link("http://prometheus:9090", 'up{pod="a&b"}', 1_800_000_000, 1_800_003_600)
    assert link == (
        "http://prometheus:9090/graph?g0.expr=up%7Bpod%3D%22a%26b%22%7D&g0.tab=0&g0.range_input=3600s"
        "&g0.end_input=2027-01-15%2009%3A00%3A00"
    )


class _State:
    def __init__(self, brush):
        self.selection = type("Selection", (), {"brush": brush})()


@pytest.fixture
def gone(monkeypatch):
    """The views that were gone to."""
    views = []
    monkeypatch.setattr(address, "go", views.append)
    return views


def test_a_drag_is_read_on_the_readers_clock(gone):
    """17:02:24 on Tokyo's clock, drawn as if it were UTC, is 08:02:24 UTC."""
    at = [datetime(2027, 1, 15, 17, minute, 24, tzinfo=UTC).timestamp() * 1000 for minute in (9, 2)]  # dragged to the left
    zoom.zoomed(View(scope={"namespace": ("prod",)}), _State({"at": at}), Reader("en", "Asia/Tokyo"))
    assert [(view.start, view.end, view.scope) for view in gone] == [
        ("2027-01-15T08:02:24Z", "2027-01-15T08:09:24Z", {"namespace": ("prod",)})
    ]


def test_a_click_is_no_drag(gone):
    for brush in ({}, None, {"at": [1.0e12, 1.0e12 + 500]}, {"at": []}):
        zoom.zoomed(View(), _State(brush), Reader())
    zoom.zoomed(View(), None, Reader())
    assert gone == []


def test_the_address_of_prometheus_is_shown_without_its_password_and_only_where_that_is_allowed(monkeypatch):

    def where(**settings):
        monkeypatch.setattr(answer, "settings", lambda: Settings(prometheus_url="http://me:secret@prometheus:9090/sub/", **settings))
        return take.prometheus_address(View())

    assert where() == "http://prometheus:9090/sub"
    assert where(prometheus_link=False) is None
    assert take.prometheus_address(View(bundle="abc")) is None
    assert take.prometheus_address(View(source="nobody")) is None

"""The report of a window as a file: everything that the page knows, nothing that the page does not, and no way out."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.recordings import T0
from tests.test_cli import obs
from tests.test_report import EVIL
from tests.test_report import report as by_hand
from tests.test_timeline import fleet

from obs import api, bundle, retrospective
from obs.config import Settings
from obs.course import Course
from obs.links import View
from obs.report_json import to_json
from obs.retrospective.chart import HEIGHT, POINTS, WIDTH, chart
from obs.retrospective.document import TITLES, document
from obs.series import Grid
from obs.text import say
from obs.verdict import Episode, Evidence, Stance

FROM, TO = "2026-11-30T11:00:00Z", "2026-11-30T11:10:00Z"
NAN = float("nan")


def _report(lang="en", zone="UTC", start=FROM, end=TO):
    return api.report(bundle.sample(), View(start=start, end=end, lang=lang, zone=zone), Settings(), 0.0)


@pytest.fixture(scope="module")
def pressure():
    return _report()


class Tags(HTMLParser):
    """Every tag and attribute, and whether each is closed."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


# ---------------------------------------------------------------- what is not in it


def test_the_file_asks_for_nothing_and_runs_nothing(pressure):
    tags = Tags(retrospective.to_html(pressure))
    assert tags.open == []
    assert not {"script", "img", "link", "iframe", "object", "form"} & {tag for tag, _ in tags.found}
    assert not [attrs for _, attrs in tags.found if {"src", "srcset", "onclick", "onload"} & attrs.keys()]
    policy = next(attrs["content"] for tag, attrs in tags.found if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "url(" not in retrospective.to_html(pressure)


def test_a_hostile_name_is_text_in_both_forms():
    report = by_hand(link="https://obs.example/?namespace=%22%3E%3Cscript%3E")
    page = retrospective.to_html(report)
    assert "<script" not in page
    assert "script" not in {tag for tag, _ in Tags(page).found}
    assert "&lt;script&gt;" in page
    assert EVIL not in retrospective.to_markdown(report)
    assert "\\<script\\>" in retrospective.to_markdown(report)


def test_a_window_in_which_nothing_applied_says_so_and_draws_nothing():
    report = _report(start="2026-11-30T10:59:00Z", end="2026-11-30T11:01:30Z")
    doc = document(report)
    assert doc.timeline == ()
    assert [part.charts for part in doc.parts] == [(), (), (), ()]
    assert "No row applied and nothing outside the table was found" in retrospective.to_html(report)


def test_a_gap_stays_a_gap_and_a_lone_figure_stays_visible(pressure):
    times = pressure.readings.grid.times
    inside = (times >= pressure.diagnosis.start) & (times <= pressure.diagnosis.end)
    course = np.where(inside, NAN, 0.0)[None, :]
    first = int(inside.argmax())
    course[0, first : first + 2] = 1.0
    course[0, first + 10] = 2.0
    piece = Evidence("requests_waiting", say("Waiting requests"), Stance.SUPPORTS, "count", say("x"), value=2.0)
    path = chart(piece, Course(("a",), course), pressure, (), gateway=False).lines[0].path
    assert path.count("M") == 2
    assert path.endswith("h.6")


# ---------------------------------------------------------------- what is


@pytest.mark.parametrize("write", [retrospective.to_html, retrospective.to_markdown])
def test_every_figure_of_the_evidence_is_there_as_the_program_interface_has_it(pressure, write):
    text = re.sub(r"\\([`*_\[\]<>|#~])", r"\1", write(pressure)).replace("&#39;", "'")
    rows = [row for row in to_json(pressure)["rows"] if row["state"] == "applies"]
    assert [row["id"] for row in rows] == ["latency_without_errors", "slow_first_token"]
    said = [e["says"] for row in rows for e in row["evidence"]]
    assert len(said) == 13
    assert [says for says in said if says not in text] == []


@pytest.mark.parametrize("write", [retrospective.to_html, retrospective.to_markdown])
def test_the_sections_stand_in_the_order_of_a_retrospective(pressure, write):
    text = write(pressure)
    order = ("table", "timeline", "impact", "missing", "actions", "lessons", "queries", "thresholds", "versions")
    heads = re.findall(r"<h2>([^<]+)</h2>", text) or re.findall(r"^## (\w[^●▲\n]*)$", text, re.M)
    assert heads == [TITLES[name].template for name in order]


def test_what_began_and_ended_is_told_in_order(pressure):
    assert [(at[11:19], words) for at, words in document(pressure).timeline] == [
        ("11:01:50", "Latency rises without errors begins on 127.0.0.1:18000."),
        ("11:03:00", "Slow first token begins on 127.0.0.1:18000."),
        ("11:09:45", "Slow first token ends."),
        ("11:09:50", "Latency rises without errors ends."),
    ]


def test_queries_and_thresholds_are_those_that_were_used(pressure):
    doc = document(pressure)
    kv = next(line for line in doc.queries if line[0] == "KV cache use")
    assert kv[1:3] == ("measured", "vllm:kv_cache_usage_perc")
    assert "vllm:kv_cache_usage_perc" in kv[3]
    assert next(line[1] for line in doc.thresholds if line[0] == "kv_use") == "90 %"
    assert len(doc.thresholds) == len(pressure.diagnosis.thresholds)


def test_times_are_those_of_the_readers_zone_and_words_of_the_readers_language():
    text = retrospective.to_markdown(_report(lang="es", zone="Asia/Tokyo"))
    assert "2026-11-30T20:01:50+09:00" in text
    assert "Cronología" in text or "Línea de tiempo" in text


def test_the_drawing_puts_onset_threshold_and_episode_where_they_belong(pressure):
    d = pressure.diagnosis
    times = pressure.readings.grid.times
    values = np.where(times >= d.start + 300, 4.0, 0.0)[None, :]
    piece = Evidence("requests_waiting", say("Waiting"), Stance.SUPPORTS, "count", say("x"), value=4.0, threshold=3.0, onset=d.start + 300)
    drawn = chart(piece, Course(("a",), values), pressure, (Episode(d.start + 300, None, ("a",)),), gateway=False)
    assert drawn.onset[0] == pytest.approx(WIDTH / 2, abs=0.1)
    assert drawn.bands == ((drawn.onset[0], pytest.approx(WIDTH / 2, abs=0.1)),)
    assert drawn.threshold[0] == pytest.approx(HEIGHT * (1 - 3 / 4), abs=0.1)
    assert [words for _, words in drawn.levels] == ["0", "2", "4"]
    assert [words for _, words in drawn.times] == ["11:00", "11:02", "11:04", "11:06", "11:08", "11:10"]


def test_over_days_an_axis_names_the_day_at_midnight_and_an_onset_late_in_the_window_stands_left_of_its_mark(pressure):
    start, end = 1793487600.0, 1793487600.0 + 3 * 86400  # midnight in Madrid
    long = replace(
        pressure, lang="es", zone="Europe/Madrid", diagnosis=replace(pressure.diagnosis, start=start, end=end),
        readings=replace(pressure.readings, grid=Grid(start, 600.0, 433)),
    )  # fmt: skip
    piece = Evidence("requests_waiting", say("Waiting"), Stance.SUPPORTS, "count", say("x"), value=7.0, onset=end - 3600)
    drawn = chart(piece, Course(("a",), np.ones((1, 433))), long, (), gateway=False)
    assert [words for _, words in drawn.times] == ["1 nov", "12:00", "2 nov", "12:00", "3 nov", "12:00", "4 nov"]
    late = re.search(
        r'<text x="([\d.]+)" y="-4" text-anchor="end">since',
        retrospective.to_html(_report(start="2026-11-30T10:58:54Z", end="2026-11-30T12:06:46Z")),
    )
    assert late is not None
    assert float(late[1]) < WIDTH


def test_the_worst_lines_are_drawn_and_the_others_counted(pressure):
    values = np.repeat(np.arange(20.0)[:, None], pressure.readings.grid.count, axis=1)
    piece = Evidence("requests_waiting", say("Waiting"), Stance.SUPPORTS, "count", say("x"), value=19.0)
    drawn = chart(piece, Course(tuple(f"r{i}" for i in range(20)), values), pressure, (), gateway=False)
    assert [line.name for line in drawn.lines] == [f"r{i}" for i in range(19, 11, -1)]
    assert drawn.others == "12 more below these"


def test_a_long_line_is_thinned_and_keeps_its_peak(pressure):
    count = 5000
    long = replace(pressure, readings=replace(pressure.readings, grid=Grid(pressure.diagnosis.start, 0.1, count)))
    values = np.zeros((1, count))
    values[0, 4321] = 7.0
    piece = Evidence("requests_waiting", say("Waiting"), Stance.SUPPORTS, "count", say("x"), value=7.0)
    drawn = chart(piece, Course(("a",), values), long, (), gateway=False)
    points = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", drawn.lines[0].path)]
    assert 100 < len(points) <= POINTS
    assert min(points) == pytest.approx(HEIGHT * (1 - 7 / 7.5), abs=0.1)  # 7 under marks of 2.5


def test_changes_and_alerts_are_told_with_their_moments_and_what_is_not_known_of_them():
    report = _report(start="2026-11-30T10:58:54Z", end="2026-11-30T12:06:46Z")
    assert document(report).happened is None  # not asked for
    found = replace(report, happened=api.happened(bundle.sample(), report))
    changes = [(at[11:19], words, where) for at, words, where in document(found).happened.changes]
    assert changes[0] == ("11:02:21", "traffic rises from 0.93 /s to 2.1 /s", "")
    assert ("11:54:15", "1 process started again", "127.0.0.1:18000") in changes
    for text in (retrospective.to_html(found), retrospective.to_markdown(found)):
        assert all(words in text for _, words, _ in changes)
        assert "no series ALERTS could be read" in text


def test_a_change_of_configuration_and_an_alert_stand_in_the_report(recorded):
    source = recorded(fleet())
    report = api.report(source, View(start=str(T0), end=str(T0 + 7200), scope={"namespace": ("prod",)}), Settings(), T0 + 7200.0)
    happened = document(replace(report, happened=api.happened(source, report))).happened
    told = ("2027-01-15T09:00:00Z", "vllm:cache_config_info: gpu_memory_utilization 0.9 → 0.95", "b")
    assert told in happened.changes
    assert [alert[:2] for alert in happened.alerts] == [("KVFull", "page"), ("Watchdog", "page")]
    assert happened.alerts[0][2].startswith("2027-01-15T09:06:45Z")
    assert (happened.unknown, happened.no_alerts) == ("", "")


def test_a_share_far_above_one_has_few_marks_on_its_axis(pressure):
    course = np.full((1, pressure.readings.grid.count), 0.1)
    course[0, -1] = 400.0  # attempts beside one finished request
    piece = Evidence("gateway_retries", say("Retries"), Stance.SUPPORTS, "ratio", say("x"), value=0.4, threshold=0.1)
    assert len(chart(piece, Course(("a",), course), pressure, (), gateway=True).levels) <= 6


# ---------------------------------------------------------------- the command


def test_an_ending_that_is_no_report_is_refused(tmp_path):
    done = obs("report", "--bundle", "sample", "--output", str(tmp_path / "r.pdf"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "neither .html nor .md" in done.stderr


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path):
    path = tmp_path / "r.md"
    path.write_text("mine")
    call = ("report", "--bundle", "sample", "--from", FROM, "--to", TO, "--output", str(path))
    assert obs(*call).returncode == 2
    assert path.read_text() == "mine"
    assert obs(*call, "--force").returncode == 0
    report = replace(_report(), zone="UTC")
    assert path.read_text("utf-8") == retrospective.to_markdown(replace(report, happened=api.happened(bundle.sample(), report)))

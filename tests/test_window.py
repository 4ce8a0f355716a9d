"""Times as people, links and Grafana write them, and the windows that can be judged."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obs import pasted
from obs.errors import CallError
from obs.language import render
from obs.window import LONGEST_SECONDS, Window, check, is_relative, parse_time, rfc3339, zone_info

NOW = 1796044805.0  # 2026-11-30T13:20:05Z, a Monday


def said(call, *args, **kwargs) -> str:
    with pytest.raises(CallError) as caught:
        call(*args, **kwargs)
    return render(caught.value.says)


@pytest.mark.parametrize(
    "text",
    ["", " ", "nan", "inf", "-5", "1e9", "now-", "now-1x", "now-1h/", "nowish", "10:00", "tomorrow", "2026-02-30", "2026-13-01",
     "2026-11-30T25:00:00Z", "30 foo 2026", "30/11/2026", "03/04/2026 11:02", "Mon Nov 30 11:02:24 XYZ 2026", "Nov 30 11:02:24",
     "13:02 PM", "2026-11-30 13:02 PM", "Foo 30, 2026", "../../etc/passwd", "<script>", "\x00", "2026-11-30T11:02:24Z;", "1" * 10_000,
     "now-999999y", "now" + "-1h" * 5000 + "x", "10000-01-01", "2026-W48-1"],
)  # fmt: skip
def test_what_is_no_time_is_said_with_the_forms_that_are(text):
    assert "is no time; write 2026-11-30T11:02:24Z" in said(parse_time, text, NOW) or "outside the calendar" in said(parse_time, text, NOW)


@pytest.mark.parametrize("zone", ["Mars/Base", "../../../etc/passwd", "/etc/passwd", "America", "a" * 10_000, "Europe/Madrid\x00", ""])
def test_a_zone_that_there_is_not_is_said_and_no_file_is_opened(zone):
    assert said(zone_info, zone).startswith("There is no time zone ")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("now", "2026-11-30T13:20:05Z", "2026-11-30T13:20:05Z"),
        ("now-1h", "2026-11-30T12:20:05Z", "2026-11-30T12:20:05Z"),
        ("now-1h30m", "2026-11-30T11:50:05Z", "2026-11-30T11:50:05Z"),
        ("now-90m+30m", "2026-11-30T12:20:05Z", "2026-11-30T12:20:05Z"),
        ("now/d", "2026-11-29T23:00:00Z", "2026-11-30T23:00:00Z"),
        ("now-1d/d", "2026-11-28T23:00:00Z", "2026-11-29T23:00:00Z"),
        ("now/h", "2026-11-30T13:00:00Z", "2026-11-30T14:00:00Z"),
        ("now/w", "2026-11-29T23:00:00Z", "2026-12-06T23:00:00Z"),
        ("now/M", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"),
        ("now-1M", "2026-10-30T13:20:05Z", "2026-10-30T13:20:05Z"),
        ("now/y", "2025-12-31T23:00:00Z", "2026-12-31T23:00:00Z"),
        ("2026-11-30 11:02", "2026-11-30T10:02:00Z", "2026-11-30T10:02:00Z"),
        ("2026-11-30 11:02:24", "2026-11-30T10:02:24Z", "2026-11-30T10:02:24Z"),
        ("2026-11-30T11:02:24Z", "2026-11-30T11:02:24Z", "2026-11-30T11:02:24Z"),
        ("2026-11-30T11:02:24+05:30", "2026-11-30T05:32:24Z", "2026-11-30T05:32:24Z"),
        ("2026-11-30T11:02:24 05:30", "2026-11-30T05:32:24Z", "2026-11-30T05:32:24Z"),
        ("2026-11-30 11:02 UTC", "2026-11-30T11:02:00Z", "2026-11-30T11:02:00Z"),
        ("30 Nov 2026 11:02", "2026-11-30T10:02:00Z", "2026-11-30T10:02:00Z"),
        ("30 de noviembre de 2026 9:02", "2026-11-30T08:02:00Z", "2026-11-30T08:02:00Z"),
        ("Mon, 30 Nov 2026 11:02:24 GMT", "2026-11-30T11:02:24Z", "2026-11-30T11:02:24Z"),  # a mail, an HTTP header
        ("Mon, 30 Nov 2026 11:02:24 -0500", "2026-11-30T16:02:24Z", "2026-11-30T16:02:24Z"),
        ("Mon Nov 30 11:02:24 UTC 2026", "2026-11-30T11:02:24Z", "2026-11-30T11:02:24Z"),  # a terminal
        ("Nov 30, 2026, 11:02 AM", "2026-11-30T10:02:00Z", "2026-11-30T10:02:00Z"),  # a chat
        ("November 30, 2026 at 12:02:24 am", "2026-11-29T23:02:24Z", "2026-11-29T23:02:24Z"),
        ("2026-11-30 11:02:24 PM", "2026-11-30T22:02:24Z", "2026-11-30T22:02:24Z"),
        ("2026/11/30 11:02:24", "2026-11-30T10:02:24Z", "2026-11-30T10:02:24Z"),
        ("30.11.2026, 9:02", "2026-11-30T08:02:00Z", "2026-11-30T08:02:00Z"),
        ("30/Nov/2026:11:02:24 +0000", "2026-11-30T11:02:24Z", "2026-11-30T11:02:24Z"),  # a web server's log
        ("2026-11-30 11:02:24.123456 +0100 CET", "2026-11-30T10:02:24.123Z", "2026-11-30T10:02:24.123Z"),  # a Go program's
        ("20261130T110224Z", "2026-11-30T11:02:24Z", "2026-11-30T11:02:24Z"),
        ("“2026-11-30T11:02:24Z”", "2026-11-30T11:02:24Z", "2026-11-30T11:02:24Z"),
        ("[2026-11-30T11:02:24,500Z]", "2026-11-30T11:02:24.500Z", "2026-11-30T11:02:24.500Z"),
        ("lunes, 30 de noviembre de 2026 a las 9:02", "2026-11-30T08:02:00Z", "2026-11-30T08:02:00Z"),
        ("1793563200000000", "2026-11-01T20:00:00Z", "2026-11-01T20:00:00Z"),
        ("1793563200000000000", "2026-11-01T20:00:00Z", "2026-11-01T20:00:00Z"),
        ("1793563200", "2026-11-01T20:00:00Z", "2026-11-01T20:00:00Z"),
        ("1793563200000", "2026-11-01T20:00:00Z", "2026-11-01T20:00:00Z"),
        ("100000000000", "1973-03-03T09:46:40Z", "1973-03-03T09:46:40Z"),
    ],
)
def test_a_time_is_read_in_the_zone_and_an_end_rounds_up(text, start, end):
    assert rfc3339(parse_time(text, NOW, "Europe/Madrid")) == start
    assert rfc3339(parse_time(text, NOW, "Europe/Madrid", end=True)) == end


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("https://grafana.example/d/x?orgId=1&from=1796036400000&to=now", ("1796036400000", "now")),
        ("from=2026-11-30T11%3A00%3A00Z&to=2026-11-30T11%3A10%3A00Z#top", ("2026-11-30T11:00:00Z", "2026-11-30T11:10:00Z")),
        ('{"from":"now-6h","to":"now"}', ("now-6h", "now")),  # Grafana's copied time range
        ('{"from": "2026-11-30 11:00:00", "to": "2026-11-30 11:10:00"}', ("2026-11-30 11:00:00", "2026-11-30 11:10:00")),
        ("from=now-1h", None), ("compare_from=1&compare_to=2", None), ("2026-11-30 11:00", None), ("", None),
    ],
)  # fmt: skip
def test_a_window_that_was_copied_whole_gives_both_of_its_times(text, both):
    assert pasted.pair(text) == both


def test_a_day_back_over_the_end_of_summer_time_is_the_same_time_of_day():
    monday_noon = parse_time("2026-10-26 12:00", NOW, "Europe/Madrid")
    assert parse_time("now-1d", monday_noon, "Europe/Madrid") == monday_noon - 86400
    assert parse_time("now-2d", monday_noon, "Europe/Madrid") == monday_noon - 2 * 86400 - 3600
    assert parse_time("now-24h", monday_noon, "Europe/Madrid") == monday_noon - 86400


@settings(deadline=None)  # the machine is shared
@given(st.floats(min_value=0, max_value=4e9))
def test_rfc3339_is_read_back_to_the_millisecond(at):
    assert abs(parse_time(rfc3339(at), NOW, "Asia/Tokyo") - at) <= 0.0005 + 1e-6


@settings(deadline=None)  # the machine is shared
@given(st.text())
def test_any_text_is_a_time_or_a_sentence(text):
    try:
        at = parse_time(text, NOW, "Europe/Madrid")
    except CallError as error:
        at = len(render(error.says))
    assert at >= 0


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (Window(NOW, NOW), "The window is 0 s long; give an end after its start."),
        (Window(NOW, NOW - 60), "The window ends at 2026-11-30T13:19:05Z, before it starts at 2026-11-30T13:20:05Z; swap the two."),
        (Window(NOW + 60, NOW), "The window starts at 2026-11-30T13:21:05Z, which is still to come; choose an earlier start."),
        (Window(NOW + 60, NOW + 120), "The window starts at 2026-11-30T13:21:05Z, which is still to come; choose an earlier start."),
        (Window(NOW - 10 * 365 * 86400, NOW), "The window is 3,650 d long, and the longest is 31 d; choose a shorter one."),
    ],
)
def test_a_window_that_cannot_be_judged_says_why_and_what_to_do(window, sentence):
    assert said(check, window, NOW) == sentence


def test_a_window_outside_a_recording_says_what_the_recording_holds():
    held = Window(NOW - 3600, NOW)
    assert "which holds 2026-11-30T12:20:05Z to 2026-11-30T13:20:05Z" in said(check, Window(NOW - 7200, NOW - 3600), NOW, held)


def test_the_longest_window_is_allowed_and_one_that_ends_later_is_cut_at_now():
    assert check(Window(NOW - LONGEST_SECONDS, NOW), NOW) == Window(NOW - LONGEST_SECONDS, NOW)
    assert check(Window(NOW - 60, NOW + 60), NOW) == Window(NOW - 60, NOW, live=True)


def test_half_a_window_back_and_out_twice_as_far():
    window = Window(1000.0, 1600.0, live=True)
    assert window.shift(-0.5) == Window(700.0, 1300.0)
    assert window.zoom_out() == Window(700.0, 1900.0)
    assert window.zoom_out().until(1700.0) == Window(500.0, 1700.0)
    assert Window(0.0, LONGEST_SECONDS).zoom_out() == Window(0.0, LONGEST_SECONDS)


def test_only_what_moves_with_now_is_relative():
    assert [is_relative(text) for text in ("now", "now-1h", "now/d", "2026-11-30", "1793563200", "nowish")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]

"""Figures, moments and names as readers of each language see them."""

import math

import pytest

from obs.language import LANGUAGES, negotiate, quantity_text, render, translate
from obs.text import Moment, Names, Quantity, Sentences, say, say_n


@pytest.mark.parametrize("unit", ["ratio", "times", "seconds", "per_second", "tokens", "tokens_per_second", "bytes", "count", "state"])
def test_no_figure_is_a_dash_and_never_0(unit):
    assert quantity_text(Quantity(math.nan, unit)) == "–"
    assert quantity_text(Quantity(math.nan, unit), "es") == "–"


@pytest.mark.parametrize(
    ("value", "unit", "english", "spanish"),
    [
        (0.99, "ratio", "99 %", "99 %"),
        (0.003, "ratio", "0.3 %", "0,3 %"),
        (0.0, "ratio", "0 %", "0 %"),
        (0.9996, "ratio", "99.9 %", "99,9 %"),
        (0.00004, "ratio", "0.004 %", "0,004 %"),
        (1.0, "ratio", "100 %", "100 %"),
        (0.035, "seconds", "35 ms", "35 ms"),
        (0.45, "seconds", "0.45 s", "0,45 s"),
        (12.4, "seconds", "12.4 s", "12,4 s"),
        (2.0, "seconds", "2 s", "2 s"),
        (95.2, "seconds", "95 s", "95 s"),
        (960.0, "seconds", "16 min", "16 min"),
        (0.0, "seconds", "0 s", "0 s"),
        (9000.0, "seconds", "2.5 h", "2,5 h"),
        (0.8, "per_second", "0.8 /s", "0,8 /s"),
        (0.0031, "per_second", "0.0031 /s", "0,0031 /s"),
        (1, "tokens", "1 token", "1 token"),
        (8192, "tokens", "8,192 tokens", "8.192 tokens"),
        (1240.4, "tokens_per_second", "1,240 tokens/s", "1.240 tokens/s"),
        (7.1 * 2**30, "bytes", "7.1 GiB", "7,1 GiB"),
        (184, "count", "184", "184"),
        (7.94, "times", "7.9 x", "7,9 x"),
        (1, "state", "yes", "sí"),
        (0, "state", "no", "no"),
        (math.inf, "seconds", "∞", "∞"),
        (-0.0001, "count", "-0.0001", "-0,0001"),
    ],
)
def test_a_figure_has_the_digits_that_mean_something_in_the_reader_s_way(value, unit, english, spanish):
    assert quantity_text(Quantity(value, unit), "en") == english
    assert quantity_text(Quantity(value, unit), "es") == spanish


@pytest.mark.parametrize("size", [0.0994, 0.0996, 0.994, 0.996, 29.94, 29.96, 119.4, 119.6, 7169.0, 7171.0, 172_799.0])
def test_a_duration_keeps_two_digits_at_the_edges_between_units(size):
    number, unit = quantity_text(Quantity(size, "seconds")).split()
    factor = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}[unit]
    assert abs(float(number) * factor / size - 1) < 0.05


def test_moments_are_shown_in_the_reader_s_zone():
    since = say("since {at}", at=Moment(1796036544.0))
    assert render(since, "en") == "since 11:02:24"
    assert render(since, "en", "Asia/Tokyo") == "since 20:02:24"


def test_a_dated_moment_has_the_day_as_the_bar_shows_it_and_the_same_day_only_once():
    start, end, later = 1793521200.0, 1793522085.0, 1793521200.0 + 86400
    span = say("{start} - {end}", start=Moment(start, True), end=Moment(end, True))
    assert render(span, "en") == "1 Nov 08:20:00 - 08:34:45"
    assert render(span, "es") == "1 nov 08:20:00 - 08:34:45"
    assert render(say("{a} - {b}", a=Moment(start, True), b=Moment(later, True))) == "1 Nov 08:20:00 - 2 Nov 08:20:00"
    night = say("{a} - {b}", a=Moment(start, True), b=Moment(end, True))
    assert render(night, "en", "Etc/GMT+9") == "31 Oct 23:20:00 - 23:34:45"
    assert (
        render(say("{a} - {b}", a=Moment(start, True), b=Moment(end + 3600, True)), "en", "Etc/GMT+9") == "31 Oct 23:20:00 - 1 Nov 00:34:45"
    )


def test_in_spanish_a_time_with_its_article_has_the_day_behind_it():
    one = say("One incident: {row} at {at}, {length} long.", row=say("GPU"), at=Moment(1793521200.0, True), length=Quantity(60, "seconds"))
    assert render(one, "es") == "Un incidente: GPU, a las 08:20:00 del 1 nov, durante 60 s."
    assert render(one, "en") == "One incident: GPU at 1 Nov 08:20:00, 60 s long."


def test_names_from_outside_cannot_hide_anything_or_go_on_for_ever():
    assert render(say("{names}", names=Names(("a\x1b[31m\n\u202eb",)))) == "a\\x1b[31m\\n\\u202eb"
    assert len(render(say("{names}", names=Names(("x" * 10_000,))))) == 120
    assert render(say("{names}", names=Names(tuple("abcdefgh")))) == "a, b, c, d, e and 3 more"
    assert render(say("{names}", names=Names(()))) == "–"
    assert render(say("{name}", name="{0} {evil} %s")) == "{0} {evil} %s"


def test_messages_hold_messages_and_plurals_follow_the_number():
    inner = say_n("one thing", "{n} things", 3)
    assert render(Sentences((say("A {x}.", x=inner), say("B.")))) == "A 3 things. B."
    assert render(say_n("one thing", "{n} things", 1)) == "one thing"


@pytest.mark.parametrize(
    ("lang", "browser", "shown"),
    [
        ("", None, "en"),
        ("", "es-MX", "es"),
        ("", "fr-FR", "en"),
        ("es", "en-US", "es"),
        ("xx", "es", "es"),
        ("ES", None, "es"),
        ("", "es_419", "es"),
    ],
)
def test_the_link_s_language_comes_before_the_browser_s(lang, browser, shown):
    assert negotiate(lang, browser) == shown


def test_a_sentence_without_a_translation_is_shown_in_english_rather_than_not_at_all():
    assert [translate("never heard of", lang) for lang in LANGUAGES] == ["never heard of"] * 2
    assert translate("", "es") == ""  # gettext would answer with the catalogue's header


def test_the_rows_are_named_as_the_two_articles_name_them():
    english = ["GPU out-of-memory error", "Latency rises without errors", "Slow first token", "Load increases after timeouts"]
    spanish = [
        "Error por falta de memoria en GPU",
        "La latencia aumenta sin errores",
        "Primer token lento",
        "La carga aumenta tras los tiempos de espera agotados",
    ]
    assert [translate(row, "en") for row in english] == english
    assert [translate(row, "es") for row in english] == spanish

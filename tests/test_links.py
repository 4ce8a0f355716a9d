"""Links: what must never break, what falls back and says so, and hostile values that come back as they went."""

from collections import defaultdict
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obs.errors import CallError
from obs.language import render
from obs.links import PAGES, RESERVED, View, comparison, is_pinned, params, parse, pinned, resolve, url
from obs.source import About
from obs.trial import TRIALS
from obs.verdict import ROW_IDS
from obs.window import Window, rfc3339

NOW = 1796044805.7  # 2026-11-30T13:20:05.7Z
HOSTILE = [
    '"',
    "'",
    "a\nb",
    "<script>alert(1)</script>",
    "x" * 10_000,
    "ñandú 日本 🙂",
    "a&b=c#d?e",
    "%41",
    "+ +",
    "\\",
    "}",
    '{a="b"}',
    "\x00",
    "..",
    "­",
]


def opened(address: str) -> tuple[View, tuple[str, ...]]:
    """What a browser makes of an address."""
    parts = urlsplit(address)
    query = defaultdict(list)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        query[name].append(value)
    view, notes = parse(parts.path, query)
    return view, tuple(render(note) for note in notes)


STABLE = [  # links that were shared once: each must open the same view for good, so entries are added and never changed
    ("/", View()),
    ("/?from=now-6h&to=now", View(start="now-6h", end="now")),
    ("/?from=1793563200&to=1793566800", View(start="1793563200", end="1793566800")),
    ("/?from=1793563200000&to=1793566800000", View(start="1793563200000", end="1793566800000")),
    ("/?from=2026-11-30T11:02:24Z&to=2026-11-30T12:00:00%2B01:00", View(start="2026-11-30T11:02:24Z", end="2026-11-30T12:00:00+01:00")),
    ("/kv?namespace=prod", View(page="kv", scope={"namespace": ("prod",)})),
    ("/queue?replica=a&replica=b&model=m", View(page="queue", scope={"replica": ("a", "b"), "model": ("m",)})),
    ("/first-token?cluster=eu", View(page="first-token", scope={"cluster": ("eu",)})),
    ("/retries?tz=Europe/Madrid&lang=es", View(page="retries", zone="Europe/Madrid", lang="es")),
    ("/memory?row=gpu_oom", View(page="memory", row="gpu_oom")),
    ("/compare?compare_from=now-2d&compare_to=now-1d", View(page="compare", compare=("now-2d", "now-1d"))),
    (
        "/compare?compare_from=now-2d&compare_to=now-1d&change=lower_admission",
        View(page="compare", compare=("now-2d", "now-1d"), change="lower_admission"),
    ),
    ("/?source=eu-west", View(source="eu-west")),
    ("/?bundle=3f2a", View(bundle="3f2a")),
    ("/incidents?incident=0123456789abcdef", View(page="incidents", incident="0123456789abcdef")),
    ("/?kiosk", View(kiosk=1)),
    ("/?kiosk=1", View(kiosk=1)),
    ("/?kiosk=yes", View(kiosk=1)),
    ("/?kiosk=5", View(kiosk=1)),  # too fast to be read: it stays
    ("/?kiosk=99999", View(kiosk=1)),
    ("/?kiosk=30", View(kiosk=30)),
    ("/?kiosk=60&kiosk=", View(kiosk=60)),  # the last one that says something, as of every other
    ("/?kiosk=false", View()),
    ("/?refresh=1m", View(refresh=60)),
    ("/kv?refresh=off", View(page="kv", refresh=0)),
    ("/?refresh=0m", View(refresh=0)),
    ("/?refresh=5s", View(refresh=15)),  # a Grafana link may ask for more than there is to see
    ("/memory?plan=model~deepseek-v3~tp~8", View(page="memory", plan="model~deepseek-v3~tp~8")),
    ("/?var-namespace=prod", View(scope={"namespace": ("prod",)})),
    ("/?timezone=utc", View(zone="UTC")),
    ("/?timezone=browser", View()),
    ("/?view=table", View()),
    ("/?utm_source=mail&utm_medium=x&fbclid=1&gclid=2", View()),
]


@pytest.mark.parametrize(("address", "view"), STABLE, ids=[address for address, _ in STABLE])
def test_a_link_that_was_shared_once_opens_the_same_view_for_good(address, view):
    assert opened(address) == (view, ())


@pytest.mark.parametrize(
    ("address", "view", "note"),
    [
        ("/?from=yesterdayish", View(), "from was ignored: yesterdayish is no time; write"),
        ("/?tz=Mars/Base", View(), "tz was ignored: There is no time zone Mars/Base"),
        ("/?tz=../../etc/passwd", View(), "tz was ignored: There is no time zone"),
        ("/?lang=fr", View(), "lang was ignored: There is no language fr; there are en, es."),
        ("/?row=drop", View(), "row was ignored: There is no row drop; there are gpu_oom,"),
        ("/?compare_from=now-2d", View(), "The comparison was left out: it needs both compare_from and compare_to."),
        ("/?bundle=../../etc/passwd", View(), "bundle was ignored: ../../etc/passwd cannot be the id of a recording."),
        ("/?source=a%0Ab", View(), "source was ignored: a\\nb cannot be the name of a source."),
        ("/?change=turn_it_off", View(), "change was ignored: There is no change turn_it_off;"),
        ("/?incident=../../etc", View(), "incident was ignored: ../../etc cannot be the id of an incident."),
        ("/?source=a&bundle=b", View(bundle="b"), "The link names both a source and a recording; the recording is shown."),
        ("/?9lives=x", View(), "9lives was ignored: it cannot be the name of a label."),
        ("/?__name__=up", View(), "__name__ was ignored: it cannot be the name of a label."),
        ("/?pod%22%7D=x", View(), 'pod"} was ignored: it cannot be the name of a label.'),
        ("/?var-from=x", View(), "var-from was ignored: it cannot be the name of a label."),
        ("/?no_page=nothere", View(), "There is no page /nothere; this is the diagnosis."),
        ("/?refresh=soon", View(), "refresh was ignored: soon is no interval; write 30s, 1m or off."),
        ("/memory?plan=a/../b", View(page="memory"), "plan was ignored: This cannot be a plan."),
        ("/?orgId=1", View(), "orgId was ignored: it belongs to Grafana and means nothing here."),
    ],
)
def test_what_does_not_parse_falls_back_and_says_so(address, view, note):
    got, notes = opened(address)
    assert got == view
    assert len(notes) == 1
    assert notes[0].startswith(note)


def test_only_a_window_whose_end_moves_is_live():
    now = 1_796_000_000.0
    assert resolve(View(start="now-1h", end="now"), now).live
    assert resolve(View(start="now/d", end="now/d"), now).live
    assert not resolve(View(start="now-1h", end=str(int(now) + 3600)), now).live  # cut at now, and pinned all the same


def test_an_endless_value_is_cut_in_what_is_said_of_it():
    _, notes = opened("/?row=" + "x" * 10_000)
    assert len(notes[0]) < 400


def test_no_reserved_word_becomes_a_label():
    view, _ = parse("", {word: ["x"] for word in RESERVED})
    assert view.scope == {}


def test_of_a_repeated_single_value_the_last_counts_and_repeated_labels_are_any_of_them():
    view, notes = opened("/?lang=en&lang=es&pod=a&pod=b&pod=a&pod=")
    assert (view.lang, view.scope, notes) == ("es", {"pod": ("a", "b")}, ())


times = st.sampled_from(["now", "now-1h", "now/d", "2026-11-30T11:02:24Z", "1793563200", "2026-11-30 11:02"])
values = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
labels = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,12}", fullmatch=True).filter(lambda n: n not in RESERVED and not n.startswith("__"))
views = st.builds(
    View,
    page=st.sampled_from(PAGES),
    start=st.none() | times,
    end=st.none() | times,
    scope=st.dictionaries(labels, st.lists(values, min_size=1, max_size=3, unique=True).map(tuple), max_size=3),
    zone=st.sampled_from(["", "UTC", "Europe/Madrid", "America/Argentina/Buenos_Aires"]),
    lang=st.sampled_from(["", "en", "es"]),
    row=st.none() | st.sampled_from(ROW_IDS),
    compare=st.none() | st.tuples(times, times),
    source=st.none() | st.sampled_from(["eu-west", "ñ &=#"]),
    change=st.none() | st.sampled_from(list(TRIALS)),
    incident=st.none() | st.text("0123456789abcdef", min_size=16, max_size=16),
    kiosk=st.sampled_from([0, 1, 10, 30, 9999]),
    refresh=st.sampled_from([None, 0, 15, 30, 45, 60, 90, 3600]),
)


@settings(deadline=None)  # the machine is shared
@given(views)
def test_a_view_comes_back_from_its_address_as_it_went(view):
    address = url("https://obs.example/base/", view)
    assert urlsplit(address).netloc == "obs.example"
    assert not set(address) & set(" \n\"'<>{}\\`")
    assert opened(address.removeprefix("https://obs.example/base")) == (view, ())


@settings(deadline=None)  # the machine is shared
@given(views)
def test_a_pinned_link_means_the_same_whenever_and_wherever_it_is_opened(view):
    window = Window(NOW - 3600.0, NOW - 60.25)
    compared = Window(NOW - 90_000.0, NOW - 86_400.0) if view.compare else None
    shared = pinned(view, window, zone="Europe/Madrid", lang="es", compare=compared)
    again, notes = opened(url("", shared))
    assert (again, notes) == (shared, ())
    assert is_pinned(again)
    assert again.zone
    assert again.lang
    assert again.scope == view.scope
    later = resolve(again, NOW + 1e6, browser_zone="Asia/Tokyo")
    assert (rfc3339(later.start), rfc3339(later.end)) == (rfc3339(window.start), rfc3339(window.end))


def test_without_times_it_is_the_last_hour_in_whole_seconds_and_live():
    assert resolve(View(), NOW) == Window(1796041205.0, 1796044805.0, live=True)
    assert resolve(View(end="2026-11-30T13:00:00Z"), NOW) == Window(1796040000.0, 1796043600.0)


def test_on_a_recording_now_is_its_end_and_without_times_it_is_all_of_it():
    about = About("sample", "bundle", "1", start=1000.0, end=5000.0)
    assert resolve(View(), NOW, about) == Window(1000.0, 5000.0)
    assert resolve(View(start="now-10m", end="now"), NOW, about) == Window(4400.0, 5000.0)
    assert resolve(View(start="1200"), NOW, about) == Window(1200.0, 5000.0)
    assert resolve(View(), NOW, About("sample", "bundle", "1", 1000.0, 5000.0, opening=(2000.0, 3000.0))) == Window(2000.0, 3000.0)
    with pytest.raises(CallError):
        resolve(View(start="6000", end="7000"), NOW, about)


def test_times_without_an_offset_are_in_the_link_s_zone_else_the_reader_s():
    view = View(start="2026-11-30 10:00", end="2026-11-30 11:00", zone="Europe/Madrid")
    assert rfc3339(resolve(view, NOW, browser_zone="Asia/Tokyo").start) == "2026-11-30T09:00:00Z"
    assert rfc3339(resolve(View(start=view.start, end=view.end), NOW, browser_zone="Asia/Tokyo").start) == "2026-11-30T01:00:00Z"


def test_the_comparison_is_a_window_of_its_own_with_the_same_limits():
    assert comparison(View(), NOW) is None
    assert comparison(View(compare=("now-2h", "now-1h")), NOW) == Window(1796037605.0, 1796041205.0)
    with pytest.raises(CallError):
        comparison(View(compare=("now-1h", "now-2h")), NOW)


def test_parameters_come_in_a_fixed_order_and_defaults_are_left_out():
    view = View(start="now-6h", scope={"b": ("2",), "a": ("1", "0")}, lang="en", kiosk=1)
    assert params(view) == [("from", "now-6h"), ("a", "1"), ("a", "0"), ("b", "2"), ("lang", "en"), ("kiosk", "1")]
    assert params(View()) == []
    assert url("", View()) == "/"

"""Whatever a label, a model name, a link or a note holds: in PromQL, HTML, Markdown, CSV and paths it stays what it is, a text."""

import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from markdown_it import MarkdownIt

from obs import promql, shelf
from obs.errors import CallError
from obs.report import code, markdown_escape
from obs.ui import take
from obs.ui.markup import tag
from obs.ui.plot import Plot
from obs.ui.prose import written

PIECES = some.sampled_from(
    [*"\"'\\\n`<>&{}$|=+-@\t\r/\x1f\u2028\u202eña", "```", "](", "![", "..", "%2e", "<img src=x onerror=alert(1)>", "<!--", "# ", "&#x41;"]
)
TEXT = some.one_of(some.text(max_size=40), some.lists(PIECES, max_size=12).map("".join))


class _Elements(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.words = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, name, attrs):
        self.seen.append((name, attrs))

    def handle_data(self, data):
        self.words += data

    def handle_comment(self, data):
        self.seen.append(("comment", []))


@given(TEXT)
def test_a_value_is_one_string_of_promql_and_that_string_is_the_value(value):
    try:
        written = promql.matcher("name", [value])
    except CallError:
        assert "\x00" in value or any(0xD800 <= ord(c) < 0xE000 for c in value)
        return
    inner = re.fullmatch(r'name="((?:[^"\\\n]|\\[\\"nrt]|\\u[0-9a-f]{4})*)"', written)
    assert inner
    meant = {"n": "\n", "r": "\r", "t": "\t"}
    assert re.sub(r"\\(u....|.)", lambda m: meant.get(m[1]) or (chr(int(m[1][1:], 16)) if len(m[1]) > 1 else m[1]), inner[1]) == value


@given(TEXT, TEXT)
def test_a_text_makes_no_element_and_no_attribute(child, attribute):
    read = _Elements(tag("b", child, title=attribute))
    assert [(name, [key for key, _ in attributes]) for name, attributes in read.seen] == [("b", ["title"])]


@given(TEXT)
def test_a_name_in_a_report_is_text_and_no_markdown(value):
    """Only what a reader's Markdown makes of it counts: no link, no image, no HTML, no emphasis."""
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parseInline(markdown_escape(value)):
        kinds = {child.type for child in token.children or ()}
        assert kinds <= {"text", "text_special", "softbreak", "hardbreak"}, kinds


@given(TEXT)
def test_a_query_in_a_report_stays_code(value):
    kinds = [child.type for token in MarkdownIt("commonmark").parseInline(f"a {code(value)} b") for child in token.children or ()]
    assert set(kinds) <= {"text", "code_inline", "softbreak"}


@given(TEXT)
def test_a_note_makes_no_element_that_runs_loads_or_leaves_unasked(value):
    allowed = {"p", "a", "em", "strong", "code", "pre", "ul", "ol", "li", "blockquote", "hr", "br", "table", "thead", "tbody", "tr", "th",
               "td", "s", *(f"h{level}" for level in range(1, 7)), "div", "span"}  # fmt: skip
    for name, attributes in _Elements(written(value)).seen:
        assert name in allowed
        for key, found in attributes:
            assert not key.startswith("on")
            assert key not in ("src", "srcset", "action", "formaction", "srcdoc")
            assert key != "href" or not re.match(r"\s*(javascript|data|vbscript):", found or "", re.I)


@given(some.lists(TEXT, min_size=1, max_size=3, unique=True))
def test_no_cell_of_a_csv_is_a_formula(names):
    times = np.array([1_800_000_000.0])
    plot = Plot(times[0], times[0], times, tuple(names), np.full((len(names), 1), -1.5), ("#000",) * len(names), "count")
    head, line = csv.reader(io.StringIO(take.written(plot), newline=""))
    assert len(head) == len(line) == len(names) + 1
    assert [cell for cell in head if cell.lstrip()[:1] in ("=", "+", "-", "@") or cell[:1] in ("\t", "\r", "\n")] == []
    assert line[1:] == ["-1.5"] * len(names)  # a figure stays one


@given(TEXT)
@settings(max_examples=60)
def test_no_bundle_of_a_link_leaves_its_folder(tmp_path_factory, value):
    folder = tmp_path_factory.getbasetemp() / "kept"
    folder.mkdir(exist_ok=True)
    (folder.parent / "outside.zip").write_bytes(b"PK")
    for wanted in (value, f"../{value}", f"/{value}", "../outside", "../outside.zip"):
        with pytest.raises(CallError):
            shelf.named(wanted, folder)

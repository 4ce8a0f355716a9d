"""docs/diagnosis.md says what the rules say: its tables are made from them, and its prose names nothing that is not there."""

import re

import pytest

import diagnosis_doc
from obs import findings
from obs.coverage import HELPS, NEEDS
from obs.signals import SIGNALS
from obs.thresholds import THRESHOLDS
from obs.verdict import ROW_IDS

TEXT = diagnosis_doc.PAGE.read_text("utf-8")


def test_the_tables_are_those_that_the_rules_make():
    """When this fails: `make docs`, and look at what changed."""
    assert diagnosis_doc.written(TEXT) == TEXT


@pytest.mark.parametrize("name", diagnosis_doc.TABLES)
def test_each_table_has_its_place_once(name):
    assert TEXT.count(f"<!-- {name}: made by `make docs` -->") == 1


def test_every_row_threshold_and_finding_is_in_a_table():
    assert [row for row in ROW_IDS if f"`{row}`" not in TEXT] == []
    assert [name for name in THRESHOLDS if f"`OBS_THRESHOLDS__{name.upper()}`" not in TEXT] == []
    assert [name for name in findings.TITLES if f"`{name}`" not in TEXT] == []


def test_every_threshold_of_a_limit_exists():
    table = TEXT.split("<!-- conditions:")[1].split("<!-- end -->")[0]
    assert set(re.findall(r"`([a-z_]+)`", table)) <= set(THRESHOLDS)


def test_what_a_row_needs_are_signals():
    assert {s for groups in NEEDS.values() for group in groups for s in group} | {s for names in HELPS.values() for s in names} <= set(
        SIGNALS
    )


def test_a_condition_reads_as_a_sentence_with_its_figure():
    assert "KV cache use is at 90 % or more" in TEXT
    assert "the mean end-to-end latency reaches 1.4 times the usual and 1 s more than it" in TEXT
    assert "{limit}" not in TEXT

"""docs/adding-an-engine.md shows a real file, and names every field that there is."""

import re
from pathlib import Path

import pytest

from obs.vocabulary import Candidate, Labels, Naming, Vocabulary

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/adding-an-engine.md").read_text("utf-8")
FOUND_NOT_WRITTEN = {"native", "own"}


def test_what_it_shows_stands_in_the_engines_file():
    real = (ROOT / "src/obs/engines/lmdeploy.toml").read_text("utf-8")
    shown = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    assert len(shown) > 4
    assert [block for block in shown if block not in real] == []


@pytest.mark.parametrize("model", [Candidate, Naming, Labels, Vocabulary])
def test_every_field_is_named(model):
    assert [name for name in set(model.model_fields) - FOUND_NOT_WRITTEN if not re.search(rf"[`\[\n.]{name}\b", PAGE)] == []

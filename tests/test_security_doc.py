"""docs/security.md promises nothing that no test holds."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs/security.md").read_text("utf-8")


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    files = [ast.parse(file.read_text("utf-8")) for file in (ROOT / "tests").glob("**/test_*.py")]
    known = {node.name for tree in files for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert len(named) > 30
    assert named - known == set()


def test_every_promise_names_its_test():
    promises = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| promised")]
    assert [line for line in promises if not re.fullmatch(r"\| [^|]+ \| (`test_\w+`(, )?)+ \|", line)] == []

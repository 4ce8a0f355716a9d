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


def _pins(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text("utf-8")
    return {re.sub(r"[-_.]+", "-", found[0]).lower(): found[1] for found in re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M)}


def test_what_runs_has_hashes_in_the_versions_that_are_pinned():
    """When this fails: `make hashes`, some minutes."""
    hashed, pinned = _pins("requirements-hashed.txt"), _pins("constraints.txt")
    assert {name: version for name, version in hashed.items() if pinned.get(name) != version} == {}
    assert set(_pins("requirements.txt")) - set(hashed) == set()
    entries = re.split(r"\n(?=\w)", re.sub(r"^#.*\n", "", (ROOT / "requirements-hashed.txt").read_text("utf-8"), flags=re.M).strip())
    assert [entry for entry in entries if not re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", entry)] == []
    assert len(entries) == len(hashed)
    assert min(len(re.findall("sha256", entry)) for entry in entries if entry.startswith(("numpy==", "pandas==", "cffi=="))) >= 6

"""The documentation is compared with the code, never asked to follow it."""

import re
import sys
from pathlib import Path

import pytest

import readme
from obs import cli, links

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_two_commands_stand_at_the_top_of_the_readme():
    first = README.splitlines()[:5]
    assert any(line.startswith("    make run") for line in first)
    assert any(line.startswith("    make test") for line in first)


def test_the_readme_has_the_settings_and_the_output_that_the_code_gives():
    """When this fails: `make readme`, and look at what changed."""
    assert readme.written(README) == README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_the_documentation_leads_somewhere(page):
    text = page.read_text("utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_every_module_named_in_the_documentation_exists():
    names = {name for page in PAGES for name in re.findall(r"`([a-z_/]+\.py)`", page.read_text("utf-8"))}
    assert {name for name in names if not any((ROOT / base / name).exists() for base in ("", "src/obs"))} == set()


def test_the_links_page_names_every_reserved_word_and_every_page():
    text = (ROOT / "docs/links.md").read_text("utf-8")
    assert [word for word in links.RESERVED if f"`{word}`" not in text] == []
    assert [page for page in links.PAGES if f"`/{page}`" not in text] == []


@pytest.mark.parametrize("command", ["diagnose", "bundle", "coverage"])
def test_the_command_line_page_names_every_option(command, capsys):
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    text = (ROOT / "docs/command-line.md").read_text("utf-8")
    usage = next(line for line in text.splitlines() if line.startswith(f"    obs {command}"))
    assert {option for option in options if option not in usage} <= {"--tz", "--lang", "--config"}


def test_the_command_line_page_names_every_field_of_the_object():
    """Keys are read from the source of the JSON, so that a new field needs its line."""
    source = (ROOT / "src/obs/report_json.py").read_text("utf-8")
    text = (ROOT / "docs/command-line.md").read_text("utf-8")
    fields = set(re.findall(r'"([a-z_]+)": ', source))
    assert {field for field in fields if f"`{field}`" not in text} == set()


def test_every_requirement_is_pinned_with_a_reason_and_used():
    lines = [line for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines() if line and line[0] not in "#-"]
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\d.]+\s+# .+", line)] == []
    names = {re.split("[=><]", line)[0] for line in lines}
    modules = {name: name.replace("-", "_").removesuffix("_py") for name in names}  # markdown-it-py is imported as markdown_it
    project = (ROOT / "pyproject.toml").read_text("utf-8").split("dependencies = [")[1].split("\n]")[0]
    assert {re.split("[=><]", name)[0] for name in re.findall(r'"([^"]+)"', project)} == names
    code = "\n".join(f.read_text("utf-8") for f in [ROOT / "app.py", *ROOT.glob("pages/*.py"), *ROOT.glob("src/**/*.py")])
    imported = {name.split(".")[0] for name in re.findall(r"^\s*(?:from|import) ([\w.]+)", code, re.M)}
    assert {name for name in names if modules[name] not in imported} <= {"tzdata", "authlib", "httpx"}  # for zoneinfo and Streamlit
    assert imported - set(sys.stdlib_module_names) - {"obs"} <= set(modules.values())

"""What import-linter cannot see: the quick start of the command line, and rules about files."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAVY = (
    "streamlit", "altair", "pandas", "numpy", "babel", "pydantic", "requests", "prometheus_api_client", "pyarrow", "sqlalchemy", "jinja2",
)  # fmt: skip


def imported_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after `code`."""
    probe = f"import sys\n{code}\nprint(*[n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "src")})
    return set(done.stdout.split("\n")[-2].split())


def test_help_loads_nothing_heavy():
    assert imported_by("from obs.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass") == set()


def test_the_command_line_never_loads_the_dashboard():
    code = "from obs.cli import main\nassert main(['diagnose', '--bundle', 'sample', '--format', 'json']) == 0"
    assert imported_by(code) & {"streamlit", "altair", "pandas"} == set()


def test_a_diagnosis_of_a_live_source_does_not_wait_for_what_only_bundles_need():
    code = "from obs.cli import main\nassert main(['diagnose', '--prometheus-url', 'http://127.0.0.1:9']) == 3"
    assert imported_by(code) & {"pyarrow", "sqlalchemy", "jinja2"} == set()


def test_the_core_loads_without_its_adapters():
    assert imported_by("import obs.diagnosis") <= {"numpy"}


def test_no_source_file_is_longer_than_300_lines():
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("pages/*.py"), *ROOT.glob("tools/*.py"), ROOT / "app.py"]
    assert {str(f.relative_to(ROOT)): n for f in files if (n := len(f.read_text("utf-8").splitlines())) > 300} == {}


def test_no_file_is_named_for_nothing_in_particular():
    names = {f.stem for f in (ROOT / "src").rglob("*.py")}
    assert names & {"utils", "helpers", "common", "base", "manager", "misc"} == set()


def test_no_committed_text_names_a_registry_or_a_path_of_this_machine():
    names = re.compile(
        "|".join(
            [
                "py" + r"pi\.org",
                r"files\.pythonhosted",
                r"registry\.npm" + "js",
                r"deb\.deb" + r"ian\.org",
                "/wo" + "rk/",
                r"\.\./sha" + "red",
            ]
        )
    )
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    found = {name for name in listed if (ROOT / name).is_file() and names.search((ROOT / name).read_text("utf-8", errors="ignore"))}
    assert found == set()

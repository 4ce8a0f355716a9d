"""Writes into README.md what is made from the code: the table of settings, and what the command line prints (`make readme`).

tests/test_docs.py fails where the README says anything else.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from obs.config import Settings

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("diagnose", "--bundle", "sample")
WIDTH = 132  # characters of a line; longer ones end in "…"


def settings_table() -> str:
    """One row for each setting, from the settings model."""
    rows = ["| variable | default | |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        nested = "__NAME" if isinstance(default, dict) else ""
        shown = "" if default is None or default == {} else f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
        rows.append(f"| `OBS_{name.upper()}{nested}` | {shown} | {field.description} |")
    return "\n".join(rows)


def output() -> str:
    """What the command prints on the sample recording."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OBS_")}
    env = kept | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-m", "obs", *COMMAND], capture_output=True, text=True, check=True, env=env)
    lines = [line if len(line) <= WIDTH else line[: WIDTH - 1].rstrip() + "…" for line in done.stdout.rstrip().splitlines()]
    return "\n".join(["```", f"$ obs {' '.join(COMMAND)}", *lines, "```"])


def written(text: str) -> str:
    """The README's text with both parts made anew."""
    for name, part in (("settings", settings_table()), ("output", output())):
        text = re.sub(rf"(<!-- {name}: .*? -->\n).*?(\n<!-- end -->)", lambda m, part=part: m[1] + part + m[2], text, flags=re.S)
    return text


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(written(page.read_text("utf-8")), "utf-8")

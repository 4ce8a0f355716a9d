"""Writes requirements-hashed.txt: what runs, with the SHA-256 of the wheel for each machine and Python that is served (`make hashes`).

pip is asked which wheel it would install on each of them; nothing is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MACHINES = ("x86_64", "aarch64")
PYTHONS = ("3.11", "3.12", "3.13")
GLIBC = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_5", "manylinux1")
HEAD = """# What runs, for `pip install --require-hashes -r requirements-hashed.txt` on Linux (x86_64, aarch64; Python 3.11 to 3.13).
# Made by `make hashes` from requirements.txt and constraints.txt.
"""


def report(arguments: list[str]) -> dict[str, tuple[str, str]]:
    """{name: (version, sha256)} of what pip would install."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = {}
    for one in json.loads(done.stdout)["install"]:
        name = re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower()
        found[name] = (one["metadata"]["version"], one["download_info"]["archive_info"]["hashes"]["sha256"])
    return found


def main() -> None:
    """The file."""
    pins = report(["-r", "requirements.txt"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pins.txt"
        file.write_text("".join(f"{name}=={version}\n" for name, (version, _) in pins.items()))

        def wheels(on: tuple[str, str]) -> dict[str, tuple[str, str]]:
            machine, python = on
            platforms = [word for glibc in GLIBC for word in ("--platform", f"{glibc}_{machine}")]
            only = ["--no-deps", "--only-binary", ":all:", "--python-version", python, "--target", f"{folder}/{machine}{python}"]
            return report([*only, *platforms, "-r", str(file)])

        with ThreadPoolExecutor(3) as several:
            found = list(several.map(wheels, [(machine, python) for machine in MACHINES for python in PYTHONS]))
    lines = []
    for name, (version, _) in sorted(pins.items()):
        hashes = sorted({one[name][1] for one in found})
        lines.append(" \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{value}" for value in hashes)]))
    (ROOT / "requirements-hashed.txt").write_text(HEAD + "\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()

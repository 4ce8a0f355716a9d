"""Found by a Python process that has this folder in PYTHONPATH: its clock is ahead by the seconds in the file that TEST_CLOCK names."""

import os
import time
from pathlib import Path

_clock, _file = time.time, os.environ.get("TEST_CLOCK")


def _moved() -> float:
    return _clock() + float(Path(_file or "").read_text() or 0)


if _file:
    time.time = _moved

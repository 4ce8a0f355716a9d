"""A process that a tool has started, as the kernel sees it."""

from __future__ import annotations

import os
from pathlib import Path


def pid_of(url: str) -> int:
    """The Prometheus or the dashboard that was started on this address. Raises LookupError."""
    port = url.rpartition(":")[2]
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
        except OSError:  # it has ended meanwhile
            continue
        if f"--web.listen-address={url.removeprefix('http://')}" in words or ("--server.port" in words and port in words):
            return int(entry.name)
    raise LookupError(f"no process was started on {url}")


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Megabytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

"""The bundles that are known: the sample, the files in the folders of the settings, and what was uploaded into this process.

A link names one by its content id. The id never becomes a path: it is compared with what the files hold.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

from obs import bundle_file
from obs.bundle import SUFFIX, Bundle, content_id, sample
from obs.bundle_file import Manifest
from obs.errors import CallError
from obs.text import Message, say
from obs.window import Window

_ID = re.compile(r"[0-9a-f]{16}")
_HELD, _HELD_BYTES = 8, 256 << 20  # uploads that a process keeps
_uploads: OrderedDict[str, tuple[Bundle, bytes]] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True)
class Kept:
    """One file in a folder: a bundle with its id and manifest, or what is wrong with it."""

    name: str
    size: int  # bytes
    id: str = ""
    manifest: Manifest | None = None
    wrong: Message | None = None

    def covers(self, window: Window) -> bool:
        """Whether it holds readings of at least half of the window."""
        if self.manifest is None:
            return False
        return min(self.manifest.end, window.end) - max(self.manifest.start, window.start) >= window.seconds / 2


def named(wanted: str, *folders: Path | None) -> Bundle:
    """The known bundle with this content id. Raises CallError where there is none."""
    if wanted in ("sample", sample().id):
        return sample()
    with _lock:
        if wanted in _uploads:
            return _uploads[wanted][0]
    if _ID.fullmatch(wanted):
        for path in _files(*folders):
            try:
                if _file_id(path, path.stat().st_mtime_ns) == wanted:
                    return Bundle(path)
            except (CallError, OSError):
                continue  # a file that cannot be read is not the one
    raise CallError(say("There is no bundle with the id “{id}” here. Put its file into the folder OBS_BUNDLE_DIR.", id=wanted[:40]))


def kept(*folders: Path | None) -> list[Kept]:
    """Every file in the folders that is a bundle or was meant to be one, the latest window first; one that lies in both once."""
    found: dict[str, Kept] = {}
    for path in _files(*folders):
        try:
            stat = path.stat()
        except OSError:
            continue
        one = _looked_at(path, stat.st_mtime_ns, stat.st_size)
        found.setdefault(one.id or str(path), one)
    return sorted(found.values(), key=lambda one: (-(one.manifest.end if one.manifest else 0.0), one.name))


def upload(data: bytes, name: str, folder: Path | None) -> Bundle:
    """Opens a file from outside and keeps it: in the folder if there is one, else as long as this process runs.

    Raises CallError where it is no whole bundle, or where the folder cannot be written.
    """
    opened = Bundle(data, name)
    if folder is not None:
        write(folder, data, opened.id)
    with _lock:
        _uploads[opened.id] = (opened, data)
        _uploads.move_to_end(opened.id)
        while len(_uploads) > _HELD or (len(_uploads) > 1 and sum(len(held) for _, held in _uploads.values()) > _HELD_BYTES):
            _uploads.popitem(last=False)
    return opened


def uploaded(wanted: str) -> bytes | None:
    """The bytes of an upload that this process holds."""
    with _lock:
        return _uploads[wanted][1] if wanted in _uploads else None


def write(folder: Path, data: bytes, id_: str) -> Path:
    """Writes a bundle under a name made of its own content id, whole or not at all. Raises CallError where that cannot be."""
    path = folder / f"{id_}{SUFFIX}"
    part = folder / f".{id_}.{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise CallError(
            say("The bundle could not be written into {folder}: {reason}.", folder=folder.name, reason=error.strerror or "?")
        ) from error
    return path


def _files(*folders: Path | None) -> list[Path]:
    found: list[Path] = []
    for folder in folders:
        try:
            found += sorted(folder.glob("*.zip")) if folder and folder.is_dir() else []
        except OSError:
            continue  # a folder that may not be listed holds nothing for us
    return found


@lru_cache(maxsize=1024)
def _file_id(path: Path, _changed: int) -> str:
    return content_id(bundle_file.read(path))


@lru_cache(maxsize=1024)
def _looked_at(path: Path, changed: int, size: int) -> Kept:
    try:
        data = bundle_file.read(path)
        return Kept(path.name, size, content_id(data), bundle_file.manifest(data, path.name))
    except CallError as error:
        return Kept(path.name, size, wrong=error.says)

"""The file format of an evidence bundle, and what is believed of a file from outside.

A zip with two members: `manifest.json` (what was asked, of whom, over which grid) and `readings.parquet` (`obs.bundle_table`). No address
and no secret is in it.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from obs.errors import CallError
from obs.series import Array, Grid
from obs.source import Query
from obs.text import Message, Quantity, say

SCHEMA = 2  # 2 holds what the timeline shows beside the readings; one of schema 1 opens without it
MANIFEST, READINGS = "manifest.json", "readings.parquet"
LARGEST_FILE = 256 << 20
LARGEST_MANIFEST = 16 << 20
_DATE = (1980, 1, 1, 0, 0, 0)  # the same readings make the same file


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)  # unknown fields are passed over: a later version may add some


class AskedQuery(_Model):
    """One query as it was sent."""

    key: str
    promql: str
    by: tuple[str, ...] = ()
    thin: Literal["last", "max", "min"] = "last"


class Origin(_Model):
    """The source that it was made from."""

    name: str
    flavor: str
    version: str


class Judged(_Model):
    """The verdict when a bundle was made: what the diagnosis of its readings was."""

    primary: str
    states: dict[str, str]  # row id -> state


_Time = Annotated[float, Field(ge=0, le=1e11)]


class ShownSeries(_Model):
    """A series that says something by being there: its labels, and (start, end, doubt) of each stretch, as in `obs.seen.Span`."""

    metric: str
    labels: dict[str, str]
    spans: tuple[tuple[_Time, _Time | None, _Time], ...]


class Beside(_Model):
    """Info metrics and firing alerts of the window. Not known: the source had none, or did not answer; then there are none here."""

    infos: tuple[ShownSeries, ...] = ()
    alerts: tuple[ShownSeries, ...] = ()
    infos_known: bool
    alerts_known: bool


class Manifest(_Model):
    """What a bundle says of itself. Times are Unix seconds."""

    schema_: int = Field(SCHEMA, alias="schema")
    made_by: str = ""
    start: float = Field(ge=0, le=1e11)
    end: float = Field(ge=0, le=1e11)
    scope: dict[str, tuple[str, ...]] = {}
    grid_start: float = Field(ge=0, le=1e11)
    grid_step: float = Field(ge=0.1, le=86400)
    grid_count: int = Field(ge=1, le=100_000)
    source: Origin
    scrape_intervals: dict[str, float] = {}
    names: tuple[str, ...] = ()
    queries: tuple[AskedQuery, ...] = ()
    thresholds: dict[str, float] = {}  # those in force when it was made
    judged: Judged | None = None
    beside: Beside | None = None  # None: made with schema 1
    pseudonyms: bool = False  # names of replicas, namespaces, models and the like stand for others

    @property
    def grid(self) -> Grid:
        """The grid of every series."""
        return Grid(self.grid_start, self.grid_step, self.grid_count)


Series = tuple[tuple[dict[str, str], ...], Array]  # labels of each row, values of shape [rows, steps]


def dump(manifest: Manifest, rows: Sequence[Series]) -> bytes:
    """The file's bytes: `rows` in the order of the manifest's queries."""
    from obs.bundle_table import packed

    return _zipped(manifest, packed(rows, manifest.grid_count))


def described(data: bytes, manifest: Manifest) -> bytes:
    """The same readings under another manifest."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return _zipped(manifest, archive.read(READINGS))


def _zipped(manifest: Manifest, readings: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            zipfile.ZipInfo(MANIFEST, _DATE),
            orjson.dumps(manifest.model_dump(by_alias=True), option=orjson.OPT_SORT_KEYS),
            zipfile.ZIP_DEFLATED,
        )
        archive.writestr(zipfile.ZipInfo(READINGS, _DATE), readings, zipfile.ZIP_STORED)
    return out.getvalue()


def load(data: bytes, name: str) -> tuple[Manifest, list[Series]]:
    """Manifest and series of each query. Raises CallError for whatever is not a whole bundle of a known schema."""
    from obs.bundle_table import LARGEST_VALUES, TooLargeError, unpacked

    with _opened(data, name) as archive:
        found = _manifest(_member(archive, MANIFEST, LARGEST_MANIFEST, name), name)
        try:
            return found, unpacked(_member(archive, READINGS, LARGEST_FILE, name), len(found.queries), found.grid_count)
        except TooLargeError:
            raise CallError(_too_large(name, 8 * LARGEST_VALUES)) from None


def manifest(data: bytes, name: str) -> Manifest:
    """The manifest alone, for a list: the series are not looked at. Raises CallError."""
    with _opened(data, name) as archive:
        return _manifest(_member(archive, MANIFEST, LARGEST_MANIFEST, name), name)


@contextmanager
def _opened(data: bytes, name: str) -> Iterator[zipfile.ZipFile]:
    """The zip; whatever is wrong with it becomes a sentence."""
    if len(data) > LARGEST_FILE:
        raise CallError(_too_large(name, LARGEST_FILE))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield archive
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        KeyError,
        ValueError,
        OSError,
    ) as error:
        raise CallError(
            say(
                "{file} is not a whole evidence bundle: it is cut off, damaged or something else. Make it again with obs bundle.", file=name
            )
        ) from error


def read(path: Path) -> bytes:
    """A file's bytes; a CallError where it cannot be read or is too large to be a bundle."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise CallError(_too_large(path.name, LARGEST_FILE))
        return path.read_bytes()
    except OSError as error:
        raise CallError(say("{file} cannot be read: {reason}.", file=path.name, reason=error.strerror or "?")) from error


def _member(archive: zipfile.ZipFile, member: str, largest: int, name: str) -> bytes:
    """A member, never more of it than allowed, whatever its header says."""
    if archive.getinfo(member).file_size > largest:
        raise CallError(_too_large(name, largest))
    with archive.open(member) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise CallError(_too_large(name, largest))
    return content


def _manifest(content: bytes, name: str) -> Manifest:
    raw = orjson.loads(content)
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise CallError(
            say(
                "{file} was made by a newer version (schema {schema}; this one reads {known}). Update obs.",
                file=name,
                schema=schema,
                known=SCHEMA,
            )
        )
    try:
        found = Manifest.model_validate(raw)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])[:80]
        raise CallError(say("{file} is not an evidence bundle: its manifest is wrong at {where}.", file=name, where=where)) from error
    if found.end <= found.start:
        raise CallError(say("{file} is not an evidence bundle: its manifest is wrong at {where}.", file=name, where="end"))
    return found


def asked(query: Query) -> AskedQuery:
    """A query as the manifest holds it."""
    return AskedQuery(key=query.key, promql=query.promql, by=query.by, thin=query.thin if query.thin in ("max", "min") else "last")  # type: ignore[arg-type]


def _too_large(name: str, largest: int) -> Message:
    return say("{file} holds more than {largest}: too much for an evidence bundle.", file=name, largest=Quantity(float(largest), "bytes"))

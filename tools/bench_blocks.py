"""Blocks of a Prometheus database, written without promtool: a month of a fleet in a minute instead of half an hour.

The format is that of prometheus/tsdb/docs/format (index 2, chunks 1). What a series has in one block is handed over as `Chunks`, so
that series which are alike but for their labels are encoded once.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SAMPLES = 120  # of a chunk, as Prometheus cuts them
_TIMES = ((14, 0b10, 2), (17, 0b110, 3), (20, 0b1110, 4), (64, 0b1111, 4))  # bits of a change of the distance, its mark, the mark's bits
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True)
class Chunk:
    """Samples as they stand in a file of chunks, with length and checksum; times in milliseconds."""

    first: int
    last: int
    count: int
    stored: bytes


def chunks(times: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[Chunk, ...]:
    """The samples of one series in one block, in the order of time."""
    found = []
    for at in range(0, len(times), SAMPLES):
        stamps, bits = times[at : at + SAMPLES].tolist(), values[at : at + SAMPLES].view(np.uint64).tolist()
        body = b"\x01" + _encoded(stamps, bits)
        found.append(Chunk(stamps[0], stamps[-1], len(stamps), _uvarint(len(body) - 1) + body + _crc(body)))
    return tuple(found)


def _encoded(stamps: Sequence[int], values: Sequence[int]) -> bytes:
    """Gorilla's encoding: distances of distances, and what differs from the value before."""
    head = struct.pack(">H", len(stamps)) + _varint(stamps[0]) + struct.pack(">Q", values[0])
    if len(stamps) == 1:
        return head
    distance = stamps[1] - stamps[0]
    head += _uvarint(distance)
    stream, size, leading, trailing = 1, 1, -1, 0  # a leading 1 keeps the zeros
    for number in range(1, len(stamps)):
        if number > 1:
            change = stamps[number] - stamps[number - 1] - distance
            distance += change
            if change == 0:
                stream, size = stream << 1, size + 1
            else:
                width, mark, marked = next(t for t in _TIMES if t[0] == 64 or -((1 << (t[0] - 1)) - 1) <= change <= 1 << (t[0] - 1))
                stream, size = ((stream << marked | mark) << width) | (change & (1 << width) - 1), size + marked + width
        other = values[number] ^ values[number - 1]
        if other == 0:
            stream, size = stream << 1, size + 1
            continue
        zeros, behind = min(64 - other.bit_length(), 31), (other & -other).bit_length() - 1
        if leading >= 0 and zeros >= leading and behind >= trailing:
            width = 64 - leading - trailing
            stream, size = ((stream << 2 | 0b10) << width) | other >> trailing, size + 2 + width
        else:
            leading, trailing, width = zeros, behind, 64 - zeros - behind
            stream = (((stream << 2 | 0b11) << 5 | leading) << 6 | width % 64) << width | other >> trailing
            size += 13 + width
    spare = -(size - 1) % 8
    return head + ((stream << spare) ^ (1 << size - 1 + spare)).to_bytes((size - 1 + spare) // 8, "big")


def write(folder: Path, number: int, series: Sequence[tuple[Mapping[str, str], Sequence[Chunk]]]) -> None:
    """One block; `number` tells it from the others in `folder`. Series without a chunk are left out."""
    ulid = f"01{_ALPHABET[number // 32]}{_ALPHABET[number % 32]}".ljust(26, "0")
    place = folder / ulid
    (place / "chunks").mkdir(parents=True)
    there = sorted((sorted(labels.items()), list(found)) for labels, found in series if found)
    stored, refs = bytearray(struct.pack(">IB3x", 0x85BD40DD, 1)), []
    for _labels, found in there:
        refs.append([])
        for chunk in found:
            refs[-1].append(len(stored))
            stored += chunk.stored
    (place / "chunks" / "000001").write_bytes(stored)
    (place / "index").write_bytes(_index(there, refs))
    first, last = min(c.first for _, found in there for c in found), max(c.last for _, found in there for c in found)
    counts = {"numSamples": sum(c.count for _, f in there for c in f), "numSeries": len(there), "numChunks": sum(len(f) for _, f in there)}
    meta = {
        "ulid": ulid,
        "minTime": first,
        "maxTime": last + 1,
        "stats": counts,
        "compaction": {"level": 4, "sources": [ulid]},
        "version": 1,
    }
    (place / "meta.json").write_text(json.dumps(meta))


def _index(series: Sequence[tuple[list[tuple[str, str]], list[Chunk]]], refs: Sequence[Sequence[int]]) -> bytes:
    words = sorted({word for labels, _ in series for pair in labels for word in pair})
    number = {word: i for i, word in enumerate(words)}
    out = bytearray(struct.pack(">IB", 0xBAAAD700, 2))
    toc = [len(out)]
    out += _section(struct.pack(">I", len(words)) + b"".join(_text(word) for word in words))
    out += bytes(-len(out) % 16)
    toc.append(len(out))
    lists: dict[tuple[str, str], list[int]] = defaultdict(list)
    for (labels, found), places in zip(series, refs, strict=True):
        lists["", ""].append(len(out) // 16)
        body = bytearray(_uvarint(len(labels)))
        for label, value in labels:
            lists[label, value].append(len(out) // 16)
            body += _uvarint(number[label]) + _uvarint(number[value])
        body += _uvarint(len(found))
        for i, (chunk, place) in enumerate(zip(found, places, strict=True)):
            body += _uvarint(chunk.first - found[i - 1].last) if i else _varint(chunk.first)
            body += _uvarint(chunk.last - chunk.first)
            body += _varint(place - places[i - 1]) if i else _uvarint(place)
        out += _uvarint(len(body)) + body + _crc(bytes(body))
        out += bytes(-len(out) % 16)
    toc.append(len(out))  # label indices: none, as Prometheus reads them from the lists
    table = bytearray(struct.pack(">I", len(lists)))
    begin = len(out)
    for (label, value), members in sorted(lists.items()):
        table += b"\x02" + _text(label) + _text(value) + _uvarint(len(out))
        out += _section(struct.pack(f">{len(members) + 1}I", len(members), *members))
    toc += [len(out), begin]
    out += _section(struct.pack(">I", 0))
    toc.append(len(out))
    out += _section(bytes(table))
    ends = struct.pack(">6Q", *toc)
    return bytes(out + ends + _crc(ends))


def _section(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content + _crc(content)


def _text(word: str) -> bytes:
    return _uvarint(len(word.encode())) + word.encode()


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _varint(value: int) -> bytes:
    return _uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _bit in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def _crc(content: bytes) -> bytes:
    """CRC-32C, big-endian."""
    value, table = 0xFFFFFFFF, _TABLE
    for byte in content:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return struct.pack(">I", value ^ 0xFFFFFFFF)

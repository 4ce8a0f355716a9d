"""Answers in chunks of whole steps, aligned to the clock, so that all windows of one step share them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from obs.series import Array, Grid
from obs.source import Answer, Query
from obs.text import Message

CHUNK_STEPS = 60  # a refresh asks again for at most one chunk and the settling time
_ROW_BYTES = 400  # of a row's labels, about

Key = tuple[str, str, float, int, int, int]  # query key, PromQL, step, stride, epoch of the source, chunk


def key(query: Query, grid: Grid, chunk: int, epoch: int) -> Key:
    """What a chunk is held under."""
    return query.key, query.promql, grid.step, query.stride, epoch, chunk


def number(grid: Grid, step: int) -> int:
    """The number of the chunk that a step of the grid lies in, counted from 1970."""
    return (round(grid.start / grid.step) + step) // CHUNK_STEPS


def stretches(chunks: Sequence[int]) -> list[tuple[int, int]]:
    """Chunks that follow one another as (first, last)."""
    found: list[tuple[int, int]] = []
    for chunk in chunks:
        if found and chunk == found[-1][1] + 1:
            found[-1] = (found[-1][0], chunk)
        else:
            found.append((chunk, chunk))
    return found


def stretch(grid: Grid, first: int, last: int, *, whole: bool) -> Grid:
    """The grid of these chunks; the last one up to its end where it is to be kept, else up to the end of what was asked for."""
    start = first * CHUNK_STEPS * grid.step
    end = (last + 1) * CHUNK_STEPS * grid.step - grid.step
    return Grid(start, grid.step, round(((end if whole else min(end, grid.end)) - start) / grid.step) + 1)


def cut(answer: Answer, part: Grid, chunk: int) -> Answer:
    """One chunk of an answer over several. Rows without a value in it are left out; those without any at all say that they are there."""
    at = chunk * CHUNK_STEPS - round(part.start / part.step)
    values = answer.values[:, max(at, 0) : at + CHUNK_STEPS]
    known = np.isfinite(answer.values)
    kept = np.flatnonzero(np.isfinite(values).any(axis=1) | ~known.any(axis=1))
    return Answer(tuple(answer.labels[i] for i in kept), values[kept].copy(), answer.refused, answer.notes)


def together(parts: Sequence[Answer], first: int, grid: Grid) -> Answer:
    """The chunks as one answer over the grid; a series is the same where all its labels are."""
    places: dict[tuple[tuple[str, str], ...], int] = {}
    labels: list[dict[str, str]] = []
    for part in parts:
        for row in part.labels:
            if places.setdefault(tuple(sorted(row.items())), len(places)) == len(labels):
                labels.append(row)
    values: Array = np.full((len(labels), grid.count), np.nan)
    begin = round(grid.start / grid.step)
    for number, part in enumerate(parts):
        at = (first + number) * CHUNK_STEPS - begin
        left, right = max(at, 0), min(at + part.values.shape[1], grid.count)
        rows = [places[tuple(sorted(row.items()))] for row in part.labels]
        if rows and right > left:
            values[rows, left:right] = part.values[:, left - at : right - at]
    refused = next((part.refused for part in parts if part.refused is not None), None)
    notes: list[Message] = []
    for part in parts:
        notes += [note for note in part.notes if note not in notes]
    return Answer(tuple(labels), values, refused, tuple(notes))


def held_bytes(answer: Answer) -> int:
    """About what a chunk takes of memory."""
    return answer.values.nbytes + _ROW_BYTES * len(answer.labels)

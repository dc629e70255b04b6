"""Ids of examples: whole numbers or text. Numbers are ordered by value, text by its UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import GOLDEN, mix64

Keys = NDArray[np.uint64]
IdArray: TypeAlias = Any  # of a chunk: whole numbers in NumPy, or an Arrow array of text


def kind_of(type_: pa.DataType) -> str:
    """ "number", "text", or nothing for a type that cannot be an id."""
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_integer(type_):
        return "number"
    return "text" if str(type_) in ("string", "large_string", "string_view") else ""


def as_column(array: pa.Array) -> IdArray:
    """The ids of a chunk: int64 numbers or Arrow text. ArrowInvalid where a number does not fit."""
    if kind_of(array.type) == "number":
        return array.cast(pa.int64()).to_numpy(zero_copy_only=True)
    return array.cast(pa.large_string())


def take(ids: IdArray, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Some ids: int64, or objects (str), whose order in Python is that of their bytes."""
    if isinstance(ids, np.ndarray):
        return ids[rows]
    return as_array(ids.take(pa.array(rows)).to_pylist())


def take_column(ids: IdArray, rows: NDArray[np.int64]) -> IdArray:
    """Ids as a column."""
    return ids[rows] if isinstance(ids, np.ndarray) else ids.take(pa.array(rows))


def as_array(ids: list[Any]) -> NDArray[Any]:
    """Ids from a list: int64, or objects (str)."""
    if ids and isinstance(ids[0], str):
        out = np.empty(len(ids), object)
        out[:] = ids
        return out
    return np.array(ids, np.int64)


def keys(ids: IdArray) -> Keys:
    """A 64-bit hash of each id. Different numbers have different keys; different text nearly always has."""
    if isinstance(ids, np.ndarray):
        return mix64(ids.astype(np.uint64))
    _, offsets, data = ids.buffers()
    ends = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    start, length = ends[:-1] - ends[0], np.diff(ends)
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else np.empty(0, np.uint8)
    text = np.append(text, np.zeros(8, np.uint8))
    words = np.ndarray(len(text) - 7, "<u8", text, strides=(1,))  # the eight bytes from each position on
    hashed = mix64(length.astype(np.uint64))
    rows = np.arange(len(ids))
    for offset in range(0, int(length.max(initial=0)), 8):
        rows = rows[length[rows] > offset]
        left = np.minimum(length[rows] - offset, 8).astype(np.uint64)
        word = words[start[rows] + offset] & (np.uint64(2**64 - 1) >> (np.uint64(64) - np.uint64(8) * left))
        hashed[rows] = mix64((hashed[rows] ^ word) * GOLDEN)
    return hashed


def as_uint64(ids: IdArray) -> Keys:
    """Ids as strategies see them, 64 bits each: numbers unchanged, so that row numbers are the indices in memory."""
    return ids.astype(np.uint64) if isinstance(ids, np.ndarray) else keys(ids)


class Rising:
    """Notices whether the ids of chunks, which follow each other, rise from row to row.

    span: the first and the last id; None if they do not rise.
    """

    def __init__(self) -> None:
        self.holds = True
        self.span: tuple[Any, Any] | None = None

    def add(self, ids: IdArray) -> None:
        if isinstance(ids, np.ndarray):
            rising, first, last = bool((ids[1:] > ids[:-1]).all()), int(ids[0]), int(ids[-1])
        else:
            rising = pc.all(pc.greater(ids[1:], ids[:-1])).as_py() in (True, None)  # None: there is one row
            first, last = ids[0].as_py(), ids[-1].as_py()
        self.holds = self.holds and rising and (self.span is None or first > self.span[1])
        self.span = (self.span[0] if self.span else first, last) if self.holds else None


class Excluded:
    """Ids to leave out."""

    def __init__(self, ids: Iterable[Any], kind: str) -> None:
        unique = sorted({self._as_pool_has(id_, kind) for id_ in ids})
        self.text = frozenset(unique) if kind == "text" else None
        column = pa.array(unique, pa.large_string() if kind == "text" else pa.int64())
        self.keys = np.sort(keys(as_column(column)))

    @staticmethod
    def _as_pool_has(id_: Any, kind: str) -> Any:
        """The id in the type of the pool's ids; numbers may be given as text."""
        if kind == "text" and isinstance(id_, str):
            return id_
        try:
            if kind == "number" and isinstance(id_, str | int | np.integer) and -(2**63) <= int(id_) < 2**63:
                return int(id_)
        except ValueError:
            pass
        ours = "text" if kind == "text" else "whole numbers"
        raise InputError(f"{id_!r} is to be left out, but the pool's ids are {ours}; give ids like the pool's.")

    def __len__(self) -> int:
        return len(self.keys)

    def among(self, ids: IdArray) -> NDArray[np.bool_]:
        """Which of these ids are to be left out."""
        if not len(self):
            return np.zeros(len(ids), bool)
        wanted = keys(ids)
        index = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        inside = np.asarray(self.keys[index] == wanted)
        if self.text is not None:  # another text may have the same key
            rows = np.flatnonzero(inside)
            inside[rows] = [text in self.text for text in take(ids, rows)]
        return inside

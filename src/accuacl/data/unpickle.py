"""The only reader of pickles: for the official CIFAR python archives, and able to make nothing but what they hold.

Not even NumPy's own classes are let in, since a forged dtype could make NumPy take numbers for pointers. The names that
a pickled array mentions are answered by the stand-ins below, which know arrays of bytes and nothing else.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.data.source import Pixels


def read_batch(data: bytes, place: str) -> dict[str, Any]:
    """The dictionary in a CIFAR python file, with arrays of uint8, lists, numbers and text."""
    try:
        batch = _CifarUnpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # a damaged or forged pickle makes the unpickler raise nearly anything
        raise InputError(f"{place} is not a CIFAR python file ({reason(error)}); download it again.") from error
    if not isinstance(batch, dict):
        raise InputError(f"{place} holds a {type(batch).__name__}, not CIFAR's dictionary; download it again.")
    return {_text(key): value.pixels if isinstance(value, _Array) else value for key, value in batch.items()}


class _Dtype:
    def __init__(self, kind: Any, *_: Any) -> None:
        if _text(kind) != "u1":
            raise InputError(f"it holds an array of {kind!r}, and only bytes are admitted")

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment: nothing to a single byte."""


class _Array:
    pixels: Pixels

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        if not isinstance(dtype, _Dtype):
            raise InputError("it holds an array whose type is not said")
        self.pixels = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")


def _reconstruct(kind: Any, *_: Any) -> _Array:
    if kind is not _Array:
        raise InputError("it holds a subclass of an array")
    return _Array()


def _encode(text: str, encoding: str) -> bytes:
    return text.encode("latin1" if encoding in ("latin1", b"latin1") else "ascii")


ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


class _CifarUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise InputError(f"it asks for {module}.{name}, which no CIFAR file needs, and was refused")
        return ADMITTED[module, name]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

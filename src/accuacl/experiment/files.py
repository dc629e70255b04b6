"""Files that are whole or absent: written aside, made durable, then renamed into place."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` with `data`, durably; on failure nothing is left behind and an older file stays."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """The same for text."""
    write_bytes(path, text.encode())


def save_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> dict[str, str]:
    """Write tensors; the handle to find and check them by."""
    return _save(path, safetensors.torch.save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}))


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """The same for NumPy arrays."""
    return _save(path, safetensors.numpy.save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))


def load_tensors(folder: Path, handle: dict[str, str]) -> dict[str, torch.Tensor]:
    """What the handle stands for, checked to the last bit."""
    return safetensors.torch.load(_read(folder, handle))


def load_arrays(folder: Path, handle: dict[str, str]) -> dict[str, np.ndarray]:
    """The same as NumPy arrays."""
    return safetensors.numpy.load(_read(folder, handle))


def _save(path: Path, data: bytes) -> dict[str, str]:
    write_bytes(path, data)
    return {"file": path.name, "sha256": hashlib.sha256(data).hexdigest()}


def _read(folder: Path, handle: dict[str, str]) -> bytes:
    path = folder / Path(handle["file"]).name
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path} is gone, but the journal needs it; restore it or start over with --fresh.") from None
    if hashlib.sha256(data).hexdigest() != handle["sha256"]:
        raise ValueError(f"{path} is damaged: it is not what was written; restore it or start over with --fresh.")
    return data

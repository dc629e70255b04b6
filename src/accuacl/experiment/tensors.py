"""Tensors on disk: safetensors files that are known by their name and SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

from accuacl.base.errors import InputError
from accuacl.base.files import reason, write_bytes
from accuacl.experiment.configfile import restore


def save_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> dict[str, str]:
    """Write tensors; the handle to find and check them by."""
    own = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    return _save(path, safetensors.torch.save(own))  # copies: layers that share weights are saved twice


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
        raise InputError(f"{path} is gone, but the journal needs it; {restore(folder.parent)}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}; fix that and do it again.") from error
    if hashlib.sha256(data).hexdigest() != handle["sha256"]:
        raise InputError(f"{path} is damaged: it is not what was written; {restore(folder.parent)}.")
    return data

"""The Parquet files behind a path, a folder, a pattern, several of these, or a pyarrow dataset."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from accuacl.base.errors import InputError

PoolSource: TypeAlias = Any  # a path (file, folder or glob), several, or a pyarrow dataset
GROUP_ROWS = 1 << 16  # rows of a row group in the files that we write


def files_of(source: PoolSource, what: str) -> list[str]:
    """The Parquet files of a source, each once, in order; `what` they are, for errors."""
    source = getattr(source, "files", source)  # of a pyarrow dataset
    if isinstance(source, str | os.PathLike):
        return _files(os.fspath(source), what)
    paths = list(source) if isinstance(source, Iterable) else []
    if not isinstance(source, Iterable) or not all(isinstance(path, str | os.PathLike) for path in paths):
        others = ", or Features(embeddings, probabilities)" if what != "pool" else ""  # as a value, not from a disk
        kind = type(source).__name__
        raise InputError(f"{what} is a {kind}; give a path, several, or a pyarrow dataset{others}.")
    return list(dict.fromkeys(file for path in paths for file in _files(os.fspath(path), what)))


def _files(path: str, what: str) -> list[str]:
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = (p for p in Path(path).rglob("*.parquet") if p.is_file())
        return sorted(str(p) for p in inside if not any(part[0] in "._" for part in p.relative_to(path).parts))
    if not os.path.exists(path) and any(mark in path for mark in "*?["):
        return sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not os.path.isfile(path):
        raise InputError(f"{what}: there is no file or folder {path}; give one, or a pattern like 'a/*.parquet'.")
    return [path]

"""How inputs are read, what reading them gives, and what is refused before anything slow is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import strangers
from accuacl.base.userfile import check_function
from accuacl.experiments.data import RawImage, decode_all, table_suffix

Batch: TypeAlias = tuple[list[Any], NDArray[Any]]  # ids; images uint8 (n, H, W, 3) or vectors float32 (n, d)


@dataclass(frozen=True)
class ReadOptions:
    """How inputs are read.

    image_size: the side to which images are brought (0: as they are). column: of tables, the one with images or vectors
    ("": the first of `usual` that is there, or else found by its name). id_column: the one with ids. skip_bad: leave
    out images that cannot be read.
    """

    image_size: int = 0
    column: str = ""
    id_column: str = "id"
    skip_bad: bool = False
    usual: tuple[str, ...] = ()


@dataclass
class Decoding:
    """Pixels of one shape; which images they are of, where bad ones are left out."""

    size: int
    skip_bad: bool
    shape: tuple[int, ...] | None = None

    def __call__(self, images: Iterator[RawImage]) -> tuple[list[int], NDArray[np.uint8]]:
        kept, pixels, number = [], [], 0
        for chunk in decode_all(images, self.size or None, self.shape, self.skip_bad):
            for image in chunk:
                if image is not None:
                    self.shape = image.shape
                    kept.append(number)
                    pixels.append(image)
                number += 1
        return kept, np.stack(pixels) if pixels else np.empty((0, *(self.shape or (1, 1, 3))), np.uint8)


def check_numbers(file: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a table without some of the columns of numbers that the model learned from."""
    if missing := [name for name in wanted if name not in there]:
        raise InputError(
            f"{file} has no column of numbers {', '.join(missing)}, which the model learned from; add it, or name a "
            "column of lists with --column."
        )


def check_unique(parts: Callable[[], Iterable[list[Any]]], where: Callable[[int], str]) -> None:
    """Refuse two rows with the same id. parts: gives the ids of all rows; where: says where a row is, for messages.

    Eight bytes are kept of each id; only if two are alike in these, the ids are read once more and compared.

    >>> check_unique(lambda: [["a", "b"], ["c", "a"]], "row {}".format)
    Traceback (most recent call last):
    accuacl.base.errors.InputError: row 3 has the id 'a', which row 0 has too; give each row an id of its own.
    """
    hashes = np.concatenate([np.empty(0, np.int64), *(np.fromiter(map(hash, part), np.int64) for part in parts())])
    order = np.argsort(hashes, kind="stable")
    again = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    if not len(again):
        return
    suspects = set(hashes[order[again]].tolist())
    first: dict[Any, int] = {}
    for row, id in enumerate(id for part in parts() for id in part):
        if hash(id) in suspects and first.setdefault(id, row) != row:
            raise InputError(
                f"{where(row)} has the id {id!r}, which {where(first[id])} has too; give each row an id of its own."
            )


ARRAYS = (".npy", ".npz", "ubyte", "ubyte.gz")  # how the names of array files end
IDX = ARRAYS[2:]
MANIFEST, LOCK = "manifest.json", "embed.lock"
LABELS = "labels.sqlite"  # a directory that has it is a project


def check_places(data: str, out: Path, run: Path | None, model: str | None, weights: Path | None) -> None:
    """Refuse places that cannot be right, and options that do not go together."""
    if (run is None) == (model is None):
        raise InputError("give either --run, the directory of a finished run or of a project, or --model, your own.")
    if weights and not model:
        raise InputError("--weights are for --model; a run has its own.")
    if os.path.isdir(data) and out.resolve().is_relative_to(Path(data).resolve()):
        raise InputError(f"{out} is inside {data}, where the pool would be taken for data; give an --out elsewhere.")
    check_out(out)
    if model:
        check_function(model)
    elif run and not (run / LABELS).exists():
        check_finished(run)
    if not (run and (run / LABELS).exists()):  # a project may also take texts
        check_source(data)


def check_out(out: Path) -> None:
    """Refuse a folder in which a pool can neither be started nor continued."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder for the pool.")
    if not (out / MANIFEST).exists() and (other := strangers(out, LOCK)):
        raise InputError(f"{out} holds {other}, which is not part of a pool; give an empty or a new folder.")


def check_source(source: str) -> None:
    """Refuse what is neither a folder nor a file of a known kind."""
    pattern = any(mark in source for mark in "*?[")
    if (
        not source.endswith((*ARRAYS, ".parquet"))
        and not is_table(source)
        and not os.path.isdir(source)
        and not pattern
    ):
        raise InputError(
            f"{source or repr(source)} is not a folder, a table (Parquet, Arrow, CSV, TSV, JSON), a .npy, .npz or idx "
            "file; give images or vectors in one of these."
        )


def is_table(source: str) -> bool:
    """Whether it is the name of a table other than Parquet."""
    return table_suffix(Path(source)) not in ("", ".parquet") and not os.path.isdir(source)


def check_finished(directory: Path) -> None:
    """Refuse what is not the directory of a finished run."""
    if not (directory / "result.json").exists():
        raise InputError(
            f"{directory} is not the directory of a finished run or of a project; give one that has a result.json "
            "or labels.sqlite."
        )

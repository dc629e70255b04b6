"""How inputs are read, and what reading them gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

Batch: TypeAlias = tuple[list[Any], NDArray[Any]]  # ids; images uint8 (n, H, W, 3) or vectors float32 (n, d)


@dataclass(frozen=True)
class ReadOptions:
    """How inputs are read.

    image_size: the side to which images are brought (0: as they are). column: of Parquet files, the one with images or
    vectors ("": the first of `usual` that is there, or else found by its name). id_column: the one with ids. skip_bad:
    leave out images that cannot be read.
    """

    image_size: int = 0
    column: str = ""
    id_column: str = "id"
    skip_bad: bool = False
    usual: tuple[str, ...] = ()

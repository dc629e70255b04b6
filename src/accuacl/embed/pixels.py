"""Encoded images to pixels of one shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.data.decode import decode_all
from accuacl.data.source import Item


@dataclass
class Decoding:
    """Pixels of one shape; which images they are of, where bad ones are left out."""

    size: int
    skip_bad: bool
    shape: tuple[int, ...] | None = None

    def __call__(self, items: Iterator[Item]) -> tuple[list[int], NDArray[np.uint8]]:
        kept, pixels, number = [], [], 0
        for chunk in decode_all(items, self.size or None):
            for place, image, reason in chunk:
                if image is not None:
                    self.shape = self.shape or image.shape
                    if image.shape != self.shape:
                        raise InputError(
                            f"{place} is {image.shape[1]} x {image.shape[0]} pixels where {self.shape[1]} x "
                            f"{self.shape[0]} were expected; give --image-size to bring all to one size."
                        )
                    kept.append(number)
                    pixels.append(image)
                elif not self.skip_bad:
                    raise InputError(
                        f"{place} is not a readable image ({reason}); replace it, "
                        "or leave such ones out with --skip-bad."
                    )
                number += 1
        return kept, np.stack(pixels) if pixels else np.empty((0, *(self.shape or (1, 1, 3))), np.uint8)

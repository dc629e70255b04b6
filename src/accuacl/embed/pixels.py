"""Encoded images to pixels of one shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accuacl.data import RawImage, decode_all


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

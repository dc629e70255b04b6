"""What a strategy sees of a set of examples: the input of the model's last linear layer, and its softmax."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError

Array = NDArray[Any]

# Beyond this the fourth power of an entry, which the magnitude score needs, would leave float64's range.
LARGEST_ENTRY = 1e70
# How far the sum of a row of probabilities may be from 1, by the type it was computed in.
SUM_TOLERANCE = {"bfloat16": 2e-2, "float16": 5e-3, "float32": 1e-4, "float64": 1e-5}
BLOCK_BYTES = 1 << 21  # validation reads this much at a time, so that it stays in the cache


class RowError(InputError):
    """A wrong row of numbers: in which array, which row of it (from 0), and what is wrong.

    >>> error = RowError("embeddings", 7, "is nan; drop the row.", column=2)
    >>> str(error)
    'embeddings: row 7, column 2 is nan; drop the row.'
    >>> error.at("a.parquet, row 1007")
    'a.parquet, row 1007: embeddings: column 2 is nan; drop the row.'
    """

    def __init__(self, what: str, row: int, fault: str, column: int | None = None) -> None:
        super().__init__(what, row, fault, column)
        self.what, self.row, self.fault, self.column = what, row, fault, column

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column}"
        return f"{self.what}: row {self.row}{column} {self.fault}"

    def at(self, place: str) -> str:
        """The sentence for a caller that names the row in its own way."""
        column = "" if self.column is None else f"column {self.column} "
        return f"{place}: {self.what}: {column}{self.fault}"


class Features:
    """Embeddings (n x d) and class probabilities (n x K) of the same n examples, checked once, here.

    Both may be NumPy arrays, memory maps or torch tensors of any float type, on any device and in any memory
    layout; they are kept as they are and not copied (except what NumPy cannot view: bfloat16 and device tensors).
    The probabilities are the softmax over the classes seen so far.

    >>> import numpy as np
    >>> pool = Features(np.eye(3), np.full((3, 2), 0.5))
    >>> len(pool), pool.d, pool.K
    (3, 3, 2)
    >>> Features(np.eye(3), np.ones((3, 2)))
    Traceback (most recent call last):
    ...
    accuacl.features.RowError: probabilities: row 0 sums to 2, not to 1; give softmax outputs, not logits.
    """

    embeddings: Array
    probabilities: Array

    def __init__(self, embeddings: Any, probabilities: Any) -> None:
        self.embeddings, _ = _as_matrix(embeddings, "embeddings")
        self.probabilities, kind = _as_matrix(probabilities, "probabilities")
        if len(self.embeddings) != len(self.probabilities):
            raise InputError(
                f"embeddings have {len(self.embeddings)} rows and probabilities {len(self.probabilities)}; "
                "give one row of each per example."
            )
        if self.d == 0 or self.K == 0:
            raise InputError(f"got d={self.d} embedding columns and K={self.K} classes; both must be at least 1.")
        _check_embeddings(self.embeddings)
        _check_probabilities(self.probabilities, SUM_TOLERANCE.get(kind, 0.2))  # others: float8

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def d(self) -> int:
        """Width of an embedding."""
        return int(self.embeddings.shape[1])

    @property
    def K(self) -> int:
        """Number of classes."""
        return int(self.probabilities.shape[1])

    @classmethod
    def trusted(cls, embeddings: Array, probabilities: Array) -> Features:
        """Features of arrays that have already been checked."""
        features = object.__new__(cls)
        features.embeddings, features.probabilities = embeddings, probabilities
        return features

    @classmethod
    def concat(cls, sets: Sequence[Features]) -> Features:
        """The examples of one or more sets, one set after the other. Not checked again.

        >>> some = Features([[1.0], [2.0]], [[1.0]] * 2)
        >>> Features.concat([some, some.rows(slice(1, 2))]).embeddings.ravel().tolist()
        [1.0, 2.0, 2.0]
        """
        if len(sets) == 1:
            return sets[0]
        return cls.trusted(
            np.concatenate([each.embeddings for each in sets]), np.concatenate([each.probabilities for each in sets])
        )

    def rows(self, rows: slice | NDArray[np.int64]) -> Features:
        """The examples at `rows`; a slice is a view. Not checked again."""
        return Features.trusted(self.embeddings[rows], self.probabilities[rows])

    def blocks(self, size: int) -> Iterator[tuple[int, Features]]:
        """Pairs (first row, the next `size` rows) over all rows."""
        for start in range(0, len(self), size):
            yield start, self.rows(slice(start, start + size))

    def __repr__(self) -> str:
        return f"Features(n={len(self)}, d={self.d}, K={self.K}, {self.embeddings.dtype}/{self.probabilities.dtype})"


def check_alike(pool: Features, **others: Features | None) -> None:
    """Every set given must have the pool's embedding width and classes."""
    for name, other in others.items():
        if other is not None and (other.d, other.K) != (pool.d, pool.K):
            raise InputError(
                f"the pool has d={pool.d} and K={pool.K} but {name} has d={other.d} and K={other.K}; "
                "compute both with the same model over the same classes."
            )


def _as_matrix(given: Any, name: str) -> tuple[Array, str]:
    """`given` as a 2-D NumPy array of floats, sharing memory if possible, and the name of its float type."""
    try:
        array, kind = _as_array(given)
    except (TypeError, ValueError, RuntimeError):  # how NumPy and torch say that this is no array
        described = f"{type(given).__name__} {getattr(given, 'dtype', '')}".strip()
        raise InputError(f"{name} are a {described}; give a dense NumPy array or torch tensor of floats.") from None
    if array.dtype.kind != "f":
        raise InputError(f"{name} hold {array.dtype}, not floats; convert them, for instance with .astype('float32').")
    if array.dtype.itemsize > 8:
        array, kind = array.astype(np.float64), "float64"
    if array.ndim != 2:
        raise InputError(f"{name} have shape {array.shape}; expected two dimensions, one row per example.")
    return array.view(np.ndarray), kind


def _as_array(given: Any) -> tuple[Array, str]:
    torch = sys.modules.get("torch")  # if it is not imported, no tensors can be given
    if torch is not None and isinstance(given, torch.Tensor):
        tensor = given.detach().cpu()
        kind = str(tensor.dtype).removeprefix("torch.")
        if tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64):
            tensor = tensor.float()  # bfloat16 and smaller: NumPy has no such types
        return tensor.resolve_conj().resolve_neg().numpy(), kind
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError("masked entries have no value")
    array = np.asanyarray(given)
    if array.dtype == object:
        raise TypeError("an array of objects")
    return array, array.dtype.name


def _check_embeddings(array: Array) -> None:
    for start, block in _blocks(array):
        finite = np.isfinite(block)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            fault = f"is {block[row, column]}; all must be finite, so drop or repair such rows."
            raise RowError("embeddings", int(start + row), fault, int(column))
        if block.dtype.itemsize == 8 and block.size and np.abs(block).max() > LARGEST_ENTRY:
            raise InputError(f"embeddings reach {np.abs(block).max():.3g}; scale them below {LARGEST_ENTRY:g}.")


def _check_probabilities(array: Array, tolerance: float) -> None:
    ones = np.ones(array.shape[1], array.dtype)
    for start, block in _blocks(array):
        # A quick check that nearly always succeeds, in a fifth of the time; NaN fails every comparison.
        if len(block) and array.itemsize > 2 and block.min() >= 0 and block.max() <= 1:
            rough = block @ ones
            if np.abs(rough - 1).max() <= tolerance / 2 - array.shape[1] * np.finfo(array.dtype).eps:
                continue
        inside = (block >= 0) & (block <= 1)  # False for NaN
        if not inside.all():
            row, column = np.argwhere(~inside)[0]
            fault = f"is {block[row, column]:.6g}, not in [0, 1]; give softmax outputs, not logits."
            raise RowError("probabilities", int(start + row), fault, int(column))
        sums = block.sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1) > tolerance
        if off.any():
            row = int(np.argmax(off))
            fault = f"sums to {sums[row]:.6g}, not to 1; give softmax outputs, not logits."
            raise RowError("probabilities", int(start + row), fault)


def _blocks(array: Array) -> Iterator[tuple[int, Array]]:
    size = max(1, BLOCK_BYTES // max(1, array.shape[1] * array.itemsize))
    for start in range(0, len(array), size):
        yield start, array[start : start + size]

"""What a strategy sees of a set of examples: the input of the model's last linear layer, and its softmax."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, a_type, one_line

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

    def at(self, where: str) -> str:
        """The sentence for a caller that names the row in its own way."""
        column = "" if self.column is None else f"column {self.column} "
        return f"{where}: {self.what}: {column}{self.fault}"


class Features:
    """Embeddings (n x d) and class probabilities (n x K) of the same n examples, checked once, here.

    Both may be NumPy arrays, memory maps or torch tensors of any float type, on any device and in any memory
    layout; they are kept as they are and not copied (except what NumPy cannot view: bfloat16 and device tensors).
    The probabilities are the softmax over the classes seen so far. ids: a number or text for each example, all
    different; `select` then returns `picked.ids`.

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
    ids: Array | None

    def __init__(self, embeddings: Any, probabilities: Any, ids: Any = None) -> None:
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
        self.ids = None if ids is None else _as_ids(ids, len(self))

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
    def from_estimator(cls, classifier: Any, X: Any, *, ids: Any = None, embeddings: Any = None) -> Features:
        """Compute the features of the examples X with a fitted classifier that has `predict_proba`.

        X: a NumPy array or a frame of pandas, polars or pyarrow, one example per row, as `predict_proba` takes it.
        ids: one for each row; without them, the index of a pandas frame. embeddings: one row of numbers for each
        example; without them, X as the last step of a Pipeline sees it, or for any other classifier the columns of X.

        >>> from sklearn.datasets import load_digits
        >>> from sklearn.linear_model import LogisticRegression
        >>> from accuacl import select
        >>> X, y = load_digits(return_X_y=True)
        >>> classifier = LogisticRegression(max_iter=500).fit(X[:200], y[:200])
        >>> pool = Features.from_estimator(classifier, X[200:], ids=[f"digit-{row}" for row in range(200, len(X))])
        >>> select("margin", pool=pool, budget=3).ids.tolist()
        ['digit-489', 'digit-657', 'digit-607']
        """
        _check_classifier(classifier)
        if ids is None and hasattr(X, "iloc"):  # pandas alone names its rows
            ids = X.index
        probabilities = _predicted(classifier, X)
        if embeddings is None:
            embeddings = _last_inputs(classifier, X)
        return cls(_numbers(embeddings), probabilities, ids)

    @classmethod
    def trusted(cls, embeddings: Array, probabilities: Array, ids: Array | None = None) -> Features:
        """Features of arrays that have already been checked."""
        features = object.__new__(cls)
        features.embeddings, features.probabilities, features.ids = embeddings, probabilities, ids
        return features

    @classmethod
    def concat(cls, sets: Sequence[Features]) -> Features:
        """All examples of one or more sets, one set after the other; not checked again.

        >>> some = Features([[1.0], [2.0]], [[1.0]] * 2)
        >>> Features.concat([some, some.rows(slice(1, 2))]).embeddings.ravel().tolist()
        [1.0, 2.0, 2.0]
        """
        if len(sets) == 1:
            return sets[0]
        ids = [each.ids for each in sets if each.ids is not None]
        return cls.trusted(
            np.concatenate([each.embeddings for each in sets]),
            np.concatenate([each.probabilities for each in sets]),
            np.concatenate(ids) if len(ids) == len(sets) else None,
        )

    def rows(self, rows: slice | NDArray[np.int64]) -> Features:
        """The examples at `rows`, not checked again; a slice is a view."""
        ids = None if self.ids is None else self.ids[rows]
        return Features.trusted(self.embeddings[rows], self.probabilities[rows], ids)

    def blocks(self, size: int) -> Iterator[tuple[int, Features]]:
        """Yield (index of the first row, `size` rows) until all rows have come."""
        for start in range(0, len(self), size):
            yield start, self.rows(slice(start, start + size))

    def __repr__(self) -> str:
        return f"Features(n={len(self)}, d={self.d}, K={self.K}, {self.embeddings.dtype}/{self.probabilities.dtype})"


class Widths(Protocol):
    """A set in memory or on disk: the width of its embeddings, and its number of classes; 0 if they are not read."""

    @property
    def d(self) -> int: ...

    @property
    def K(self) -> int: ...


def check_alike(pool: Widths, **others: Widths | None) -> None:
    """Every set given must have the pool's embedding width and classes. A pool whose embeddings are not read fits all:
    at most the number of the others' examples matters then.
    """
    for name, other in others.items():
        if other is not None and pool.d and (other.d != pool.d or (pool.K and other.K != pool.K)):
            classes, others_classes = (f" and {pool.K} classes", f" and {other.K}") if pool.K else ("", "")
            raise InputError(
                f"the pool has embeddings of {pool.d} numbers{classes}, but {name} has {other.d}{others_classes}; "
                "compute both with the same model over the same classes."
            )


def _check_classifier(classifier: Any) -> None:
    name = classifier.__name__ if inspect.isclass(classifier) else type(classifier).__name__
    if inspect.isclass(classifier):
        raise InputError(f"the classifier is the class {name}; give a fitted one, such as {name}().fit(X, y).")
    if not callable(getattr(classifier, "predict_proba", None)):
        raise InputError(
            f"{name} has no predict_proba; give a classifier that has one, such as LogisticRegression, or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )


def _predicted(classifier: Any, X: Any) -> Array:
    from sklearn.exceptions import NotFittedError

    name = type(classifier).__name__
    try:
        given = classifier.predict_proba(X)
    except NotFittedError:
        raise InputError(f"{name} has not been fitted; call its fit(X, y) with the labels you have first.") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} does not take this X: {one_line(error)}") from error
    if isinstance(given, list):  # of scikit-learn's classifiers that predict several things at once
        raise InputError(f"{name} predicts {len(given)} outputs at once; give a classifier with one.")
    return np.asarray(given)


def _last_inputs(classifier: Any, X: Any) -> Any:
    """What the last step of a pipeline sees of X; X itself for any other classifier."""
    steps = getattr(classifier, "steps", None)
    return classifier[:-1].transform(X) if steps and len(steps) > 1 else X


def _numbers(given: Any) -> Any:
    """Rows of floats, of an array or a frame."""
    if hasattr(given, "toarray"):
        raise InputError(
            f"the examples are a sparse matrix of shape {given.shape}; make them dense and narrow, for instance with "
            "TruncatedSVD before the classifier, or give embeddings=."
        )
    names = getattr(given, "column_names", getattr(given, "columns", None))
    if names is not None and not isinstance(given, np.ndarray):
        columns = []
        for name in names:
            column = np.asarray(given[name])
            if column.dtype.kind not in "fiub":
                raise InputError(
                    f"the column {name!r} of X holds {column.dtype}, not numbers; give embeddings=, or a Pipeline "
                    "whose first steps turn it into numbers."
                )
            columns.append(column)
        return np.column_stack(columns).astype(np.float64, copy=False) if columns else np.empty((len(given), 0))
    array = np.asanyarray(given)
    return array.astype(np.float64) if array.dtype.kind in "iub" else given


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


def _as_ids(given: Any, n: int) -> Array:
    """Ids as an array of numbers or, in whatever else they are, of objects: one for each row, all different."""
    try:
        ids = np.asarray(given)
    except ValueError:
        raise InputError(f"ids are {a_type(given)} of unequal lists; give one number or text per row.") from None
    if ids.ndim != 1 or isinstance(given, str):
        raise InputError(f"ids are {a_type(given)} of shape {ids.shape}; give one number or text per row.")
    if len(ids) != n:
        raise InputError(f"there are {len(ids)} ids for {n} rows; give one for each.")
    row_of: dict[Any, int] = {}
    for row, name in enumerate(ids.tolist()):
        if name is None or name != name:  # NaN and the missing values of pandas are not equal to themselves
            raise InputError(f"ids: row {row} has none ({name!r}); give one for each row.")
        if row_of.setdefault(name, row) != row:
            raise InputError(f"ids: {name!r} is the id of rows {row_of[name]} and {row}; give each row its own.")
    return ids


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
            if np.isnan(block[row, column]):
                fault = "is nan; the model's weights or its inputs are not finite, so train it again or repair them."
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

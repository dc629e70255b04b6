"""The kernel head by scikit-learn's conventions: fit, predict, predict_proba, clone, grid search, pipelines.

head = KernelRidgeHead(pool_learning="self").fit(x, y, pool=unlabelled)
head.predict_proba(rows)
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from accuacl.base.errors import InputError
from accuacl.experiments.heads.calibration import softmax
from accuacl.experiments.heads.kernel import candidates_for
from accuacl.experiments.heads.kernels import Blocks, Term
from accuacl.experiments.heads.pool import OFF, check_mode, fit_with_pool, sample_rows

CHOSEN = "chosen"  # by leave-one-out


class KernelRidgeHead(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Class-balanced kernel ridge regression, which chooses its settings by leave-one-out.

    kernels: a name or names of `linear`, `gaussian` and `arc-cosine`, which are added for each block of columns, or
    "chosen": by leave-one-out among a few sums. blocks: ranges of columns that belong together, such as
    [(0, 256), (256, 4352)]; None: one block of all. ridge: None: by leave-one-out. pool_learning: `off`, `self` or
    `smooth`; `fit` then takes the unlabelled rows of the pool, of which it looks at up to 1,200.

    >>> x = [[1.0, 0.1], [0.9, 0.0], [0.0, 1.0], [0.1, 0.8]]
    >>> KernelRidgeHead().fit(x, ["a", "a", "b", "b"]).predict([[0.7, 0.2]]).tolist()
    ['a']
    """

    def __init__(
        self,
        kernels: str | tuple[str, ...] = ("linear", "gaussian"),
        blocks: Blocks | None = None,
        ridge: float | None = None,
        pool_learning: str = OFF,
    ) -> None:
        self.kernels, self.blocks, self.ridge, self.pool_learning = kernels, blocks, ridge, pool_learning

    def fit(self, X: Any, y: Any, pool: Any = None) -> Self:
        """Learn from rows X with labels y. pool: rows without labels, or a list of such pools, one of each task."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if self.ridge is not None and not (np.isfinite(self.ridge) and self.ridge > 0):
            raise InputError(
                f"the ridge is {self.ridge}; give a number above 0, or None, and leave-one-out chooses it."
            )
        blocks = [(0, X.shape[1])] if self.blocks is None else list(self.blocks)
        if not blocks:
            raise InputError("blocks is empty; give ranges of columns such as [(0, 256)], or None for one of all.")
        candidates = candidates_for(blocks)
        if self.kernels != CHOSEN:
            names = (self.kernels,) if isinstance(self.kernels, str) else tuple(self.kernels)
            candidates = [tuple(Term(name, block) for block in blocks for name in names)]
        check_mode(self.pool_learning)
        pools = [] if pool is None or self.pool_learning == OFF else _pools(pool, X)
        self.head_: Any = fit_with_pool(
            X,
            labels,
            [sample_rows(rows, len(pools)) for rows in pools],
            mode=self.pool_learning,
            candidates=candidates,
            blocks=tuple(blocks),
            ridge=0.0 if self.ridge is None else self.ridge,
        )
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Logits, one column per class; for two classes, those of the second minus those of the first."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return softmax(self._logits(X))

    def predict(self, X: Any) -> NDArray[Any]:
        columns = self._logits(X).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[columns]
        return predicted

    def _logits(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        logits: NDArray[np.float64] = self.head_.logits(
            validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        )
        return logits


def _pools(pool: Any, labelled: NDArray[Any]) -> list[NDArray[Any]]:
    """The pools that were given, one or a list of some, as arrays with the columns of the labelled rows."""
    several = isinstance(pool, list | tuple) and (len(pool) == 0 or np.ndim(pool[0]) == 2)
    pools = []
    for rows in pool if several else [pool]:
        rows = check_array(rows, dtype=[np.float64, np.float32], ensure_min_samples=0, input_name="pool")
        if rows.shape[1] != labelled.shape[1]:
            raise InputError(
                f"the pool has {rows.shape[1]} columns and the labelled rows have {labelled.shape[1]}; give the same."
            )
        pools.append(rows)
    return pools

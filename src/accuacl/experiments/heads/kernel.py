"""Class-balanced kernel ridge regression on frozen features: exact, order-independent, learned in one step.

    head = fit(x, labels)                       # kernels, their weights and the ridge: by leave-one-out
    head.probabilities(rows)                    # calibrated by leave-one-out

The head is a function of the set of labelled rows: rows are put into an order of their own first, so that a label that
was added, corrected or removed, or a class that was merged, gives to the bit what fitting the same rows from the
beginning gives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from accuacl.base.errors import InputError
from accuacl.experiments.heads.calibration import (
    STEP,
    STEPS,
    Floats,
    Ints,
    best_sharpness,
    best_step,
    log_loss,
    softmax,
)
from accuacl.experiments.heads.kernels import (
    KERNELS,
    Blocks,
    Cosines,
    Smoothing,
    Term,
    Terms,
    add_terms,
    kernel_by_parts,
    unit_rows,
)
from accuacl.experiments.heads.rows import checked, order_of, part_of, table_of

TYPICAL = 0.1  # the ridge that is tried first, in units of the mean squared length of a centred row
CHOSEN_ON = 600  # kernels and ridge are chosen on this many rows of a larger set, or on PER_CLASS of each class
PER_CLASS = 4
EXACT = 5000  # a larger set is approximated
LANDMARKS = 2000  # by as many rows as this
ALIKE = 1e-12  # rows whose squared distances are below this share of their squared lengths are the same
PREDICTED = 1024  # rows that are predicted at a time
Which = slice | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class KernelHead:
    """Outputs are sums over support rows: kernel(row, support) @ coefficients + bias, one column per class.

    sharpness: already multiplied into coefficients and bias, so that softmax of logits is calibrated. loo: the logits
    that each labelled row would get if it were left out, in the order in which rows were given, before the pool taught
    anything; NaN for the only row of its class.
    """

    terms: Terms
    support: NDArray[Any]
    coefficients: Floats
    bias: Floats
    ridge: float
    sharpness: float
    loo: Floats
    smoothing: Smoothing | None = None  # what rows go through first, the support rows have been
    learned: Mapping[str, float] = field(default_factory=dict)  # what the pool has taught (`pool.py`)

    def logits(self, x: NDArray[Any]) -> Floats:
        """One row for each of x, one column for each class."""
        x = table_of(x, "rows", self.support.shape[1])
        parts = (self.smoothing(rows) if self.smoothing else rows for rows in _parts(x))
        kernels = kernel_by_parts(self.terms, parts, self.support)
        outputs = (values @ self.coefficients + self.bias for values in kernels)
        return np.concatenate([np.empty((0, len(self.bias))), *outputs])

    def probabilities(self, x: NDArray[Any]) -> Floats:
        return softmax(self.logits(x))

    def left_out(self, labels: Ints) -> dict[str, float]:
        """The accuracy on left-out rows, and the accuracy that the head expects, in percent."""
        known = ~np.isnan(self.loo).any(axis=1)
        if not known.any():
            return {}
        p = softmax(self.loo[known])
        right = p.argmax(axis=1) == labels[known]
        return {
            "left_out_accuracy": 100 * float(right.mean()),
            "left_out_confidence": 100 * float(p.max(axis=1).mean()),
        }


def fit(
    x: NDArray[Any],
    labels: Ints,
    classes: int = 0,
    *,
    candidates: Sequence[Terms] = (),
    weights: Floats | None = None,
    ids: Ints | None = None,
    ridge: float = 0.0,
) -> KernelHead:
    """The head for rows x (n x d) with labels below `classes` (0: as many as the labels say).

    Outputs f minimise sum_i w_i |f(x_i) - y_i|^2 + r |f|^2 with y = +1 for the class of a row and -1 for the others,
    an intercept that is not penalised, and w_i such that each class that has rows weighs the same. A stepwise search
    chooses the r with the lowest leave-one-out log loss, each r with its best sharpness; the same loss chooses among
    the candidates, which are sums of kernels (none given: `candidates_for` one block). A class without a row gets the
    output -1 everywhere.

    weights: of each row within its class (None: equal). ids: rows are sorted by these numbers (None: by their bytes).
    ridge: used as given if it is above 0, chosen otherwise.

    >>> x = np.array([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    >>> fit(x, np.array([0, 0, 1, 1])).probabilities(x).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    x, labels, weights, classes = checked(x, labels, weights, classes, ids)
    if not (np.isfinite(ridge) and ridge >= 0):
        raise InputError(f"the ridge is {ridge}; give a number above 0, or none, and leave-one-out chooses it.")
    order = order_of(x, labels, weights, ids)
    rows, given = x[order], weights[order]
    seen, own = np.unique(labels[order], return_inverse=True)
    candidates = list(candidates) or candidates_for([(0, x.shape[1])])
    if not all(candidates):
        raise InputError(f"a sum of kernels is empty; name at least one of {', '.join(KERNELS)}.")
    terms, ridge, problem = _choose(rows, own, given, candidates, ridge)
    left_out = problem.left_out(ridge)
    beta = problem.sharpness(left_out)
    support, coefficients, bias = problem.solution(ridge)
    return KernelHead(
        terms,
        rows if len(support) == len(rows) else rows[support],
        beta * widened(coefficients, seen, classes, 0.0),
        beta * widened(bias[None], seen, classes, -1.0)[0],
        ridge,
        beta,
        beta * widened(left_out, seen, classes, -1.0)[np.argsort(order)],
    )


def candidates_for(blocks: Blocks) -> list[Terms]:
    """Sums of kernels to choose from: linear, gaussian or both of the first block, linear of others at some weights."""
    linear, gaussian = Term("linear", blocks[0]), Term("gaussian", blocks[0])
    tried: list[Terms] = [(linear,), (gaussian,), (linear, gaussian)]
    for block in blocks[1:]:
        tried = [(*terms, Term("linear", block, weight)) for terms in tried for weight in (0.3, 1.0)]
    return tried


def _choose(
    rows: NDArray[Any], own: Ints, given: Floats, candidates: Sequence[Terms], ridge: float
) -> tuple[Terms, float, Problem | LandmarkProblem]:
    """The candidate and the ridge with the smallest leave-one-out log loss, and the problem to solve with them."""
    part = part_of(own, min(EXACT, max(CHOSEN_ON, PER_CLASS * (int(own.max()) + 1))))
    cosines, inside = _Cosines(rows[part]), np.unique(own[part], return_inverse=True)[1]
    gram = gram_of(rows, candidates[0]) if len(candidates) == 1 and len(rows) <= EXACT else None
    tried: list[tuple[float, Terms, float, int]] = []
    for terms in candidates:
        if len(candidates) == 1 and ridge:  # nothing is to be chosen
            tried.append((0.0, terms, ridge, 0))
            continue
        problem = Problem(cosines.gram(terms) if gram is None else gram[np.ix_(part, part)], inside, given[part])
        step, loss = (0, problem.loss(ridge)) if ridge else best_step(problem.loss_at)
        tried.append((loss, terms, ridge or problem.ridge_at(step), step))
    _, terms, ridge, step = min(tried, key=itemgetter(0))
    whole: Problem | LandmarkProblem
    if len(rows) > EXACT:
        whole = LandmarkProblem(rows, terms, part_of(own, LANDMARKS), own, given)
    else:
        if gram is None:
            gram = cosines.gram(terms) if len(part) == len(rows) else gram_of(rows, terms)
        whole = Problem(gram, own, given)
    if step == -STEPS and len(part) < len(rows):  # a part that is separated by chance may say nothing of all rows
        ridge = min(ridge, whole.ridge_at(0), key=whole.loss)
    return terms, ridge, whole


def gram_of(rows: NDArray[Any], terms: Terms) -> Floats:
    """The kernel between all pairs of rows."""
    for known, prepared, gram in _prepared:
        if known == terms and prepared.dtype == rows.dtype and np.array_equal(prepared, rows):
            return gram
    return _Cosines(rows).gram(terms)


def prepare_gram(rows: NDArray[Any], terms: Terms) -> None:
    """Keep the kernel between rows, so that a `fit` of the same rows in this order has less to do."""
    _prepared.clear()  # one is kept at a time
    if CHOSEN_ON < len(rows) <= EXACT:
        _prepared.append((terms, rows, gram_of(rows, terms)))


_prepared: list[tuple[Terms, NDArray[Any], Floats]] = []


class _Cosines:
    """Cosines of rows, computed once for each block of columns."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows, self.by_block = rows, dict[tuple[int, int], Cosines]()

    def gram(self, terms: Terms) -> Floats:
        total = np.zeros((len(self.rows), len(self.rows)))
        for columns in dict.fromkeys(term.columns for term in terms):
            if columns not in self.by_block:
                self.by_block[columns] = Cosines(unit_rows(self.rows, columns))
            add_terms(total, terms, columns, self.by_block[columns])
        return total


class _Balanced(ABC):
    """What problems share: weights by which each class counts the same, targets, and how left-out rows are judged."""

    mean_length: float  # the mean squared length of a centred row

    def __init__(self, own: Ints, given: Floats) -> None:
        """own: the classes of rows; each of 0 .. K-1 occurs. given: what each counts for among those of its class."""
        total, mass = given.sum(), np.bincount(own, given)
        self.own = own
        self.weights = given * total / (len(mass) * mass[own])
        self.share = self.weights / total  # sums to 1
        self.alone = np.bincount(own)[own] == 1  # leaving such a row out would leave nothing of its class
        self.targets = 2.0 * (own[:, None] == np.arange(len(mass))) - 1
        self.middle = np.full(len(mass), 2 / len(mass) - 1)  # the weighted mean of targets
        self.root = np.sqrt(self.weights)[:, None]
        self.wanted = self.root * (self.targets - self.middle)

    @abstractmethod
    def left_out(self, ridge: float) -> Floats:
        """The output for each row of a fit without it, with the same weights (n x K); NaN if its class has no other."""

    def ridge_at(self, step: int) -> float:
        """The ridge that is tried first, and those so many steps above or below it."""
        return TYPICAL * (self.mean_length or 1.0) * STEP**step

    def loss_at(self, step: int) -> float:
        return self.loss(self.ridge_at(step))

    def loss(self, ridge: float) -> float:
        """The leave-one-out log loss with its best sharpness."""
        known = self._known(self.left_out(ridge))
        return log_loss(*known, best_sharpness(*known))

    def _predicted(self, residual: Floats, rest: Floats, which: Which = slice(None)) -> Floats:
        """Left-out outputs: a row's residual grows by 1 / (1 - hat), its own share of its fitted value."""
        scale = np.where(self.alone[which], np.nan, rest)[:, None] * self.root[which]
        return np.asarray(self.targets[which] - residual / scale, np.float64)

    def _known(self, left_out: Floats) -> tuple[Floats, Ints, Floats]:
        known = ~np.isnan(left_out).any(axis=1)
        return left_out[known], self.own[known], self.weights[known]

    def sharpness(self, left_out: Floats) -> float:
        return best_sharpness(*self._known(left_out))


class Problem(_Balanced):
    """Kernel ridge regression in the dual, for a kernel matrix between all rows.

    Rows are centred by their weighted mean in the kernel's space, which sets the intercept free. Matrices are kept as
    LAPACK wants them, column by column, so that it copies none.
    """

    def __init__(self, gram: Floats, own: Ints, given: Floats) -> None:
        super().__init__(own, given)
        self.offset = gram @ self.share
        centred = gram.T - self.offset[:, None]
        centred -= self.offset[None, :]
        centred += self.share @ self.offset
        centred *= self.root
        centred *= self.root.T
        self.centred = centred
        mean_length = float(np.trace(centred) / given.sum())
        alike = mean_length <= ALIKE * float(np.trace(gram) / len(gram))
        self.mean_length = 0.0 if alike else mean_length  # what is left is rounding errors
        self._duals: dict[float, Floats] = {}

    def left_out(self, ridge: float) -> Floats:
        half, _ = lapack.dtrtri(self._factor(ridge), lower=1, overwrite_c=1)
        diagonal = np.einsum("ij,ij->j", half, half)  # of the inverse
        u_share = self.share / (2 * ridge + self.mean_length)
        return self._predicted(ridge * self._duals[ridge], ridge * (diagonal - u_share))

    def solution(self, ridge: float) -> tuple[NDArray[np.intp], Floats, Floats]:
        """(which rows are support rows, their coefficients, the intercepts)."""
        if ridge not in self._duals:
            self._factor(ridge)
        coefficients = self.root * self._duals[ridge]  # sums to 0 over rows, so centring moves the intercept alone
        return np.arange(len(self.own)), coefficients, self.middle - self.offset @ coefficients

    def _factor(self, ridge: float) -> Floats:
        """A Cholesky factor of centred + ridge + a multiple of u u^T; keeps the dual solution, the last one alone.

        The rows' weighted sum is 0, so `centred` has the unit vector u of roots of shares in its null space, where the
        inverse is 1 / ridge: adding a multiple of u u^T keeps small ridges from cancelling, and changes nothing else.
        """
        u = np.sqrt(self.share)
        matrix = np.outer(u, (ridge + self.mean_length) * u).T
        matrix += self.centred
        matrix.T.flat[:: len(matrix) + 1] += ridge
        factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
        if failed:
            raise InputError("the kernel matrix is not positive definite; scale the rows, or give a larger ridge.")
        self._duals = {ridge: lapack.dpotrs(factor, self.wanted, lower=1)[0]}
        return np.asarray(factor, np.float64)


class LandmarkProblem(_Balanced):
    """Fit the kernel on landmarks (Nystrom approximation): a linear model in K(x, landmarks) C^-T.

    C is the Cholesky factor: C C^T = K(landmarks, landmarks).
    """

    def __init__(self, rows: NDArray[Any], terms: Terms, landmarks: NDArray[np.intp], own: Ints, given: Floats) -> None:
        super().__init__(own, given)
        self.landmarks, support = landmarks, rows[landmarks]
        features = np.concatenate(list(kernel_by_parts(terms, _parts(rows), support)))
        gram = features[landmarks]
        gram.flat[:: len(gram) + 1] += 1e-8 * np.trace(gram) / len(gram)
        self.factor = np.linalg.cholesky(gram)
        self.features = solve_triangular(self.factor, features.T, lower=True, overwrite_b=True).T
        self.mean = self.share @ self.features
        self.centred = self.root * (self.features - self.mean)
        self.gram = self.centred.T @ self.centred
        self.mean_length = float(np.trace(self.gram) / given.sum())
        self._factors: dict[float, Floats] = {}

    def _factor(self, ridge: float) -> Floats:
        if ridge not in self._factors:
            self._factors[ridge] = np.linalg.cholesky(self.gram + ridge * np.eye(len(self.gram)))
        return self._factors[ridge]

    def left_out(self, ridge: float, which: Which = slice(None)) -> Floats:
        """The output for each row, or for some rows, of a fit without it."""
        factor = self._factor(ridge)
        half = solve_triangular(factor, self.centred[which].T, lower=True)
        residual = self.wanted[which] - half.T @ self._inner(ridge)
        return self._predicted(residual, 1 - np.einsum("ij,ij->j", half, half) - self.share[which], which)

    def _inner(self, ridge: float) -> Floats:
        return np.asarray(solve_triangular(self._factor(ridge), self.centred.T @ self.wanted, lower=True), np.float64)

    def solution(self, ridge: float) -> tuple[NDArray[np.intp], Floats, Floats]:
        slopes = solve_triangular(self._factor(ridge), self._inner(ridge), lower=True, trans=1)
        coefficients = solve_triangular(self.factor, slopes, lower=True, trans=1)
        return self.landmarks, coefficients, self.middle - self.mean @ slopes


def _parts(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (rows[start : start + PREDICTED] for start in range(0, len(rows), PREDICTED))


def widened(columns: Floats, seen: Ints, classes: int, otherwise: float) -> Floats:
    """The columns at the places of the classes seen, and a number in those of all other classes."""
    wide = np.full((len(columns), classes), otherwise)
    wide[:, seen] = columns
    return wide

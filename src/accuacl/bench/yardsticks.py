"""What a strategy is compared with: the floor below which it cannot go, and its dense definition."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from accuacl import fisher, reference
from accuacl.bench.cases import Case
from accuacl.bench.timing import timed
from accuacl.features import Array, Features

# Strategies by what they compute; for those of accuacl, the only score that they use ("": both).
ACCUACL = {
    "accuacl": "", "accuacl-full": "", "accuacl-magnitude": "magnitude", "accuacl-distribution": "distribution"
}  # fmt: skip
BADGE, KCENTER = ("badge", "badge+memory"), ("kcenter", "kcenter+memory")
WITH_MEMORY = ("badge+memory", "kcenter+memory", "coverage+memory")  # these also look at the memory
COVERAGE = ("coverage", "coverage+memory", "uncertain-coverage")
MIXED = {"accuacl+uniform": ("accuacl",), "accuacl+coverage": ("accuacl", "coverage")}  # what they must do
UNCERTAINTY = ("entropy", "least-confidence", "margin")


def floor(case: Case, pool: Features) -> float | None:
    """CPU seconds of the work that cannot be avoided; a long product is measured on a slice."""
    h, p = pool.embeddings, pool.probabilities
    if case.strategy in MIXED:
        return sum(floor(replace(case, strategy=part), pool) or 0.0 for part in MIXED[case.strategy])
    if case.strategy in ACCUACL:
        a, g = np.ones((fisher.SUM_ROWS, case.K)), np.ones((fisher.SUM_ROWS, case.d))
        blocks = math.ceil((case.n + case.m) / fisher.SUM_ROWS)
        return timed(lambda: ([a.T @ g for _ in range(blocks)], _read(h), _read(p)))[0]
    if case.strategy in BADGE:
        return timed(lambda: [h @ h[row] for row in range(min(case.b, case.n))])[0]
    if case.strategy in KCENTER:
        start = case.labelled + (case.m if case.strategy in WITH_MEMORY else 0)
        centres = np.ones((case.d, case.b + start), np.float32)
        return timed(lambda: [h[i : i + 2048] @ centres for i in range(0, case.n, 2048)])[0]
    if case.strategy == "bait":  # M^-1 F M^-1 once, and h @ [Z | W] at every pick
        wide, part = np.ones((case.d * case.K,) * 2), math.ceil(case.d * case.K / 32)
        both, block = np.ones((case.d, 2 * case.K**2)), np.ones((min(case.n, 200), case.d))
        once = 2 * 32 * timed(lambda: wide[:part] @ wide)[0]
        return once + 2 * case.b * case.n / len(block) * timed(lambda: block @ both)[0]
    if case.strategy in COVERAGE:  # H H^T in blocks, and a pass over it
        x = h / np.maximum(np.linalg.norm(h, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return math.ceil(case.n / len(x[:512])) * timed(functools.partial(_kernel_sums, x, x[:512]))[0]
    if case.strategy == "fisher-ratio":  # T, H M^-1 and H M^-1 T once, and the last two times a vector at every pick
        double, wide = h[:4096].astype(np.float64), np.ones((case.d, 3 * case.d + 2 * case.b))
        return case.n / len(double) * timed(lambda: double @ wide)[0]
    if case.strategy in ("uniform", "typiclust"):
        return None
    return timed(lambda: _read(p))[0]


def _kernel_sums(x: Array, rows: Array) -> Array:
    kernel = rows @ x.T
    np.exp(kernel, out=kernel)
    np.maximum(kernel, 0, out=kernel)
    return np.asarray(kernel.sum(axis=1))


def _read(array: Array) -> float:
    return sum(float(array[i : i + 4096].sum()) for i in range(0, len(array), 4096))


def _extrapolated(definition: Callable[[int], Any], budget: int) -> tuple[float, int]:
    """CPU seconds and extra bytes of `budget` picks of equal cost, extrapolated from two and from ten."""
    few, many = (timed(functools.partial(definition, picks)) for picks in (2, 10))
    return few[0] + (budget - 2) * max(0.0, many[0] - few[0]) / 8, many[2]


def dense(
    case: Case, pool: Features, memory: Features | None, labelled: Features | None, limit: int
) -> tuple[float, int] | None:
    """CPU seconds and extra bytes of the definition in its usual precision, if it fits into memory."""
    replay = memory if case.strategy in WITH_MEMORY else None
    embeddings = 4 * case.n * case.d * case.K
    if case.strategy in ACCUACL and 2 * embeddings <= limit:
        lam = fisher.past_weight(9 * case.n, case.n + case.labelled) if memory is not None else 0.0
        score = ACCUACL[case.strategy]
        job = functools.partial(reference.accuacl, pool, case.b, memory, lam, dtype=np.float32, only=score)
    elif case.strategy in BADGE and 2 * embeddings <= limit:
        # Every centre costs the same and there may be many: measured on ten and multiplied.
        cpu, _, extra = timed(lambda: reference.badge(pool, np.linspace(0, 0.9, 10), dtype=np.float32))
        return cpu * (case.b + len(replay or ())) / 10, extra
    elif case.strategy in KCENTER:
        start = [features for features in (labelled, replay) if features is not None]
        job = functools.partial(reference.kcenter, pool, case.b, start, np.float32)
    elif case.strategy == "bait" and case.d * case.K <= 1000 and 2 * case.K * 2 * embeddings <= limit:
        job = functools.partial(reference.bait, pool, case.b, labelled)
    elif case.strategy in COVERAGE and 16 * case.n**2 <= limit:
        return _extrapolated(lambda b: reference.coverage(pool, b, labelled, dtype=np.float32, memory=replay), case.b)
    elif case.strategy == "fisher-ratio" and 32 * case.n * case.d <= limit:
        return _extrapolated(lambda b: reference.fisher_ratio(pool, b, labelled, memory, 0.9), case.b)
    elif case.strategy in UNCERTAINTY:
        job = functools.partial(reference.uncertainty, pool, case.b, case.strategy, np.float32)
    else:
        return None
    cpu, _, extra = timed(job)
    return cpu, extra

"""What a strategy answers, checked: those of users are held to the rules with a sentence that names file and line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.userfile import with_place
from accuacl.strategies.query import Query, Selection


def check_answer(name: str, strategy: Callable[..., Any], picked: Any, query: Query) -> Selection:
    """The answer of a strategy, if it is what the query asked for."""
    who = with_place(f"the strategy {name}", strategy)
    if not isinstance(picked, Selection):
        raise InputError(f"{who} gave a {type(picked).__name__}; return Selection(indices, scores).")
    indices = picked.indices
    if not isinstance(indices, np.ndarray) or indices.dtype.kind not in "iu" or indices.ndim != 1:
        shape = f" of {indices.dtype}, shape {indices.shape}" if isinstance(indices, np.ndarray) else ""
        raise InputError(
            f"{who} gave indices that are a {type(indices).__name__}{shape}; give whole numbers in one dimension, "
            "such as np.argsort(...)[: query.count]."
        )
    n = len(query.pool)
    if len(indices) != query.count:
        raise InputError(f"{who} picked {len(indices)} rows; pick query.count of them, here {query.count}.")
    outside = indices[(indices < 0) | (indices >= n)]
    if len(outside):
        raise InputError(f"{who} picked row {outside[0]}, but the pool has the rows 0 to {n - 1}.")
    rows, counts = np.unique(indices, return_counts=True)
    if len(rows) < len(indices):
        raise InputError(f"{who} picked row {rows[counts.argmax()]} {counts.max()} times; pick different rows.")
    _check_scores(who, picked)
    return picked


def _check_scores(who: str, picked: Selection) -> None:
    if not isinstance(picked.scores, dict):
        raise InputError(
            f"{who} gave scores that are a {type(picked.scores).__name__}; give a dict of arrays, or {{}}."
        )
    for score, values in picked.scores.items():
        if not isinstance(values, np.ndarray) or values.shape != picked.indices.shape or values.dtype.kind not in "fiu":
            raise InputError(
                f"{who} gave the score {score!r} as {_shape(values)}; give an array, one number for a pick."
            )
        if not np.isfinite(values).all():
            pick = int(np.argmax(~np.isfinite(values)))
            raise InputError(f"{who} gave the score {score!r} of pick {pick} as {values[pick]}; all must be finite.")


def _shape(values: Any) -> str:
    if isinstance(values, np.ndarray):
        return f"an array of {values.dtype}, shape {values.shape}"
    return f"a {type(values).__name__}"

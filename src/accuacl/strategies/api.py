"""`select`, the one call for all strategies: what they are asked, what they answer, and the memory that they need."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, a_type, install
from accuacl.base.machine import available_memory
from accuacl.base.progress import OnProgress, Tick, check_progress, ticker
from accuacl.base.threads import shared_out
from accuacl.base.userfile import with_place
from accuacl.features import Features, check_alike
from accuacl.strategies.registry import BUILT_IN, REGISTRY, check_options

Strategy = TypeVar("Strategy", bound=Callable[..., object])
Needs = Callable[[int, int, int], int]  # bytes beyond the pool itself, for n examples, d wide, of K classes
WITHOUT_MEMORY = {
    "badge+memory": "badge",
    "kcenter+memory": "kcenter",
    "coverage+memory": "coverage",
}  # what each is without one
SHOWN = 10  # picks that a selection's text shows


@dataclass(frozen=True)
class Query:
    """What a strategy is asked: which `budget` examples of `pool` should be labelled next?

    `labelled`: those labelled earlier in this task. `memory`: the replay buffer. `past`: how many examples all
    finished tasks had. `chunk` is the number of rows processed at a time (0: the strategy's own choice); the answer
    does not depend on it. `classes`: the class of each labelled example, as a column of the probabilities, if known.
    """

    pool: Features
    budget: int
    labelled: Features | None = None
    memory: Features | None = None
    past: int | None = None
    seed: int = 0
    chunk: int = 0
    progress: OnProgress | None = None
    classes: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name in ("pool", "labelled", "memory"):
            value = getattr(self, name)
            if not isinstance(value, Features) and (value is not None or name == "pool"):
                raise InputError(f"{name} is {a_type(value)}; give Features(embeddings, probabilities).")
        for name in ("budget", "seed", "chunk", "past"):
            value = getattr(self, name)
            if value is None and name == "past":
                continue
            object.__setattr__(self, name, whole_number(name, value, 0))
        object.__setattr__(self, "chunk", min(self.chunk, max(1, len(self.pool))))
        check_alike(self.pool, labelled=self.labelled, memory=self.memory)
        if self.classes is not None:
            object.__setattr__(self, "classes", self._checked(np.asarray(self.classes)))

    def _checked(self, classes: NDArray[Any]) -> NDArray[np.int64]:
        labelled = len(self.labelled or ())
        if classes.shape != (labelled,) or (classes.dtype.kind not in "iu" and labelled):
            raise InputError(
                f"classes are {classes.dtype} of shape {classes.shape}; give a whole number for each of the {labelled} "
                "labelled examples."
            )
        outside = classes[(classes < 0) | (classes >= self.pool.K)]
        if len(outside):
            raise InputError(f"classes has {outside[0]}, but there are the classes 0 to {self.pool.K - 1}.")
        return classes.astype(np.int64)

    @property
    def count(self) -> int:
        """How many examples to pick: `budget`, or all of a smaller pool."""
        return min(self.budget, len(self.pool))

    def ticker(self, total: int) -> Tick:
        """A function that reports progress: call it with how much more of `total` is done, in any unit."""
        return ticker(total, self.progress, "choosing")


@dataclass(frozen=True, repr=False)
class Selection:
    """The picked rows of the pool in selection order, and for each the scores that explain it.

    >>> Selection(np.array([7, 2]), {"margin": np.array([0.125, 0.25])})
    Selection of 2 rows, best first:
      row  margin
        7   0.125
        2    0.25
    """

    indices: NDArray[np.int64]
    scores: dict[str, NDArray[np.float64]]
    ids: NDArray[Any] | None = None  # what the picks are called, if the pool's examples have ids

    def __len__(self) -> int:
        return len(self.indices)

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row for each pick in selection order: `row`, `id` if there are ids, and the scores.

        Needs the extra `frames`.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            raise InputError(f"to_frame needs pandas, the extra `frames`; {install('frames')}.") from None
        ids = {} if self.ids is None else {"id": self.ids}
        return pandas.DataFrame({"row": self.indices, **ids, **self.scores})

    def __repr__(self) -> str:
        names = self.indices if self.ids is None else self.ids
        lines = [["row" if self.ids is None else "id", *self.scores]]
        for i, name in enumerate(names[:SHOWN]):
            lines.append([str(name), *(f"{values[i]:.4g}" for values in self.scores.values())])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = ["".join(f"  {cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines]
        more = [f"... and {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return "\n".join([f"Selection of {len(self)} rows, best first:", *shown, *more])


def whole_number(name: str, value: Any, least: int) -> int:
    """An option that counts something; bools and floats are not counts."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}; give a whole number of at least {least}.")
    return int(value)


def get_strategy(name: str, **options: Any) -> Callable[[Query], Selection]:
    """The strategy called `name` with its options set; call it with a `Query`.

    >>> get_strategy("accuacl", lam=2)
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: lam is 2; give a number from 0 to 1.
    """
    checked, strategy = check_options(name, options), REGISTRY[name]
    return functools.update_wrapper(functools.partial(_ask, strategy, checked), strategy)


def _ask(strategy: Callable[..., Selection], options: dict[str, Any], query: Query) -> Selection:
    with shared_out():
        return strategy(query, **options)


def select(
    strategy: str,
    *,
    pool: Features,
    budget: int,
    labelled: Features | None = None,
    memory: Features | None = None,
    past: int | None = None,
    seed: int = 0,
    chunk: int = 0,
    progress: OnProgress | None = None,
    classes: Any = None,
    **options: Any,
) -> Selection:
    """Which `budget` examples of `pool` should be labelled next?

    pool: the examples that have no label yet. labelled: those labelled earlier in this task. memory: the replay buffer
    of past tasks. past: how many examples, labelled or not, all finished tasks had (AccuACL needs it, or lam, to weigh
    the memory). seed: for strategies that draw at random. chunk: rows processed at a time (0: chosen for you).
    progress: called with a `Progress` as the work proceeds. classes: the class of each labelled example, as a column of
    the probabilities, for direct and anchoral. options: the strategy's own, by name.

    Picks do not depend on the number of threads, the chunk size or the type of the arrays. Large computations are
    shared among as many threads as BLAS and torch may use; one thread does the small ones, which more would slow down.

    >>> import numpy as np
    >>> pool = Features(np.eye(4, 2), [[0.5, 0.5], [0.9, 0.1], [0.6, 0.4], [1.0, 0.0]])
    >>> picked = select("entropy", pool=pool, budget=2)
    >>> picked.indices
    array([0, 2])
    >>> picked.scores["entropy"].round(3)
    array([0.693, 0.673])

    If the pool's `Features` have ids, `picked.ids` names the picks.
    """
    ask = get_strategy(strategy, **options)
    check_progress(progress)
    warn_without_memory(strategy, memory, past, options)
    query = Query(pool, budget, labelled, memory, past, seed, chunk, progress, classes)
    with np.errstate(invalid="ignore"):  # some of OpenBLAS's kernels raise this flag for products of finite numbers
        picked = ask(query)
    if strategy not in BUILT_IN:
        check_answer(strategy, REGISTRY[strategy], picked, query)
    return picked if pool.ids is None else replace(picked, ids=pool.ids[picked.indices])


class BadAnswer(InputError):
    """A strategy's answer does not fit the query."""


def check_answer(name: str, strategy: Callable[..., Any], picked: Any, query: Query) -> Selection:
    """Return a strategy's answer if it fits the query; refuse it otherwise."""
    who = with_place(f"the strategy {name}", strategy)
    if not isinstance(picked, Selection):
        raise BadAnswer(f"{who} gave {a_type(picked)}; return Selection(indices, scores).")
    indices = picked.indices
    if not isinstance(indices, np.ndarray) or indices.dtype.kind not in "iu" or indices.ndim != 1:
        shape = f" of {indices.dtype}, shape {indices.shape}" if isinstance(indices, np.ndarray) else ""
        raise BadAnswer(
            f"{who} gave indices that are {a_type(indices)}{shape}; give whole numbers in one dimension, "
            "such as np.argsort(...)[: query.count]."
        )
    n = len(query.pool)
    if len(indices) != query.count:
        raise BadAnswer(f"{who} picked {len(indices)} rows; pick query.count of them, here {query.count}.")
    outside = indices[(indices < 0) | (indices >= n)]
    if len(outside):
        raise BadAnswer(f"{who} picked row {outside[0]}, but the pool has the rows 0 to {n - 1}.")
    rows, counts = np.unique(indices, return_counts=True)
    if len(rows) < len(indices):
        raise BadAnswer(f"{who} picked row {rows[counts.argmax()]} {counts.max()} times; pick different rows.")
    _check_scores(who, picked)
    return picked


def _check_scores(who: str, picked: Selection) -> None:
    if not isinstance(picked.scores, dict):
        raise BadAnswer(f"{who} gave scores that are {a_type(picked.scores)}; give a dict of arrays, or {{}}.")
    for score, values in picked.scores.items():
        if not isinstance(values, np.ndarray) or values.shape != picked.indices.shape or values.dtype.kind not in "fiu":
            shape = f" of {values.dtype}, shape {values.shape}" if isinstance(values, np.ndarray) else ""
            raise BadAnswer(
                f"{who} gave the score {score!r} as {a_type(values)}{shape}; give an array with one number per pick."
            )
        if not np.isfinite(values).all():
            pick = int(np.argmax(~np.isfinite(values)))
            raise BadAnswer(f"{who} gave the score {score!r} of pick {pick} as {values[pick]}; all must be finite.")


def warn_without_memory(strategy: str, memory: object, past: int | None, options: Mapping[str, Any]) -> None:
    """Warn if the strategy, `past` or `lam` has no effect because no memory was given.

    In the first task of a stream, which has no past, give an empty memory, or none of the three.
    """
    if memory is not None:
        return
    if strategy in WITHOUT_MEMORY:
        warnings.warn(
            f"{strategy} avoids what the memory holds; without a memory it picks as {WITHOUT_MEMORY[strategy]} does.",
            stacklevel=3,
        )
    lam = options.get("lam") if strategy in BUILT_IN else None  # a plugin may mean something else by it
    for name, given in (("past", past or None), ("lam", lam)):
        if given is not None:
            warnings.warn(
                f"{name} says how much the memory weighs, and no memory was given: it changes nothing; give the memory "
                "too, or leave it out.",
                stacklevel=3,
            )


class TooLarge(InputError):
    """A strategy needs more memory than there is: `bytes`."""

    def __init__(self, message: str, bytes: int) -> None:
        super().__init__(message, bytes)
        self.message, self.bytes = message, bytes

    def __str__(self) -> str:
        return self.message


def needs(bytes_needed: Needs) -> Callable[[Strategy], Strategy]:
    """Declare how much memory a strategy takes, so that it can be refused before a large pool is read."""

    def declare(strategy: Strategy) -> Strategy:
        strategy.needs = bytes_needed  # type: ignore[attr-defined]
        return strategy

    return declare


def embeddings_only(strategy: Strategy) -> Strategy:
    """Declare that a strategy does not look at probabilities: pools on disk need no such column."""
    strategy.reads = ("embedding",)  # type: ignore[attr-defined]
    return strategy


def bytes_needed(strategy: Callable[..., object], n: int, d: int, K: int) -> int:
    """How many bytes a strategy declares to need beyond the pool; 0 if it declares nothing."""
    declared: Needs | None = getattr(strategy, "needs", None)
    return declared(n, d, K) if declared else 0


def check_fits(name: str, need: int, n: int, d: int, instead: str = "", limit: int | None = None) -> None:
    """Refuse, with the bytes needed, before anything is allocated.

    instead: what else to do than use a smaller pool. limit: bytes that may be used; unset: those that are free.
    """
    may = available_memory() if limit is None else limit
    if need > may:
        raise TooLarge(
            f"{name} needs {need:,} bytes for {n} examples with d={d}, and {may:,} are "
            f"{'free' if limit is None else 'allowed'}; give a smaller pool{instead}.",
            need,
        )

"""The contract of strategies."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.progress import Progress, ignore
from accuacl.engines import Done, Function, Local, attempt
from accuacl.experiments.checks.contracts import (
    Broken,
    CheckResult,
    Remark,
    check_all,
    global_randomness_watched,
    read_only,
)
from accuacl.features import Features
from accuacl.pools import select as select_from_files, write_pool
from accuacl.strategies import REGISTRY, BadAnswer, RowStrategy, Selection, options_of, select

SIZES = [(40, 6, 4), (1, 6, 4), (40, 1, 4), (40, 6, 1), (40, 6, 2), (2, 1, 1), (40, 30, 12)]  # n, d, K
BUDGETS = (0, 1, 7, 1000)
SEEDS = range(1, 6)
CHUNKS = (1, 7, 10_000)
BUDGET = 20


def check_strategy(name: str) -> Iterator[CheckResult]:
    """Ask a registered strategy small questions, and say for each part of its contract whether it is kept.

    >>> [result for result in check_strategy("margin") if result.fault]
    []
    """
    checks = [*CHECKS, _same_from_files] if isinstance(REGISTRY[name], RowStrategy) else CHECKS
    return check_all(Asked(name), checks)


@dataclass(frozen=True)
class Asked:
    """A strategy, and a problem to ask it about."""

    name: str

    @functools.cached_property
    def sets(self) -> dict[str, Features]:
        """A pool of 150, 12 labelled examples and a memory of 15, in five classes."""
        rng = np.random.default_rng(3)
        return {name: _random(rng, n, 8, 5) for name, n in (("pool", 150), ("labelled", 12), ("memory", 15))}

    def __call__(self, budget: int = BUDGET, **changes: Any) -> Selection:
        given: dict[str, Any] = {**self.sets, "past": 500, **changes}
        picked = select(self.name, budget=budget, **given)
        if picked.indices.dtype != np.int64:
            raise Broken(f"its indices are {picked.indices.dtype}; give int64, such as indices.astype(np.int64)")
        return picked

    @functools.cached_property
    def draws(self) -> bool:
        """Whether its picks depend on the seed."""
        first = self(seed=0).indices
        return any(not np.array_equal(first, self(seed=seed).indices) for seed in SEEDS)


def _random(rng: np.random.Generator, n: int, d: int, K: int) -> Features:
    h, p = rng.normal(size=(n, d)).astype(np.float32), rng.dirichlet(np.full(K, 0.5), n)
    return Features(h, p.astype(np.float32) if K > 1 else np.ones((n, 1), np.float32))


def _counts(ask: Asked) -> None:
    """It picks as many different rows as are asked for, or all, from pools of all sizes."""
    for n, d, K in SIZES:
        rng = np.random.default_rng(0)
        sets = {name: _random(rng, count, d, K) for name, count in (("pool", n), ("labelled", 5), ("memory", 5))}
        for budget in BUDGETS:
            try:
                ask(budget, **sets)
            except InputError as error:
                raise Broken(f"for {budget} of {n} examples with d={d} and K={K}: {error}") from error


def _empty(ask: Asked) -> None:
    """It picks nothing from an empty pool."""
    pool = Features(np.empty((0, 3)), np.empty((0, 2)))
    ask(5, pool=pool, labelled=None, memory=None, past=None)


def _without(ask: Asked) -> None:
    """It picks when nothing is labelled yet, and without a memory."""
    nothing = ask.sets["pool"].rows(slice(0, 0))
    for missing in (("labelled",), ("memory",), ("labelled", "memory")):
        for instead in (None, nothing):
            ask(**dict.fromkeys(missing, instead))


def _degenerate(ask: Asked) -> None:
    """It answers, or refuses with an InputError, where embeddings are zero, equal, tiny or huge, or all is certain."""
    h, p = ask.sets["pool"].embeddings, ask.sets["pool"].probabilities
    pools = {
        "embeddings are zero": (h * 0, p),
        "the model is certain of all": (h, np.eye(p.shape[1], dtype=p.dtype)[p.argmax(axis=1)]),
        "all examples are equal": (np.repeat(h[:1], len(h), axis=0), np.repeat(p[:1], len(p), axis=0)),
        "embeddings are tiny": (h * np.float32(1e-18), p),
    }
    for what, (embeddings, probabilities) in pools.items():
        try:
            ask(pool=Features(embeddings, probabilities))
        except InputError as error:
            raise Broken(f"where {what}: {error}") from error
    with contextlib.suppress(InputError):  # it may refuse what is too large for it
        try:
            ask(pool=Features(h * np.float32(1e18), p))
        except BadAnswer as error:
            raise Broken(f"where embeddings are huge: {error}") from error


def _repeatable(ask: Asked) -> None:
    """It gives the same picks for the same seed, and draws from no global generator."""
    with global_randomness_watched():
        first, again = ask(seed=1), ask(seed=1)
    if not np.array_equal(first.indices, again.indices):
        raise Broken("called twice with the same seed, it picks differently; use np.random.default_rng(query.seed)")


def _inputs_stay(ask: Asked) -> None:
    """It leaves the arrays that it is given as they are."""
    arrays = [array for features in ask.sets.values() for array in (features.embeddings, features.probabilities)]
    with read_only(arrays, "the query's arrays"):
        ask()


def _same_for_arrays(ask: Asked) -> None:
    """It picks the same whatever the type and the memory layout of the arrays."""
    first = ask().indices
    kinds: dict[str, Callable[[Any], Any]] = {
        "float64": lambda x: x.astype(np.float64),
        "Fortran order": np.asfortranarray,
        "every second row of an array": lambda x: np.repeat(x, 2, axis=0)[::2],
    }
    for kind, convert in kinds.items():
        sets: dict[str, Any] = {
            name: Features(convert(some.embeddings), convert(some.probabilities)) for name, some in ask.sets.items()
        }
        if not np.array_equal(ask(**sets).indices, first):
            raise Broken(f"the same numbers as {kind} change its picks; compute in float64: np.asarray(x, np.float64)")


def _same_for_chunks(ask: Asked) -> None:
    """It picks the same whatever the number of rows that are processed at a time."""
    first = ask().indices
    for chunk in CHUNKS:
        if not np.array_equal(ask(chunk=chunk).indices, first):
            raise Broken(f"its picks change with chunk={chunk}; query.chunk must affect only memory use")


def _options(ask: Asked) -> None:
    """Its options take their own defaults."""
    first = ask(seed=1).indices
    for name, option in options_of(ask.name).items():
        if option.default is None:
            continue
        if not np.array_equal(ask(seed=1, **{name: option.default}).indices, first):
            raise Broken(f"given {name}={option.default!r}, its own default, it picks differently")


def _progress(ask: Asked) -> None:
    """If it reports progress, it rises to its total."""
    reports: list[Progress] = []
    ask(progress=reports.append)
    done = [progress.done for progress in reports]
    if done != sorted(done):
        raise Broken("its progress falls; report progress up to the total given to query.ticker")
    if reports and reports[-1].done != reports[-1].total:
        raise Broken(f"its progress ends at {reports[-1].done} of {reports[-1].total}; report progress up to the total")


def _order(ask: Asked) -> None:
    """Its picks depend on the examples and not on their order."""
    if ask.draws:
        raise Remark("it draws at random, so this was not checked")
    order = np.random.default_rng(0).permutation(len(ask.sets["pool"]))
    shuffled = ask(pool=ask.sets["pool"].rows(order)).indices
    if not np.array_equal(order[shuffled], ask().indices):
        raise Remark("it picks different examples when the pool is reordered; that is right only if intended")


def _same_from_files(ask: Asked) -> None:
    """It picks from Parquet files as it does in memory."""
    pool = ask.sets["pool"]
    expected = ask(labelled=None, memory=None, past=None).indices
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.parquet"
        write_pool(path, np.arange(len(pool)), pool.embeddings, pool.probabilities)
        picked = select_from_files(path, ask.name, budget=BUDGET, engine=_Here())
    if list(picked.ids) != expected.tolist():
        raise Broken("its picks from a Parquet file differ from those in memory; rank each row by itself")


class _Here(Local):
    """The local engine without its processes."""

    def map(self, function: Function, items: Sequence[Any], on_progress: Any = None) -> Iterator[Done]:
        for index, item in enumerate(items):
            yield Done(index, **attempt(function, item, ignore))


CHECKS = (
    *(_counts, _empty, _without, _degenerate, _repeatable, _inputs_stay, _same_for_arrays, _same_for_chunks),
    *(_options, _progress, _order),
)

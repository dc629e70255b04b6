"""Query strategies on this machine: time, memory, and how far they are from the possible.

Every case runs in a process of its own, so that peak memory is measured for it alone. "x dense" is how many times less
CPU time than the vectorised definition, "x memory" how many times less memory beyond the inputs, "/ floor" how many
times the CPU time of the floor: the least work of the plain algorithm, which is its matrix products on data already in
memory and one read of its inputs. BADGE skips most of these products and may be faster than the floor.

Run: python benchmarks/bench.py (the standard cases, about four minutes), or with --n every combination of --n, --d,
--classes and --budget; with --compare-threads, one thread ("1") beside as many as a strategy takes by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # for the dense definitions

import reference
from accuacl import Features, fisher, strategy_names
from accuacl.experiments.sweeps.efficiency import Case, Measurement, in_fresh_process, machine, problem, query, timed
from accuacl.features import Array
from accuacl.strategies import TooLarge

DENSE_LIMIT = 6 << 30  # bytes that a dense definition may take to be measured
MEASURED = ("CPU s", "wall s", "MiB", "x dense", "x memory", "/ floor")
THREADS = ("beside", "CPU 1", "CPU s", "x", "wall 1", "wall s", "x")
LEAST, MOST, SECONDS = 2, 7, 4  # comparing threads: LEAST to MOST measurements each, until they took so many seconds

# Strategies by what they compute; for those of accuacl, the only score that they use ("": both).
ACCUACL = {
    "accuacl": "", "accuacl-full": "", "accuacl-magnitude": "magnitude", "accuacl-distribution": "distribution"
}  # fmt: skip
BADGE, KCENTER = ("badge", "badge+memory"), ("kcenter", "kcenter+memory")
WITH_MEMORY = ("badge+memory", "kcenter+memory", "coverage+memory")  # these also look at the memory
COVERAGE = ("coverage", "coverage+memory", "uncertain-coverage")
MIXED = {"accuacl+uniform": ("accuacl",), "accuacl+coverage": ("accuacl", "coverage")}  # what they must do
UNCERTAINTY = ("entropy", "least-confidence", "margin")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", nargs="+", choices=strategy_names(), default=strategy_names(), metavar="NAME")
    parser.add_argument("--n", type=int, nargs="+", help="pool sizes, for a grid of cases")
    parser.add_argument("--d", type=int, nargs="+", default=[512], help="embedding widths")
    parser.add_argument("--classes", type=int, nargs="+", default=[100])
    parser.add_argument("--budget", type=int, nargs="+", default=[200])
    parser.add_argument("--memory", type=int, default=1000, help="size of the replay memory")
    parser.add_argument("--labelled", type=int, default=0, help="examples that are labelled already")
    parser.add_argument("--full", action="store_true", help="also a pool of a million and BAIT's largest: 15 minutes")
    parser.add_argument("--threads", type=int, default=1, help="threads of each strategy")
    parser.add_argument("--compare-threads", action="store_true")
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    options = parser.parse_args()
    cases = [case for case in standard(options.full) if case.strategy in options.strategy]
    if options.n:
        sizes = itertools.product(options.strategy, options.n, options.d, options.classes, options.budget)
        cases = [Case(*size, m=options.memory, labelled=options.labelled) for size in sizes]
    rows: list[Compared] | list[Threads] = []
    for case in cases:
        if options.compare_threads:
            found: list[Any] = in_fresh_process(both, case, threads=None)
        else:
            found = [in_fresh_process(compare, case, DENSE_LIMIT, threads=options.threads)]
        show(found, new_size=not rows or _size(rows[-1].case) != _size(case))
        rows += found
    made_on = machine(None if options.compare_threads else options.threads)
    print(f"\n{made_on}; seed 0; best of a few; CPU seconds of all threads.")
    if options.json:
        text = json.dumps({"machine": made_on, "results": [row.as_dict() for row in rows]}, indent=1)
        options.json.write_text(text + "\n")


def standard(full: bool = False) -> list[Case]:
    """The cases of docs/speed.md; `full` adds a pool of a million and BAIT's largest."""
    cases = [Case(name, 5_000, 512, 100, 200) for name in strategy_names()]
    cases += [
        Case("badge", 20_000, 512, 100, 100),
        Case("kcenter", 50_000, 512, 100, 1_000, labelled=100),
        Case("bait", 2_000, 64, 10, 20, labelled=100),
        Case("coverage", 20_000, 512, 100, 1_000),
        Case("fisher-ratio", 50_000, 512, 100, 1_000),
    ]
    if full:
        cases += [Case("accuacl", 1_000_000, 512, 100, 1_000), Case("bait", 5_000, 160, 100, 10, labelled=200)]
    return cases


@dataclass(frozen=True)
class Compared:
    """A measurement beside the floor and the dense definition; None where these were not measured."""

    case: Case
    measured: Measurement
    floor_cpu: float | None = None
    dense_cpu: float | None = None
    dense_memory: int | None = None

    @property
    def ratios(self) -> dict[str, float | None]:
        cpu, memory = self.measured.cpu, max(self.measured.memory, 1 << 20)
        return {
            "speedup": self.dense_cpu / cpu if self.dense_cpu else None,
            "memory_ratio": self.dense_memory / memory if self.dense_memory else None,
            "over_floor": cpu / self.floor_cpu if self.floor_cpu else None,
        }

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | self.ratios

    def cells(self) -> list[str]:
        if self.measured.needs is not None:
            return ["needs", f"{self.measured.needs / 2**30:,.0f} GiB"]
        numbers = [f"{self.measured.cpu:.4f}", f"{self.measured.wall:.4f}", f"{self.measured.memory / 2**20:,.0f}"]
        return [*numbers, *map(_ratio, self.ratios.values())]


@dataclass(frozen=True)
class Threads:
    """Seconds of one case with one thread and with as many as it takes by itself; `busy`: beside a busy process."""

    case: Case
    busy: bool
    one_cpu: float
    one_wall: float
    cpu: float
    wall: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"cpu_ratio": self.cpu / self.one_cpu, "wall_ratio": self.wall / self.one_wall}

    def cells(self) -> list[str]:
        cpu = [f"{self.one_cpu:.3f}", f"{self.cpu:.3f}", f"{self.cpu / self.one_cpu:.2f}"]
        wall = [f"{self.one_wall:.3f}", f"{self.wall:.3f}", f"{self.wall / self.one_wall:.2f}"]
        return ["work" if self.busy else "nothing", *cpu, *wall]


def show(rows: Iterable[Compared | Threads], new_size: bool) -> None:
    for row in rows:
        if new_size:
            head = THREADS if isinstance(row, Threads) else MEASURED
            print(f"\n{_size(row.case)}\n{'strategy':21}" + "".join(f"{name:>9}" for name in head))
        print(f"{row.case.strategy:21}" + "".join(f"{cell:>9}" for cell in row.cells()), flush=True)
        new_size = False


def _size(case: Case) -> str:
    return f"n {case.n:,}, memory {case.m:,}, labelled {case.labelled:,}, d {case.d:,}, K {case.K:,}, budget {case.b:,}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def compare(case: Case, dense_limit: int) -> Compared:
    """One case in this process; the dense definition only where it takes at most `dense_limit` bytes."""
    pool, memory, labelled = problem(case)
    try:
        measured = Measurement(*timed(query(case, pool, memory, labelled)))
    except TooLarge as refusal:
        return Compared(case, Measurement(needs=refusal.bytes))
    dense_cpu, dense_memory = dense(case, pool, memory, labelled, dense_limit) or (None, None)
    return Compared(case, measured, floor(case, pool), dense_cpu, dense_memory)


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


def both(case: Case) -> list[Threads]:
    """Measure in this process, the two ways in turn, so that other processes disturb both alike."""
    try:
        ask = query(case, *problem(case))
    except TooLarge:
        return []
    results = [Threads(case, False, *_in_turn(ask))]
    with _busy_process():
        results.append(Threads(case, True, *_in_turn(ask)))
    return results


def _in_turn(ask: Callable[[], Any]) -> tuple[float, float, float, float]:
    """CPU and wall-clock seconds with one thread and by default; the best of several."""
    ones: list[tuple[float, float]] = []
    own: list[tuple[float, float]] = []
    while len(own) < LEAST or (len(own) < MOST and sum(wall for _, wall in ones + own) < SECONDS):
        with _one_thread():
            ones.append(_seconds(ask))
        own.append(_seconds(ask))
    one_cpu, one_wall, cpu, wall = (min(values) for pairs in (ones, own) for values in zip(*pairs, strict=True))
    return one_cpu, one_wall, cpu, wall


def _seconds(ask: Callable[[], Any]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    ask()
    return time.process_time() - cpu, time.perf_counter() - wall


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _busy_process() -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _spin() -> None:
    while True:
        pass


if __name__ == "__main__":
    main()

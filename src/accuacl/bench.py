"""How fast is a strategy here, against its dense definition and against the floor, in one run.

Every case runs in a process of its own, so that its peak memory is its own. The floor is the bare work of the plain
form: its matrix products on data already in place, and one read of its inputs. BADGE skips most of its own and may
come out below 1.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from accuacl import fisher, reference
from accuacl.base.errors import InputError
from accuacl.features import Array, Features
from accuacl.strategies import NAMES, TooLarge, select

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Case:
    """A strategy and the size of its problem: pool n, embedding width d, classes K, budget b, memory m, labelled l."""

    strategy: str
    n: int
    d: int
    K: int
    b: int
    m: int = 1000
    labelled: int = 0


@dataclass(frozen=True)
class Measurement:
    """Seconds and bytes (beyond the inputs) of one case; None where it was not or could not be measured."""

    case: Case
    cpu: float | None = None
    wall: float | None = None
    memory: int | None = None
    floor_cpu: float | None = None
    dense_cpu: float | None = None
    dense_memory: int | None = None
    needs: int | None = None  # bytes, where the strategy refused for lack of them

    @property
    def over_floor(self) -> float | None:
        return self.cpu / self.floor_cpu if self.cpu and self.floor_cpu else None

    @property
    def memory_ratio(self) -> float | None:
        return self.dense_memory / max(self.memory, 1 << 20) if self.memory is not None and self.dense_memory else None

    @property
    def speedup(self) -> float | None:
        return self.dense_cpu / self.cpu if self.cpu and self.dense_cpu else None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "over_floor": self.over_floor,
            "speedup": self.speedup,
            "memory_ratio": self.memory_ratio,
        }


def standard(full: bool = False) -> list[Case]:
    """The cases of the README's table; `full` adds a pool of a million and BAIT's largest: 15 minutes more."""
    cases = [Case(name, 5_000, 512, 100, 200) for name in NAMES]
    cases += [
        Case("badge", 20_000, 512, 100, 100),
        Case("kcenter", 50_000, 512, 100, 1_000, labelled=100),
        Case("bait", 2_000, 64, 10, 20, labelled=100),
        Case("coverage", 20_000, 512, 100, 1_000),
    ]
    if full:
        cases += [Case("accuacl", 1_000_000, 512, 100, 1_000), Case("bait", 5_000, 160, 100, 10, labelled=200)]
    return cases


def grid(
    strategies: Iterable[str], n: list[int], d: list[int], K: list[int], b: list[int], m: int, labelled: int
) -> list[Case]:
    """Every combination."""
    return [Case(*size, m=m, labelled=labelled) for size in itertools.product(strategies, n, d, K, b)]


def run(cases: list[Case], threads: int = 1, dense_limit: int = 6 << 30) -> Iterator[Measurement]:
    """Measure each case in a fresh process; the dense definition only where it takes at most `dense_limit` bytes."""
    saved = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        for case in cases:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                try:
                    yield pool.submit(measure, case, dense_limit).result()
                except BrokenProcessPool:
                    raise InputError(
                        f"{case} was killed, most likely for want of memory; give a smaller one."
                    ) from None
    finally:
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def machine(threads: int = 1) -> str:
    """What this was measured on, in a line."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            name = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    import torch

    return f"{name}, {os.cpu_count()} cores, {threads} thread(s), numpy {np.__version__}, torch {torch.__version__}"


def measure(case: Case, dense_limit: int) -> Measurement:
    """Run one case in this process."""
    pool, memory, labelled = problem(case)
    arguments: dict[str, Any] = {"pool": pool, "budget": case.b, "labelled": labelled}
    if memory is not None:
        arguments |= {"memory": memory, "past": 9 * case.n}

    def ours() -> None:
        select(case.strategy, **arguments)

    try:
        select(case.strategy, **(arguments | {"pool": pool.rows(slice(0, 2)), "budget": 1}))  # imports what it needs
        cpu, wall, extra = _timed(ours)
    except TooLarge as refusal:
        return Measurement(case, needs=refusal.bytes)
    floor_cpu = _floor(case, pool)
    dense_cpu, dense_extra = _dense(case, pool, memory, labelled, dense_limit) or (None, None)
    return Measurement(case, cpu, wall, extra, floor_cpu, dense_cpu, dense_extra)


def problem(case: Case) -> tuple[Features, Features | None, Features | None]:
    """Clustered, rectified embeddings and the softmax of a linear model on them, like those of a trained network."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(case.K, case.d)).astype(np.float32)
    weights = (centres - centres.mean(axis=0)) / np.float32(case.d)

    def some(n: int) -> Features:
        h, p = np.empty((n, case.d), np.float32), np.empty((n, case.K), np.float32)
        for i in range(0, n, 4096):
            size = min(4096, n - i)
            block = rng.standard_normal((size, case.d), np.float32)
            block += centres[rng.integers(case.K, size=size)]
            np.maximum(block, 0, out=h[i : i + size])
            logits = 8 * (block @ weights.T)
            e = np.exp(logits - logits.max(axis=1, keepdims=True))
            p[i : i + size] = e / e.sum(axis=1, keepdims=True)
        return Features(h, p)

    return some(case.n), some(case.m) if case.m else None, some(case.labelled) if case.labelled else None


def _timed(job: Callable[[], Any]) -> tuple[float, float, int]:
    """CPU and wall seconds, the best of a few; and the peak of memory beyond what was there before."""
    cpus: list[float] = []
    walls: list[float] = []
    extra = 0
    while len(cpus) < 1 or (len(cpus) < 5 and sum(walls) < 2):
        before = _reset_peak()
        cpu, wall = time.process_time(), time.perf_counter()
        job()
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
        extra = max(extra, _status("VmHWM") - before)
    return min(cpus), min(walls), extra


def _reset_peak() -> int:
    """Start measuring the peak of resident memory anew; how much is resident now."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # then the peak is that of the whole process
    return _status("VmRSS")


def _status(key: str) -> int:
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
    except (OSError, StopIteration):
        return 0


def _floor(case: Case, pool: Features) -> float | None:
    """CPU seconds of what cannot be left out; a long product is measured on a slice."""
    h, p = pool.embeddings, pool.probabilities
    if case.strategy.startswith("accuacl"):
        a, g = np.ones((fisher.SUM_ROWS, case.K)), np.ones((fisher.SUM_ROWS, case.d))
        blocks = math.ceil((case.n + case.m) / fisher.SUM_ROWS)
        return _timed(lambda: ([a.T @ g for _ in range(blocks)], _read(h), _read(p)))[0]
    if case.strategy.startswith("badge"):
        return _timed(lambda: [h @ h[row] for row in range(case.b)])[0]
    if case.strategy.startswith("kcenter"):
        start = case.labelled + (case.m if "memory" in case.strategy else 0)
        centres = np.ones((case.d, case.b + start), np.float32)
        return _timed(lambda: [h[i : i + 2048] @ centres for i in range(0, case.n, 2048)])[0]
    if case.strategy == "bait":  # M^-1 F M^-1 once, and h @ [Z | W] at every pick
        wide, part = np.ones((case.d * case.K,) * 2), math.ceil(case.d * case.K / 32)
        both, block = np.ones((case.d, 2 * case.K**2)), np.ones((min(case.n, 200), case.d))
        once = 2 * 32 * _timed(lambda: wide[:part] @ wide)[0]
        return once + 2 * case.b * case.n / len(block) * _timed(lambda: block @ both)[0]
    if case.strategy.endswith("coverage"):  # H H^T in blocks, and a pass over it
        blocks = math.ceil(case.n / 512)
        return blocks * _timed(lambda: np.maximum(np.exp(h[:512] @ h.T), h[:512, :1]).sum(axis=1))[0]
    if case.strategy == "uniform":
        return None
    return _timed(lambda: _read(p))[0]


def _read(array: Array) -> float:
    return sum(float(array[i : i + 4096].sum()) for i in range(0, len(array), 4096))


def _extrapolated(definition: Callable[[int], Any], budget: int) -> tuple[float, int]:
    """CPU seconds and extra bytes of `budget` picks that cost the same each, from two and from ten."""
    few, many = (_timed(functools.partial(definition, picks)) for picks in (2, 10))
    return few[0] + (budget - 2) * max(0.0, many[0] - few[0]) / 8, many[2]


def _dense(
    case: Case, pool: Features, memory: Features | None, labelled: Features | None, limit: int
) -> tuple[float, int] | None:
    """CPU seconds and extra bytes of the definition, in the precision people run it in, if it fits."""
    replay = memory if case.strategy.endswith("+memory") else None
    embeddings = 4 * case.n * case.d * case.K
    if case.strategy.startswith("accuacl") and "+" not in case.strategy and 2 * embeddings <= limit:
        lam = fisher.past_weight(9 * case.n, case.n + case.labelled) if memory is not None else 0.0
        only = case.strategy.removeprefix("accuacl").removeprefix("-").replace("full", "")
        job = functools.partial(reference.accuacl, pool, case.b, memory, lam, dtype=np.float32, only=only)
    elif case.strategy.startswith("badge") and 2 * embeddings <= limit:
        # Every centre costs the same and there may be many: measured on ten and multiplied.
        cpu, _, extra = _timed(lambda: reference.badge(pool, np.linspace(0, 0.9, 10), dtype=np.float32))
        return cpu * (case.b + len(replay or ())) / 10, extra
    elif case.strategy.startswith("kcenter"):
        start = [features for features in (labelled, replay) if features is not None]
        job = functools.partial(reference.kcenter, pool, case.b, start, np.float32)
    elif case.strategy == "bait" and case.d * case.K <= 1000 and 2 * case.K * 2 * embeddings <= limit:
        job = functools.partial(reference.bait, pool, case.b, labelled)
    elif case.strategy.endswith("coverage") and 16 * case.n**2 <= limit:
        return _extrapolated(lambda b: reference.coverage(pool, b, labelled, dtype=np.float32), case.b)
    elif case.strategy in ("entropy", "least-confidence", "margin"):
        job = functools.partial(reference.uncertainty, pool, case.b, case.strategy, np.float32)
    else:
        return None
    cpu, _, extra = _timed(job)
    return cpu, extra

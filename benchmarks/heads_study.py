"""Heads on frozen features against each other, with and without the pool that nobody labelled.

    python benchmarks/heads_study.py run --part choose --data-dir DATA --cache CACHE
    python benchmarks/heads_study.py run --part report --data-dir DATA --cache CACHE
    python benchmarks/heads_study.py table --page docs/heads.md

`--part lite2` has the images of the report, and its seeds, through the network that new projects see through.

Three tasks, four rounds each, as a project with its usual settings has them: three in ten of each first round are drawn
uniformly and held out, so that nobody learns from them, but count as labels. `choose` has seeds from 100 on and other
classes; docs/results/heads/chosen.md says what was chosen by it. `report` has seeds 0 to 9. Rows are appended as they
come, and what is there is not run again. One row: data, query, head, labels in all, seed, A (accuracy on all tasks at
the end), F (forgetting), LA (learning accuracy), calibration error, all in percent, and how many pseudo-labels were
learned from at the end.

Heads: `linear` is the ridge head of projects. TERMS or TERMS+POOL is the kernel head: TERMS one of `sum` (linear and
gaussian of the first block, linear of others at 0.3), `lin`, `gau`, `arc`, `loo` (leave-one-out chooses), or `kernel`,
the default of the kind of data; POOL one of `self` and `smooth`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from heads_data import Arrays, load
from paired import comparisons, crossing_interval, mean, show, summary

from accuacl import Features, select
from accuacl.experiments import metrics
from accuacl.experiments.heads import candidates_of_kind, kernel, pool, ridge
from accuacl.experiments.heads.calibration import softmax
from accuacl.experiments.heads.kernels import Term, Terms

ROUNDS, HOLDOUT = 4, 0.3
RESULTS = Path("docs/results/heads")
TABLES = RESULTS / "tables.csv"  # of benchmarks/projects.py; docs/heads.md has the command
COLUMNS = ("data", "query", "head", "labels", "seed", "A", "F", "LA", "calibration", "pseudo", "seconds")
MARKS = {
    "report": ("<!-- benchmarks/heads_study.py writes from here -->", "<!-- to here, benchmarks/heads_study.py -->"),
    "lite2": (
        "<!-- benchmarks/heads_study.py, Lite2, from here -->",
        "<!-- to here, benchmarks/heads_study.py, Lite2 -->",
    ),
}
Logits = Callable[[np.ndarray], np.ndarray]
BASES = ("clinc150", "cifar100", "tiny-imagenet", "nslkdd")
LITE2_BASES = ("cifar100-lite2", "tiny-imagenet-lite2")
OURS = {"nslkdd": "uncertain-coverage"}  # the query of the default; of other data coverage
WITHOUT_HEAD = ("uniform", "coverage")  # queries that do not look at what the head predicts
DEFAULT = {"nslkdd": "kernel"}  # its head; of other data kernel+self: pseudo-labels harm in tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--part", choices=list(PARTS), required=True)
    run.add_argument("--data-dir", type=Path, default=os.environ.get("ACCUACL_DATA"))
    run.add_argument("--cache", type=Path, default=os.environ.get("ACCUACL_CACHE", "runs/heads"))
    run.add_argument("--only", default="", help="Only cells whose data begin with this.")
    run.add_argument("--heads", nargs="*", help="Only cells with these heads.")
    table = commands.add_parser("table")
    table.add_argument("--part", choices=list(MARKS), default="report")
    table.add_argument("--page", type=Path)
    given = parser.parse_args()
    if given.command == "table":
        show(report(given.part), given.page, *MARKS[given.part])
        return
    path = RESULTS / f"{given.part}.csv"
    done = {tuple(row[:5]) for row in read(path)}
    arrays = lru_cache(maxsize=1)(partial(load, data_dir=given.data_dir, cache=Path(given.cache)))
    for data, query, head, labels, seed in PARTS[given.part]():
        key = (data, query, head, str(labels), str(seed))
        if key in done or not data.startswith(given.only) or head not in (given.heads or [head]):
            continue
        started = time.perf_counter()
        numbers = simulate(arrays(data), query, head, labels, seed, Path(given.cache))
        add(path, [*key, *(f"{value:.3f}" for value in (*numbers, time.perf_counter() - started))])


def cells(data: str, seeds: range, wanted: dict[tuple[str, str], tuple[int, ...]]) -> Iterator[tuple[Any, ...]]:
    for seed, ((query, head), labels) in product(seeds, wanted.items()):
        yield from ((data, query, head, count, seed) for count in labels)


def choose() -> Iterator[tuple[Any, ...]]:
    """Kernels and ways to learn from the pool, on other classes and seeds than those reported."""
    heads = ("linear", "lin", "gau", "sum", "loo", "lin+self", "gau+self", "sum+self", "sum+smooth")
    for base in BASES:
        query = OURS.get(base, "coverage")
        wanted = {(query, head): (180, 600) for head in heads} | {("uniform", "linear"): (180, 600)}
        for seed in range(100, 103):
            yield from cells(f"{base}-choose", range(seed, seed + 1), wanted)
    for base, variant in VARIANTS:
        wanted = {(OURS.get(base, "coverage"), head): (180, 600) for head in ("linear", "gau", "sum", "sum+self")}
        yield from cells(f"{base}-choose+{variant}", range(100, 102), wanted)


VARIANTS = (
    ("clinc150", "tail"),
    ("cifar100", "tail"),
    ("clinc150", "blurry"),
    ("cifar100", "blurry"),
    ("clinc150", "wrong"),
    ("cifar100", "wrong"),
    ("nslkdd", "wrong"),
)


def reported() -> Iterator[tuple[Any, ...]]:
    """What was chosen, against what there was, on seeds and classes that nobody chose by."""
    yield from main_cells(BASES)
    for seed, (base, variant) in product(range(5), VARIANTS):
        wanted = {(OURS.get(base, "coverage"), head): (180, 600) for head in ("linear", "kernel", "kernel+self")}
        yield from cells(f"{base}+{variant}", range(seed, seed + 1), wanted)


def main_cells(bases: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for seed, base in product(range(10), bases):
        ours = OURS.get(base, "coverage")
        wanted = {(query, head): (180, 600) for query in ("uniform", ours) for head in ("linear", "kernel")}
        wanted |= {("uniform", "kernel+self"): (180, 600), ("badge", "linear"): (180, 600)}
        wanted |= {(ours, "kernel+self"): (180, 600)}
        wanted |= {(ours, DEFAULT.get(base, "kernel+self")): (96, 120, 144, 180, 240, 600)}
        yield from cells(base, range(seed, seed + 1), wanted)


PARTS: dict[str, Callable[[], Iterator[tuple[Any, ...]]]] = {
    "choose": choose,
    "report": reported,
    "lite2": lambda: main_cells(LITE2_BASES),
}


def simulate(arrays: Arrays, query: str, head: str, labels: int, seed: int, cache: Path) -> list[float]:
    """A, F, LA, calibration error and pseudo-labels of a project with so many labels in all."""
    per_round = labels // (len(arrays.pools) * ROUNDS)
    known = _picks_without_head(arrays, query, per_round, seed, cache) if query in WITHOUT_HEAD else []
    taught: list[np.ndarray] = []  # of each task, the rows of its pool that are learned from
    asked: list[np.ndarray] = []
    matrix: list[list[float]] = []
    logits: Logits | None = None
    facts: dict[str, float] = {}
    for t, rows in enumerate(arrays.pools):
        held = _held_out(seed, t, len(rows), per_round)
        taught.append(known[t] if known else np.empty(0, np.int64))
        asked.append(np.append(held, taught[t]))
        for r in range(0 if known else ROUNDS):
            picked = _picked(
                query, rows, taught[t], asked[t], per_round - (len(held) if r == 0 else 0), seed, logits, r
            )
            taught[t], asked[t] = np.append(taught[t], picked), np.append(asked[t], picked)
            logits, facts = _learned(arrays, head, taught, asked, seed)
        if known:
            logits, facts = _learned(arrays, head, taught, asked, seed)
        tested = [_accuracy(arrays, logits, j) for j in range(t + 1)]
        matrix.append([accuracy for accuracy, _, _ in tested])
    last, ends = matrix[-1], [row[-1] for row in matrix]
    _, confidences, hits = zip(*tested, strict=True)
    return [
        float(np.mean(last)),
        float(np.mean([ends[j] - last[j] for j in range(len(last) - 1)])),
        float(np.mean(ends)),
        metrics.calibration_error(np.concatenate(confidences), np.concatenate(hits)),
        facts.get("pseudo_labels", 0.0),
    ]


def drawn(seed: int, task: int, count: int) -> np.ndarray:
    """The order in which rows are drawn uniformly."""
    return np.random.default_rng([seed, task, 77]).permutation(count)


def _chosen(
    query: str, rows: np.ndarray, left: np.ndarray, taught: np.ndarray, count: int, seed: int, logits: Logits | None
) -> np.ndarray:
    if query == "uniform":
        order = drawn(seed, 1000 + len(left), len(left))
        return order[:count]

    def features(which: np.ndarray) -> Features:
        if query == "coverage" or logits is None:  # it looks at embeddings alone
            return Features(rows[which], np.ones((len(which), 1), np.float32))
        return Features(rows[which], softmax(logits(rows[which])).astype(np.float32))

    labelled = features(taught) if len(taught) else None
    return select(query, pool=features(left), budget=count, labelled=labelled, seed=seed).indices


def _learned(
    arrays: Arrays, head: str, taught: list[np.ndarray], asked: list[np.ndarray], seed: int
) -> tuple[Logits, dict[str, float]]:
    """Fit the head to what is known of all tasks so far. Logits of classes not seen are minus infinity."""
    tasks = range(len(taught))
    x = np.concatenate([arrays.pools[t][taught[t]] for t in tasks])
    labels = np.concatenate([_answers(arrays, t, taught[t], seed) for t in tasks])
    classes, unseen = arrays.classes, np.setdiff1d(np.arange(arrays.classes), labels)
    facts: dict[str, float] = {}
    if head == "linear":
        import torch

        fitted = ridge.fit_ridge(torch.from_numpy(x), torch.from_numpy(labels), classes)

        def outputs(rows: np.ndarray) -> np.ndarray:
            return fitted.logits(torch.from_numpy(rows)).numpy()
    else:
        terms, _, mode = head.partition("+")
        samples = []
        for t in tasks if mode else ():
            left = np.setdiff1d(np.arange(len(arrays.pools[t])), asked[t])
            samples.append(arrays.pools[t][pool.sample_ids(left, len(taught), seed)])
        known = pool.fit_with_pool(
            x, labels, samples, classes, mode=mode or "off", candidates=CANDIDATES[terms](arrays), blocks=arrays.blocks
        )
        outputs, facts = known.logits, dict(getattr(known, "learned", {}))

    def among_seen(rows: np.ndarray) -> np.ndarray:
        found = np.array(outputs(rows))
        found[:, unseen] = -1e9
        return found

    return among_seen, facts


def _answers(arrays: Arrays, task: int, rows: np.ndarray, seed: int) -> np.ndarray:
    """What the annotator says; when wrong, another class of the task, the same each time."""
    truth = arrays.truth[task]
    classes = np.unique(truth)
    rng = np.random.default_rng([seed, task, 99])
    wrong, other = rng.random(len(truth)) < arrays.wrong, rng.integers(1, max(2, len(classes)), len(truth))
    said = np.where(wrong, classes[(np.searchsorted(classes, truth) + other) % len(classes)], truth)
    return said[rows]


def _accuracy(arrays: Arrays, logits: Logits, task: int) -> tuple[float, np.ndarray, np.ndarray]:
    """(percent right on the test of a task, confidences, hits)."""
    p = softmax(logits(arrays.tests[task]))
    hits = p.argmax(axis=1) == arrays.answers[task]
    weights = None if arrays.weights is None else arrays.weights[task]
    return 100 * float(np.average(hits, weights=weights)), p.max(axis=1), hits


def _picks_without_head(arrays: Arrays, query: str, per_round: int, seed: int, cache: Path) -> list[np.ndarray]:
    """What is learned from of each task, by a query that depends on no head; made once, then kept in the cache."""
    data = arrays.name.removesuffix("+wrong")  # other answers change none of these picks
    path = cache / "picks" / f"{data}-{query}-{per_round}-{seed}.json"
    if path.exists():
        return [np.array(rows, np.int64) for rows in json.loads(path.read_text())]
    found: list[np.ndarray] = []
    for t, rows in enumerate(arrays.pools):
        held = _held_out(seed, t, len(rows), per_round)
        taught = np.empty(0, np.int64)
        for r in range(ROUNDS):
            count = per_round - (len(held) if r == 0 else 0)
            taught = np.append(taught, _picked(query, rows, taught, np.append(held, taught), count, seed, None, r))
        found.append(taught)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([rows.tolist() for rows in found]))
    return found


def _picked(
    query: str,
    rows: np.ndarray,
    taught: np.ndarray,
    asked: np.ndarray,
    count: int,
    seed: int,
    logits: Logits | None,
    round: int,
) -> np.ndarray:
    """The rows of a pool that a round asks for."""
    left = np.setdiff1d(np.arange(len(rows)), asked)
    if query != "uniform" and round == 0:  # nothing is known of new classes
        query = "uniform" if query == "badge" else "coverage"
    return left[_chosen(query, rows, left, taught, count, seed, logits)]


def _held_out(seed: int, task: int, count: int, per_round: int) -> np.ndarray:
    return drawn(seed, task, count)[: max(0, min(round(HOLDOUT * per_round), per_round - 1))]


def _terms(*first: str) -> Callable[[Arrays], list[Terms]]:
    """These kernels of the first block, and the linear one of each other block at 0.3."""

    def of(arrays: Arrays) -> list[Terms]:
        blocks = [tuple(block) for block in arrays.blocks]
        return [(*(Term(name, blocks[0]) for name in first), *(Term("linear", block, 0.3) for block in blocks[1:]))]

    return of


CANDIDATES: dict[str, Callable[[Arrays], list[Terms]]] = {
    "lin": _terms("linear"),
    "gau": _terms("gaussian"),
    "arc": _terms("arc-cosine"),
    "sum": _terms("linear", "gaussian"),
    "loo": lambda arrays: kernel.candidates_for(arrays.blocks),
    "kernel": lambda arrays: candidates_of_kind(arrays.kind, arrays.blocks),
}


def read(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def add(path: Path, row: list[str]) -> None:
    """Append a row; the file is begun with the names of columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, row] if fresh else [row])
    print(*row, flush=True)


Table = dict[tuple[str, str, str, int], dict[int, dict[str, float]]]  # (data, query, head, labels): seed: numbers


def table_of(part: str) -> Table:
    found: Table = defaultdict(dict)
    for row in read(RESULTS / f"{part}.csv"):
        numbers = dict(zip(COLUMNS[5:], map(float, row[5:]), strict=True))
        found[row[0], row[1], row[2], int(row[3])][int(row[4])] = numbers
    return found


def report(part: str) -> str:
    """All tables, in Markdown; of a part that is not finished, how many labels are needed alone."""
    found = table_of(part)
    if part == "report":
        return "\n\n".join([needed(found, BASES), two_by_two(found, BASES), compared(found, BASES), variants(found)])
    missing = any(seed not in found.get((data, *cell), {}) for data, *cell, seed in PARTS[part]())  # type: ignore
    tables = (needed,) if missing else (needed, two_by_two, compared)
    return "\n\n".join(table(found, LITE2_BASES) for table in tables)


def needed(found: Table, bases: tuple[str, ...]) -> str:
    """How many labels reach what uniform with the linear head reaches with 600."""
    lines = [
        "| data | seeds | uniform, linear, 600 labels | default: A by labels | labels needed | share |",
        "|---|--:|--:|---|--:|--:|",
    ]
    shares = []
    for base in bases:
        query, head = OURS.get(base, "coverage"), DEFAULT.get(base, "kernel+self")
        cells = {
            labels: {seed: row["A"] for seed, row in by_seed.items()}
            for (data, *cell, labels), by_seed in sorted(found.items())
            if (data, cell) == (base, [query, head])
        }
        if row := _needed_row(base, found, base, cells):
            lines.append(row[0])
            shares.append(row[1])
    if len(shares) > 1:
        lines.append(f"| mean | | | | | {100 * np.mean(shares):.0f} % |")
    if "nslkdd" in bases and (row := _needed_row("nslkdd, `er`", found, "nslkdd", projects_of_tables())):
        lines.append(row[0])
    return "\n".join(lines)


def projects_of_tables() -> dict[int, dict[int, float]]:
    """A by labels and seed of projects of connections with the learner that they have by default.

    They are whole projects, not simulated here, with the data, tasks, rounds, seeds, held-out share and tests of the
    other rows; `uniform` with ridge ends at 89.9 in such projects (docs/results/study/project-learners.csv).
    """
    reached: dict[int, dict[int, float]] = defaultdict(dict)
    with TABLES.open(newline="") as file:
        for row in csv.DictReader(file):
            reached[int(row["labels"])][int(row["seed"])] = float(row["true_accuracy"])
    return reached


def _needed_row(name: str, found: Table, base: str, cells: dict[int, dict[int, float]]) -> tuple[str, float] | None:
    """A row of the table, and the share of 600 labels that is needed; None before there are seeds to compare.

    cells: A by labels and seed.
    """
    goal = {seed: row["A"] for seed, row in found[base, "uniform", "linear", 600].items()}
    most = max(map(len, cells.values()), default=0)
    reached = {labels: by_seed for labels, by_seed in cells.items() if len(by_seed) == most}
    seeds = sorted(set(goal).intersection(*reached.values())) if reached else []
    if not seeds:
        return None
    labels, low, high = crossing_interval(reached, goal, seeds)
    shown = ", ".join(f"{count}: {np.mean([reached[count][seed] for seed in seeds]):.1f}" for count in sorted(reached))
    text = f"{'at most ' if labels == min(reached) else ''}{labels:.0f} ({low:.0f} to {high:.0f})"
    uniform = f"{np.mean([goal[seed] for seed in seeds]):.1f}"
    return f"| {name} | {len(seeds)} | {uniform} | {shown} | {text} | {100 * labels / 600:.0f} % |", labels / 600


def two_by_two(found: Table, bases: tuple[str, ...]) -> str:
    """Query x head, with and without the pool: A / F."""
    lines = ["| data, labels | query | linear | kernel | kernel, pool |", "|---|---|--:|--:|--:|"]
    for base, labels in product(bases, (180, 600)):
        for query in ("uniform", OURS.get(base, "coverage")):
            texts = []
            for head in ("linear", "kernel", "kernel+self"):
                by_seed = found.get((base, query, head, labels))
                texts.append(f"{mean(by_seed, 'A'):.1f} / {mean(by_seed, 'F'):.1f}" if by_seed else "")
            lines.append(f"| {base}, {labels} | {query} | {' | '.join(texts)} |")
    return "\n".join(lines)


def compared(found: Table, bases: tuple[str, ...]) -> str:
    """The default against uniform, BADGE and the former default, corrected by Holm's method."""
    lines = [
        "| data, labels | default: A | F | calibration | minus | A | p | F | p | pairs |",
        "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|",
    ]
    for base, labels in product(bases, (180, 600)):
        ours = OURS.get(base, "coverage")
        names = {
            "default": (ours, DEFAULT.get(base, "kernel+self")),
            "uniform, linear": ("uniform", "linear"),
            "badge, linear": ("badge", "linear"),
            f"{ours}, linear": (ours, "linear"),
        }
        group = {name: found.get((base, *key, labels), {}) for name, key in names.items()}
        if not group["default"]:
            continue
        rows = comparisons(group, "default", [], ("A", "F"))
        own = summary(group["default"], ("A", "F", "calibration"))
        lines += [f"| {base}, {labels} | {own} | {other} | {row} |" for other, row in rows.items()]
    return "\n".join(lines)


def variants(found: Table) -> str:
    """Long tails, blurry tasks and wrong answers: A / F."""
    lines = ["| data | labels | linear | kernel | kernel, pool | seeds |", "|---|--:|--:|--:|--:|--:|"]
    for (base, variant), labels in product(VARIANTS, (180, 600)):
        by_head = [
            found.get((f"{base}+{variant}", OURS.get(base, "coverage"), head, labels), {})
            for head in ("linear", "kernel", "kernel+self")
        ]
        if all(by_head):
            texts = [f"{mean(each, 'A'):.1f} / {mean(each, 'F'):.1f}" for each in by_head]
            lines.append(f"| {base}, {variant} | {labels} | {' | '.join(texts)} | {min(map(len, by_head))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

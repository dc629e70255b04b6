"""One budget of labels for tasks of unequal size: is an even split better than a plain cap?

    OMP_NUM_THREADS=1 python benchmarks/budget.py run --data-dir DATA --cache CACHE
    python benchmarks/budget.py table --page docs/projects.md

Three tasks that come one after the other, and 450 labels in all, in rounds of 50. Texts: 30, 20 and 10 intents of
CLINC150; photographs: 15, 10 and 5 classes of CIFAR-100 under EfficientNet-Lite2; then in the opposite order. The rules
(the numbers of labels come from the function of projects that limits a round):

- even: `--budget-total 450 --budget-tasks 3`. It is also what three rounds for each task give
- even, number unknown: `--budget-total 450`; each task leaves an equal share to one more
- cap: each task takes its usual four rounds until the total is used up. That is `--budget-total 450 --budget-tasks 1`,
  where a task may use all that is left, and a lead who ends each task after its four rounds

As in projects with their defaults, picks cover the pool, three in ten of a first round are drawn uniformly and held
out, and the kernel head is fitted; to save time, every second example of the pools is left out, and nothing is learned
from unlabelled ones (`--pool-learning off`). Each row of docs/results/study/budget.csv: the labels of each task; A, the
share of all test examples that are right at the end (each class has equally many); F, forgetting; worst, the accuracy
of the worst task at the end, all in percent. What is there is not run again. `--part choose` has other intents and
seeds 100 to 102; its rows are printed, and not kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, cast

import numpy as np
from heads_data import KIND_OF_BLOCKS, encoded, load
from paired import Cells, comparisons, show, summary
from project_data import TASKS, clinc150

from accuacl import Features, select
from accuacl.experiments.heads import candidates_of_kind
from accuacl.experiments.heads.pool import fit_with_pool
from accuacl.labeling.project import make
from accuacl.labeling.project.state import round_limit
from accuacl.labeling.store import Store

TOTAL, PER_ROUND, ROUNDS, HELD = 450, 50, 4, 15
RULES: dict[str, dict[str, int]] = {
    "even": {"budget_tasks": TASKS},
    "even, number unknown": {},
    "cap": {"budget_tasks": 1},
}
ORDERS = {"falling": slice(None), "rising": slice(None, None, -1)}
SIZES = {"clinc150": (30, 20, 10), "cifar100": (15, 10, 5)}
METRICS = ("A", "F", "worst")
RESULTS = Path("docs/results/study/budget.csv")
COLUMNS = ("data", "rule", "seed", "labels", *METRICS, "seconds")
START, END = "<!-- benchmarks/budget.py writes from here -->", "<!-- to here, benchmarks/budget.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--part", choices=["choose", "report"], default="report")
    run.add_argument("--data-dir", type=Path, default=os.environ.get("ACCUACL_DATA"))
    run.add_argument("--cache", type=Path, default=os.environ.get("ACCUACL_CACHE", "runs/budget"))
    table = commands.add_parser("table")
    table.add_argument("--page", type=Path)
    given = parser.parse_args()
    if given.command == "table":
        show(report(read(RESULTS)), given.page, START, END)
        return
    done = {(row["data"], row["rule"], int(row["seed"])) for row in read(RESULTS)}
    opened = lru_cache(maxsize=None)(partial(prepared, data_dir=given.data_dir, cache=Path(given.cache)))
    ordered = lru_cache(maxsize=2)(lambda base, seed: [in_order(pool, seed) for pool in opened(base).pools])
    for base, seed, order, rule in cells(given.part):
        if (f"{base}, {order}", rule, seed) not in done:
            started = time.process_time()
            data, picks, counts = opened(base), ordered(base, seed), split(rule)
            ends = learned(data.turned(order), picks[ORDERS[order]], counts)
            tested = [len(answers) for answers in data.turned(order).answers]
            values = (*numbers(ends, tested), time.process_time() - started)
            row = [f"{base}, {order}", rule, seed, json.dumps(counts), *(f"{value:.2f}" for value in values)]
            add(row, None if given.part == "choose" else RESULTS)


def cells(part: str) -> Iterator[tuple[str, int, str, str]]:
    bases, seeds = (["clinc150-choose"], range(100, 103)) if part == "choose" else (list(SIZES), range(10))
    yield from ((base, seed, order, rule) for seed, base, order, rule in product(seeds, bases, ORDERS, RULES))


@dataclass
class Parts:
    """Of each task: rows to label, their classes, rows to test, and theirs."""

    kind: str
    pools: list[np.ndarray]
    truth: list[np.ndarray]
    tests: list[np.ndarray]
    answers: list[np.ndarray]

    def turned(self, order: str) -> Parts:
        lists = (each[ORDERS[order]] for each in (self.pools, self.truth, self.tests, self.answers))
        return Parts(self.kind, *lists)

    def thinned(self) -> Parts:
        """Every second row to label."""
        return replace(self, pools=[rows[::2] for rows in self.pools], truth=[classes[::2] for classes in self.truth])


def prepared(base: str, data_dir: Path, cache: Path) -> Parts:
    """The data as the heads of projects see it, in three tasks that become smaller."""
    sizes = SIZES[base.removesuffix("-choose")]
    if base != "cifar100":
        place = cache / f"{base}-uneven"
        found = encoded(clinc150(data_dir, place, first=0 if base.endswith("-choose") else 60, each=sizes), place)
        lists = {part: [found[f"{part}{t}"] for t in range(TASKS)] for part in ("pools", "truth", "tests", "answers")}
        return Parts("texts", **lists).thinned()
    arrays = load("cifar100-lite2", data_dir, cache)
    pool, truth, tests, answers = map(np.concatenate, (arrays.pools, arrays.truth, arrays.tests, arrays.answers))
    limits = np.cumsum(sizes[:-1])  # of the numbers of classes
    mine, tested = ([np.flatnonzero(np.digitize(of, limits) == t) for t in range(TASKS)] for of in (truth, answers))
    found = [[whole[rows] for rows in mine] for whole in (pool, truth)]
    found += [[whole[rows] for rows in tested] for whole in (tests, answers)]
    return Parts("images", *found).thinned()


class Used:
    """A store in which so many labels of each task are used."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = counts

    def used(self, task: int) -> int:
        return self.counts[task]

    def used_elsewhere(self, task: int, round: int) -> int:
        return sum(self.counts) - (0 if round else self.counts[task])


def split(rule: str) -> list[int]:
    """How many labels each task gets, if it begins when those before it are learned.

    >>> [split(rule) for rule in RULES]
    [[150, 150, 150], [225, 113, 56], [200, 200, 50]]
    """
    settings = make({"kind": "vectors", "budget_total": TOTAL, "per_round": PER_ROUND} | RULES[rule])
    counts: list[int] = []
    for t in range(TASKS):
        counts.append(0)
        round = 0
        while rule != "cap" or round < ROUNDS:
            size = round_limit(settings, cast(Store, Used(counts)), t + 1, t, round)
            if not size:
                break
            counts[t] += size
            round += 1
    return counts


def in_order(pool: np.ndarray, seed: int) -> np.ndarray:
    """The rows in the order in which people get them: those held out, then those that cover the pool."""
    held = np.random.default_rng([seed, len(pool)]).permutation(len(pool))[:HELD]
    left = np.setdiff1d(np.arange(len(pool)), held)
    most = max(max(split(rule)) for rule in RULES) - HELD
    features = Features(pool[left], np.ones((len(left), 1), np.float32))
    return np.append(held, left[select("coverage", pool=features, budget=most, seed=seed).indices])


def learned(data: Parts, picks: list[np.ndarray], counts: list[int]) -> list[list[float]]:
    """After each task, percent right on the tests of all so far, among all classes seen."""
    width = data.pools[0].shape[1]
    blocks = KIND_OF_BLOCKS.get(data.kind, [(0, width)])
    ends = []
    for t in range(1, TASKS + 1):
        taught = [picks[j][HELD : counts[j]] for j in range(t)]
        x = np.concatenate([data.pools[j][taught[j]] for j in range(t)])
        labels = np.concatenate([data.truth[j][taught[j]] for j in range(t)])
        classes = 1 + max(int(truth.max()) for truth in data.truth)
        candidates = candidates_of_kind(data.kind, blocks)
        head = fit_with_pool(x, labels, [], classes, mode="off", candidates=candidates, blocks=blocks)
        seen = np.unique(labels)
        guesses = [seen[head.logits(data.tests[j])[:, seen].argmax(axis=1)] for j in range(t)]
        ends.append([100 * float(np.mean(guesses[j] == data.answers[j])) for j in range(t)])
    return ends


def numbers(ends: list[list[float]], tested: list[int]) -> tuple[float, float, float]:
    """A, F and the worst task's accuracy, from the accuracies after each task and the sizes of the test sets.

    >>> numbers([[90.0], [80.0, 70.0], [60.0, 70.0, 40.0]], [2, 1, 1])
    (57.5, 15.0, 40.0)
    """
    last = ends[-1]
    falls = [ends[t][t] - last[t] for t in range(len(last) - 1)]
    return float(np.average(last, weights=tested)), mean(falls), min(last)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(row: list[Any], path: Path | None) -> None:
    print(*row, flush=True)
    if path:
        rows = [row] if path.exists() else [COLUMNS, row]
        with path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def report(rows: list[dict[str, str]]) -> str:
    """Each rule on each data set, then both even ones minus the cap: in each order, and by their mean."""
    by_data: dict[str, Cells] = defaultdict(lambda: defaultdict(dict))
    labels: dict[str, str] = {}
    for row in rows:
        labels[row["rule"]] = ", ".join(map(str, json.loads(row["labels"])))
        by_data[row["data"]][row["rule"]][int(row["seed"])] = {metric: float(row[metric]) for metric in METRICS}
    values = ["| data | rule | labels of each task | A | F | worst task | seeds |", "|---|---|--:|--:|--:|--:|--:|"]
    for data, rules in by_data.items():
        for rule, by_seed in rules.items():
            values.append(f"| {data} | {rule} | {labels[rule]} | {summary(by_seed, METRICS)} | {len(by_seed)} |")
    tests = ["| data | minus cap | A | p | F | p | worst task | p | pairs |", "|---|---|" + "--:|" * 7]
    for data, rules in {**by_data, **both_orders(by_data)}.items():
        for ours in [rule for rule in rules if rule != "cap"]:
            tests += [f"| {data} | {ours} | {line} |" for line in comparisons(rules, ours, ["cap"], METRICS).values()]
    return "\n".join([*values, "", *tests])


def both_orders(by_data: dict[str, Cells]) -> dict[str, Cells]:
    """The mean over the two orders of a data set, of the seeds that both have."""
    found: dict[str, Cells] = {}
    for base in dict.fromkeys(data.partition(",")[0] for data in by_data):
        falling, rising = (by_data.get(f"{base}, {order}", {}) for order in ORDERS)
        found[f"{base}, both orders"] = {
            rule: {
                seed: {m: (falling[rule][seed][m] + rising[rule][seed][m]) / 2 for m in METRICS}
                for seed in sorted(falling[rule].keys() & rising[rule].keys())
            }
            for rule in RULES
            if rule in falling and rule in rising
        }
    return found


if __name__ == "__main__":
    main()

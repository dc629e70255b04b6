"""Do a project's estimates and forecasts hold? Projects with their defaults, a scripted annotator, and the truth.

    OMP_NUM_THREADS=1 python benchmarks/forecasts.py run --part choose --data-dir DATA --cache CACHE
    OMP_NUM_THREADS=1 python benchmarks/forecasts.py run --part report --data-dir DATA --cache CACHE
    python benchmarks/forecasts.py table --page docs/heads.md

Three tasks of eight rounds with 50 labels each, of the data of benchmarks/heads_data.py; learner, strategy and hold-out
are the defaults of the kind of data. After each round a row is appended to docs/results/heads/forecasts.csv: what
`accuacl project status` says, and the truth, from test sets that no project sees. What is there is not run again, and a
project that was killed goes on. `choose` has seeds 100 to 102 and other classes than `report`, which has seeds 0 to 4.

Columns: labels are those of the task that its model has learned from, left the items of its pool without an answer.
accuracy and forgetting have a list [task, value, low, high, truth] for each task so far, and one for their mean (task
-1), in percent. target, more, low, high: so many more labels for the target; empty: not foreseen. said: as a sentence.
A forecast follows from the accuracies before it, so the table has those that the present rule gives for the recorded
accuracies; what was said at the time stays in the file.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise, product
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from heads_data import BASES, Arrays, load
from paired import show
from project_data import Data
from projects import answer, begin

from accuacl.experiments import learners, models, read_steps
from accuacl.labeling.project import Project, Tasks, make
from accuacl.labeling.project.estimates import Estimate, Estimates, share as share_of
from accuacl.labeling.project.learned import Networks, prepared_tasks
from accuacl.labeling.project.stopping import Forecast, Measured, forecast, next_target

ROUNDS = 8
RESULTS = Path("docs/results/heads/forecasts.csv")
NAMES = ("clinc150", "cifar100", "tiny-imagenet", "nslkdd")
VARIANTS = ("clinc150+wrong", "cifar100+wrong")
START, END = "<!-- benchmarks/forecasts.py writes from here -->", "<!-- to here, benchmarks/forecasts.py -->"
KEY = ["data", "seed", "task", "round"]
COLUMNS = [*KEY, "labels", "left", "accuracy", "forgetting", "target", "more", "low", "high", "said", "seconds"]
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--part", choices=list(PARTS), required=True)
    run.add_argument("--data-dir", type=Path, default=os.environ.get("ACCUACL_DATA"))
    run.add_argument("--cache", type=Path, default=os.environ.get("ACCUACL_CACHE", "runs/heads"))
    run.add_argument("--only", default="", help="Only data whose names begin with this.")
    table = commands.add_parser("table")
    table.add_argument("--part", choices=list(PARTS), default="report")
    table.add_argument("--page", type=Path)
    given = parser.parse_args()
    if given.command == "table":
        show(report(list(PARTS[given.part]())), given.page, START, END)
        return
    opened = lru_cache(maxsize=1)(partial(prepared, data_dir=given.data_dir, cache=Path(given.cache)))
    for name, seed in PARTS[given.part]():
        if name.startswith(given.only) and len(rows_of(name, seed)) < 3 * ROUNDS:
            label(*opened(name), name, seed, Path(given.cache))


def chosen_by() -> Iterator[tuple[str, int]]:
    for seed, name in product(range(100, 103), NAMES):
        yield f"{name}-choose", seed


def reported() -> Iterator[tuple[str, int]]:
    yield from ((name, seed) for seed, name in product(range(5), NAMES))
    yield from ((name, seed) for seed, name in product(range(3), VARIANTS))


PARTS: dict[str, Callable[[], Iterator[tuple[str, int]]]] = {"choose": chosen_by, "report": reported}


def prepared(name: str, data_dir: Path, cache: Path) -> tuple[Data, Arrays]:
    """The data, and its arrays; the cache has the tasks with their embeddings then."""
    base = name.partition("+")[0]
    arrays = load(name, data_dir, cache)
    data = BASES[base](data_dir, cache / base)
    data.wrong = arrays.wrong
    return data, arrays


def label(data: Data, arrays: Arrays, name: str, seed: int, cache: Path) -> None:
    """A project from its first round to its last."""
    place = cache / "forecasts" / f"{name}-{seed}"
    settings = make({"kind": data.kind, "rounds": ROUNDS, "seed": seed} | data.settings)
    place.parent.mkdir(exist_ok=True)
    begin(place, settings, Tasks(cache / name.partition("+")[0] / "tasks").folder)
    with Project.open(place) as project:
        annotator = project.store.people()[0]
        known = {each.name: each.id for each in project.store.classes()}
        done = {(int(row["task"]), int(row["round"])) for row in rows_of(name, seed)}
        ended: dict[int, float] = {}  # by task, the true accuracy when it had been learned
        for row in rows_of(name, seed):
            ended[int(row["task"])] = next(one[4] for one in row["accuracy"] if one[0] == int(row["task"]))
        while True:
            started = time.process_time()
            finished = project.advance().finished
            steps = read_steps(project.journal, "train")
            if steps and (steps[-1].task, steps[-1].round) not in done:
                truth = true_accuracies(project, arrays, data, steps[-1].task + 1)
                ended[steps[-1].task] = truth[-1]
                done.add((steps[-1].task, steps[-1].round))
                found = said(project.estimates(), truth, ended)
                add([name, seed, steps[-1].task, steps[-1].round, *found, round(time.process_time() - started, 2)])
            if finished:
                break
            while (pick := project.store.lease(annotator)) is not None:
                spoken = answer(data, pick.item, known, seed)
                if spoken not in known:
                    known[spoken] = project.store.add_class(spoken, annotator).id
                project.store.label(annotator, pick.item, known[spoken], uuid.uuid4().hex)
    shutil.rmtree(place)


def true_accuracies(project: Project, arrays: Arrays, data: Data, tasks: int) -> list[float]:
    """Percent right on the test sets of the first tasks, among all classes seen."""
    networks = Networks(project.settings, project.weights, project.tasks)
    for made in prepared_tasks(project.tasks)[:tasks]:
        networks.open(made)
    handle = read_steps(project.journal, "train")[-1].result
    model, seen = networks.model(handle), np.array(handle["seen"])
    names = {each.id: each.name for each in project.store.classes()}
    found = []
    for t in range(tasks):
        _, p = models.predict(model, torch.from_numpy(arrays.tests[t]), learners.Transform(), seen)
        hits = [names[int(c)] == true for c, true in zip(seen[p.argmax(axis=1)], data.answers[t], strict=True)]
        found.append(100 * float(np.average(hits, weights=None if arrays.weights is None else arrays.weights[t])))
    return found


def said(found: Estimates, truth: list[float], ended: dict[int, float]) -> list[Any]:
    """The columns of a row from `labels` to `said`."""

    def compared(task: int, estimate: Estimate, true: float) -> list[float]:
        return [task, *(round(value, 2) for value in (estimate.value, estimate.low, estimate.high, true))]

    accuracy = [compared(task.task, task.now, truth[task.task]) for task in found.tasks]
    falls = [(task, ended[task.task] - truth[task.task]) for task in found.tasks if task.forgetting]
    forgetting = [compared(task.task, task.forgetting, fall) for task, fall in falls if task.forgetting]
    if found.accuracy and len(truth) > 1:
        accuracy.append(compared(-1, found.accuracy, mean(truth)))
    if found.forgetting and len(falls) > 1:
        forgetting.append(compared(-1, found.forgetting, mean(fall for _, fall in falls)))
    future = found.forecast
    numbers = [future.target, future.labels, future.low, future.high, future.text] if future else [""] * 5
    left = future.left if future else ""
    return [
        found.curve[-1].labels,
        left,
        json.dumps(accuracy),
        json.dumps(forgetting),
        *("" if number is None else number for number in numbers),
    ]


def rows_of(name: str, seed: int) -> list[Row]:
    """The rows of a project, in their order."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        rows: list[Row] = [row for row in csv.DictReader(file) if (row["data"], row["seed"]) == (name, str(seed))]
    for row in rows:
        row |= {column: json.loads(row[column]) for column in ("accuracy", "forgetting")}
    return rows


def add(row: list[Any]) -> None:
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, row] if fresh else [row])
    print(*row, flush=True)


def report(parts: list[tuple[str, int]]) -> str:
    """How many estimates' intervals hold the truth, by data, and how far forecasts are from it."""
    by_data: dict[str, list[list[Row]]] = defaultdict(list)
    for name, seed in parts:
        if rows := rows_of(name, seed):
            by_data[name].append(with_forecasts(rows))
    right = [project for name, projects in by_data.items() if "+" not in name for project in projects]
    if len(by_data) > 1:
        by_data["all with right answers"] = right
    estimates = [
        "| data | seeds | accuracy of a task: truth inside | in every round, by held-out set | half width "
        "| mean accuracy: inside | forgetting: inside | estimate - truth |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    forecasts = [
        "| data | forecasts | pool too small | against the held-out items | with an upper end | lower end above 0 "
        "| reached later | forecast - truth, labels | not reached | foreseen all the same |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, projects in by_data.items():
        estimates.append(f"| {name} | {len(projects)} | {' | '.join(estimates_of(projects))} |")
        forecasts.append(f"| {name} | {' | '.join(forecasts_of(projects))} |")
    return "\n".join([*estimates, "", *forecasts])


def with_forecasts(rows: list[Row]) -> list[Row]:
    """The rows of a project, each with its forecast by the present rule: a `Forecast`, or None."""
    curves: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        curve = curves[row["task"]]
        curve.append(measured(int(row["labels"]), next(one for one in row["accuracy"] if one[0] == int(row["task"]))))
        target = next_target(curve)
        row["forecast"] = forecast(curve, target, int(row["left"])) if target and row["left"] else None
    return rows


def measured(labels: int, estimate: list[float]) -> Measured:
    """How many of how many held-out items were right: those that have the recorded interval."""
    _, value, low, high, _ = estimate
    for held in range(1, 1000):
        right = round(value * held / 100)
        found = share_of(right, held)
        if [round(number, 2) for number in (found.value, found.low, found.high)] == [value, low, high]:
            return Measured(labels, right, held)
    raise ValueError(f"no number of held-out items has the interval {low} to {high} around {value} %")


def estimates_of(projects: list[list[Row]]) -> list[str]:
    rows = [row for project in projects for row in project]
    single = [one for row in rows for one in row["accuracy"] if one[0] >= 0]
    means = [one for row in rows for one in row["accuracy"] if one[0] < 0]
    falls = [one for row in rows for one in row["forgetting"]]
    sets: dict[tuple[int, int], list[list[float]]] = defaultdict(list)  # by project and task
    for i, project in enumerate(projects):
        for one in (one for row in project for one in row["accuracy"] if one[0] >= 0):
            sets[i, int(one[0])].append(one)
    return [
        inside(single),
        share([is_inside(found) for found in sets.values()]),
        f"{median((high - low) / 2 for _, _, low, high, _ in single):.0f}",
        inside(means),
        inside(falls),
        f"{mean(one[1] - one[4] for one in single):+.1f}",
    ]


def forecasts_of(projects: list[list[Row]]) -> list[str]:
    """Of those whose target was reached by the task's end: how many labels the forecast was off by. Of the others: how
    many had foreseen it within the labels that the task was still given.
    """
    off, too_early = [], []
    forecasts: list[Forecast] = [row["forecast"] for project in projects for row in project if row["forecast"]]
    for project in projects:
        for row in project:
            if not (found := row["forecast"]):
                continue
            needed = labels_needed(project, row, found.target)
            if needed is None:
                too_early.append(found.labels is not None and found.labels <= labels_after(project, row))
            elif found.labels is not None:
                off.append(found.labels - needed)
    quartiles = np.quantile(off, (0.25, 0.5, 0.75)) if off else []
    return [
        str(len(forecasts)),
        str(sum(found.too_few for found in forecasts)),
        str(sum(found.in_doubt for found in forecasts)),
        str(sum(found.high is not None for found in forecasts)),
        str(sum(bool(found.low) for found in forecasts)),
        str(len(forecasts) - len(too_early)),
        f"{quartiles[1]:+.0f} ({quartiles[0]:+.0f} to {quartiles[2]:+.0f})" if off else "",
        str(len(too_early)),
        str(sum(too_early)),
    ]


def inside(found: list[list[float]]) -> str:
    return share([is_inside([one]) for one in found])


def is_inside(found: list[list[float]]) -> bool:
    """Whether all of these intervals hold the truth."""
    return all(low <= true <= high for _, _, low, high, true in found)


def share(found: list[bool]) -> str:
    return f"{sum(found)} of {len(found)} ({100 * sum(found) / len(found):.0f} %)" if found else ""


def labels_needed(project: list[Row], row: Row, target: int) -> float | None:
    """How many labels more than in this row the task took for a target, by straight lines between rounds; 0 if it
    was there already, None if it has not come to it.
    """
    task, now = row["task"], int(row["labels"])
    curve = [
        (int(other["labels"]), next(one[4] for one in other["accuracy"] if one[0] == int(task)))
        for other in project
        if other["task"] == task and int(other["labels"]) >= now
    ]
    if curve[0][1] >= target:
        return 0.0
    for (a, low), (b, high) in pairwise(curve):
        if high >= target:
            return a + (b - a) * (target - low) / (high - low) - now
    return None


def labels_after(project: list[Row], row: Row) -> int:
    """How many labels more the task was given after this row."""
    return max(int(other["labels"]) for other in project if other["task"] == row["task"]) - int(row["labels"])


if __name__ == "__main__":
    main()

"""Projects with a scripted annotator: how good are they, how fast, and are their own estimates true?

Data sets of three tasks each, a person who knows the class (NAME-wrong: nine times in ten) and names new ones as they
come up; the pools of NAME-tail have a long tail, and the truth is weighted alike. The project
estimates its accuracy and forgetting from the labels that it holds out; here they are compared with the truth, from a
large test set that no project ever has.

    python benchmarks/projects.py --data-dir DATA --out runs/projects --learners er ridge --seeds 0 1 2

DATA (or ACCUACL_DATA) holds text/clinc150_data_full.json.xz, tabular/nslkdd_train20.csv.xz, and cifar100/ and
tiny-imagenet/ as Parquet.
Run the same command again to resume. OUT/results.csv gets a row for each data set, learner, strategy and
seed as soon as it is finished; several such commands may share OUT, one for each data set or some seeds. Embeddings
are computed once, in OUT/data. The strategy `NAME/first` has a first round that covers the pool. Columns of a row:

- true_accuracy, true_forgetting, calibration_error: of the test sets, after the last task, in percent
- accuracy, forgetting with _low and _high: what the project estimates; inside of intervals: how many hold the truth
- next_batch, next_batch_worst: seconds from the last label of a round to the next batch, median and largest
- curve: [labels spent, accuracy on each task so far, calibration error, seconds to the next batch] after each round
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import shutil
import statistics
import time
import uuid
from pathlib import Path

import torch
from project_data import DATA, Data
from project_truth import Judge

from accuacl.base.files import Lock, write_text
from accuacl.base.progress import ignore
from accuacl.experiments import read_steps
from accuacl.labeling.project import Project, ProjectSettings, Tasks, make, task_inputs as inputs

START, END = "<!-- benchmarks/projects.py writes from here -->", "<!-- to here -->"
CURVE = "curve.json"
LEARNERS = {
    "er": {"learner": "er"},
    "ridge": {"learner": "ridge", "head": "linear"},
    "ridge-projection": {"learner": "ridge", "head": "projection"},
}
STRATEGIES = ["uniform", "badge", "coverage", "uncertain-coverage", "fisher-ratio"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ACCUACL_DATA"))
    parser.add_argument("--out", type=Path, default=Path("runs/projects"))
    parser.add_argument("--data", nargs="+", default=["clinc150", "nslkdd", "cifar100"], choices=list(DATA))
    parser.add_argument("--learners", nargs="+", default=["er", "ridge"], choices=list(LEARNERS))
    parser.add_argument("--strategies", nargs="+", default=STRATEGIES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--keep", action="store_true", help="Keep the directories of finished projects.")
    parser.add_argument("--table", type=Path, help="Write the table into this Markdown file.")
    parser.add_argument("--results", type=Path, help="Where rows go, instead of OUT/results.csv.")
    parser.add_argument("--no-run", action="store_true", help="Only make the table of the rows that are there.")
    parser.add_argument("--known", nargs="*", type=Path, default=[], help="Tables with rows that are done already.")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="Settings of the projects.")
    given = parser.parse_args()
    if given.data_dir is None:
        parser.error("give --data-dir or set ACCUACL_DATA")
    more = {key: json.loads(value) for key, value in (one.split("=", 1) for one in given.set)}
    given.out.mkdir(parents=True, exist_ok=True)
    path, opened = given.results or given.out / "results.csv", {}

    def rows() -> list[dict]:
        return [row for table in [path, *given.known] for row in read_csv(table)]

    for seed in given.seeds:  # all of one seed first, so that what is there can be compared at any time
        for name in given.data:
            for learner in given.learners:
                for strategy in given.strategies:
                    key = {"data": name, "learner": learner, "strategy": strategy, "seed": str(seed)}
                    key |= {"set": " ".join(given.set)} if given.set else {}
                    if given.no_run or any(key.items() <= row.items() for row in rows()):
                        continue
                    if name not in opened:
                        opened[name] = prepared(DATA[name](given.data_dir, given.out / "data" / name), given.out, more)
                    row = key | run(*opened[name], given.out, learner, strategy, seed, more, given.keep)
                    print({name: value for name, value in row.items() if name != "curve"}, flush=True)
                    add_to_csv(path, row)
    text = table(rows(), given)
    print(text)
    if given.table:
        before, _, rest = given.table.read_text().partition(START)
        given.table.write_text(f"{before}{START}\n{text}{END}{rest.partition(END)[2]}")


def prepared(data: Data, out: Path, more: dict) -> tuple[Data, Path, Judge]:
    """The data, the folder of tasks with their embeddings, made once, and the judge."""
    place = out / "data" / data.name
    with Lock(out / "data" / f"{data.name}.lock", wait=True):
        settings, tasks = make({"kind": data.kind} | data.settings | more), Tasks(place)
        for source in data.pools[len(tasks.all()) :]:
            tasks.add(source)
        for task in tasks.all():
            inputs.prepare(tasks, task, settings, ignore)
        judge = Judge(data, settings, tasks)
        for t in range(len(data.tests)):
            judge.raw(t)
    return data, tasks.folder, judge


def run(
    data: Data, tasks: Path, judge: Judge, out: Path, learner: str, strategy: str, seed: int, more: dict, keep: bool
) -> dict:
    """One project from its first round to its last."""
    place = out / f"{data.name}-{learner}-{strategy.replace('/', '-')}-{seed}"
    name, _, first = strategy.partition("/")
    settings = make(
        {"kind": data.kind, "strategy": name, "first_round": "coverage" if first else "uniform", "seed": seed}
        | data.settings
        | LEARNERS[learner]
        | more
    )
    begin(place, settings, tasks)
    project = Project.open(place)
    annotator = project.store.people()[0]
    known = {label.name: label.id for label in project.store.classes()}
    started = time.perf_counter()
    while True:
        ready = time.perf_counter()
        state = project.advance()
        curve = follow(project, judge, time.perf_counter() - ready)
        if state.finished:
            break
        while (pick := project.store.lease(annotator)) is not None:
            name = answer(data, pick.item, known, seed)
            if name not in known:
                known[name] = project.store.add_class(name, annotator).id
            project.store.label(annotator, pick.item, known[name], uuid.uuid4().hex)
    row = outcome(project, curve) | {"minutes": (time.perf_counter() - started) / 60}
    project.close()
    if not keep:
        shutil.rmtree(place)
    return {key: str(round(value, 3)) for key, value in row.items()} | {"curve": json.dumps(curve)}


def answer(data: Data, item: int, known: dict[str, int], seed: int) -> str:
    """What the annotator says; when wrong, one of the other classes that are known, the same each time."""
    draw = random.Random(f"{seed} {item}")
    others = sorted(known.keys() - {data.truth[item]})
    return draw.choice(others) if others and draw.random() < data.wrong else data.truth[item]


def begin(place: Path, settings: ProjectSettings, tasks: Path) -> None:
    """Make the project, unless it is there with these settings."""
    if place.exists() and not (place / CURVE).exists():
        shutil.rmtree(place)  # killed while it was made
    if place.exists() and Project.open(place).settings != settings:
        shutil.rmtree(place)
    if not place.exists():
        project = Project.create(place, settings)
        # links, not copies: a task never changes, and its embeddings are the same for all strategies and seeds
        shutil.copytree(tasks, project.tasks.folder, copy_function=os.link, dirs_exist_ok=True)
        project.store.add_person("script")
        project.close()
        write_text(place / CURVE, "[]\n")


def follow(project: Project, judge: Judge, seconds: float) -> list:
    """The curve so far: after each round how good the model is on all tasks so far, and how long people waited."""
    path = project.directory / CURVE
    curve, steps = json.loads(path.read_text()), read_steps(project.journal, "train")
    if len(steps) > len(curve):
        if len(steps) > len(curve) + 1:
            raise SystemExit(f"{project.directory} went on without its curve; delete it.")
        accuracies, error = judge.judge(project, steps[-1].result, steps[-1].task + 1)
        curve.append([len(project.store.labels()), accuracies, error, seconds])
        write_text(path, json.dumps(curve) + "\n")
    return curve


def outcome(project: Project, curve: list) -> dict[str, float]:
    """What the project has come to."""
    ends = list({len(accuracies): accuracies for _, accuracies, *_ in curve}.values())  # after each task's last round
    found, last, waits = project.estimates(), len(ends) - 1, [seconds for *_, seconds in curve]
    row = {
        "labels": curve[-1][0],
        "held": sum(task.now.count for task in found.tasks),
        "true_accuracy": statistics.mean(ends[last]),
        "true_forgetting": statistics.mean(ends[j][j] - ends[last][j] for j in range(last)),
        "learning_accuracy": statistics.mean(ends[j][j] for j in range(last + 1)),
        "calibration_error": curve[-1][2],
        "next_batch": statistics.median(waits),
        "next_batch_worst": max(waits),
    }
    inside = 0
    for task in found.tasks:
        inside += task.now.low <= ends[last][task.task] <= task.now.high
        if task.forgetting:
            fall = ends[task.task][task.task] - ends[last][task.task]
            inside += task.forgetting.low <= fall <= task.forgetting.high
    row |= {"inside": inside, "intervals": 2 * len(found.tasks) - 1}
    for what in ("accuracy", "forgetting"):
        estimate = getattr(found, what)
        row |= {what: estimate.value, f"{what}_low": estimate.low, f"{what}_high": estimate.high}
    return row


def read_csv(path: Path) -> list[dict]:
    return list(csv.DictReader(path.open())) if path.exists() else []


def add_to_csv(path: Path, row: dict) -> None:
    """Add a row; another process may be adding one at the same time."""
    with Lock(path.with_suffix(".lock"), wait=True):
        rows = [*read_csv(path), row]
        aside = path.with_suffix(".part")
        with aside.open("w", newline="") as file:
            columns = list(dict.fromkeys(name for row in rows for name in row))
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        aside.replace(path)


def table(rows: list[dict], given: argparse.Namespace) -> str:
    """Means over seeds, in Markdown."""
    lines = [
        "| data | learner | strategy | seeds | labels | held out | accuracy: truth | estimate (95 %) | "
        "forgetting: truth | estimate (95 %) | intervals with the truth | calibration error | seconds to next batch |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in given.data:
        for learner in given.learners:
            for strategy in given.strategies:
                key = {"data": name, "learner": learner, "strategy": strategy}
                group = [row for row in rows if key.items() <= row.items() and int(row["seed"]) in given.seeds]
                if group:
                    lines.append(f"| {' | '.join([name, learner, strategy, *cells(group)])} |")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"
    chosen = ("data", "learners", "strategies", "seeds", "known")
    options = " ".join(
        f"--{name} {' '.join(map(str, getattr(given, name)))}" for name in chosen if getattr(given, name)
    )
    options += f" --results {given.results}" if given.results else ""
    command = f"`python benchmarks/projects.py --data-dir DATA {options} --table docs/projects.md`"
    seeds = ", ".join(map(str, given.seeds))
    return "\n".join(lines) + f"\n\nMeans over seeds {seeds}, in percent; {machine}. Command: {command}.\n"


def cells(group: list[dict]) -> list[str]:
    """What the table says of the same project with several seeds."""

    def mean(key: str) -> float:
        return statistics.mean(float(row[key]) for row in group)

    found = [str(len(group)), f"{mean('labels'):.0f}", f"{mean('held'):.0f}"]
    for what in ("accuracy", "forgetting"):
        found.append(f"{mean('true_' + what):.1f}")
        found.append(f"{mean(what):.1f} ({mean(what + '_low'):.0f} to {mean(what + '_high'):.0f})")
    inside, total = (sum(int(float(row[key])) for row in group) for key in ("inside", "intervals"))
    return [*found, f"{inside} of {total}", f"{mean('calibration_error'):.1f}", f"{mean('next_batch'):.2f}"]


if __name__ == "__main__":
    main()

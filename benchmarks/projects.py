"""Projects with a scripted annotator: are the estimates of accuracy and forgetting true?

Three data sets, three tasks each, a person who always knows the class and names new ones as they come up. The project
estimates its accuracy and forgetting from the labels that it holds out; here they are compared with the truth, from a
large test set that no project ever has.

    python benchmarks/projects.py --data-dir DATA --out runs/projects --table docs/projects.md

DATA (or ACCUACL_DATA) holds text/clinc150_data_full.json.xz, tabular/nslkdd_train20.csv.xz and cifar100/ as Parquet.
Given again, the same command goes on where it was; finished runs are in OUT/results.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import shutil
import statistics
import time
import uuid
from pathlib import Path

import numpy as np
import torch
from project_data import DATA, Data

from accuacl import models
from accuacl.base.files import write_text
from accuacl.base.progress import ignore
from accuacl.experiment import load_tensors, read_steps
from accuacl.labeling.project import Project, Tasks, inputs, make, words
from accuacl.learners import Transform

START, END = "<!-- benchmarks/projects.py writes from here -->", "<!-- to here -->"
TRUTHS = "truth.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ACCUACL_DATA"))
    parser.add_argument("--out", type=Path, default=Path("runs/projects"))
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--strategies", nargs="+", default=["accuacl", "uniform", "badge"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--table", type=Path, help="Write the table into this Markdown file.")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="Settings of the projects.")
    given = parser.parse_args()
    if given.data_dir is None:
        parser.error("give --data-dir or set ACCUACL_DATA")
    more = {key: json.loads(value) for key, value in (one.split("=", 1) for one in given.set)}
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "results.csv"
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    for name in given.data:
        data = None
        for seed in given.seeds:
            for strategy in given.strategies:
                key = {"data": name, "strategy": strategy, "seed": str(seed)}
                if any(key.items() <= row.items() for row in rows):
                    continue
                data = data or DATA[name](given.data_dir, given.out / "data" / name)
                rows.append(key | run(data, given.out, strategy, seed, more))
                print(rows[-1], flush=True)
                write_csv(path, rows)
    text = table(rows, given)
    print(text)
    if given.table:
        before, _, rest = given.table.read_text().partition(START)
        given.table.write_text(f"{before}{START}\n{text}{END}{rest.partition(END)[2]}")


def run(data: Data, out: Path, strategy: str, seed: int, more: dict) -> dict:
    """One project from its first round to its last."""
    place = out / f"{data.name}-{strategy}-{seed}"
    settings = make({"kind": data.kind, "strategy": strategy, "seed": seed} | data.settings | more)
    if place.exists() and Project.open(place).settings != settings:
        shutil.rmtree(place)
    if not place.exists():
        ready = prepared(data, out / "data" / data.name, settings)
        project = Project.create(place, settings)
        shutil.copytree(ready, project.tasks.folder)  # embeddings are the same for all strategies and seeds
        project.store.add_person("script")
    project = Project.open(place)
    annotator = project.store.people()[0]
    truths = place / TRUTHS
    known = {one.name: one.id for one in project.store.classes()}
    started = time.perf_counter()
    while True:
        state = project.advance()
        seen = json.loads(truths.read_text()) if truths.exists() else []
        ended = read_steps(project.journal, "evaluate")
        if len(ended) > len(seen):  # a task has just ended: how good is the model on all tasks so far?
            seen.append(true_accuracies(project, data, len(ended)))
            write_text(truths, json.dumps(seen))
        if state.finished:
            break
        while (pick := project.store.lease(annotator)) is not None:
            name = data.truth[pick.item]
            if name not in known:
                known[name] = project.store.add_class(name, annotator).id
            project.store.label(annotator, pick.item, known[name], uuid.uuid4().hex)
    found, last = project.estimates(), len(seen) - 1
    row = {
        "labels": len(project.store.labels()),
        "held": sum(one.now.count for one in found.tasks),
        "minutes": round((time.perf_counter() - started) / 60, 2),
        "true_accuracy": statistics.mean(seen[last]),
        "true_forgetting": statistics.mean(seen[j][j] - seen[last][j] for j in range(last)),
    }
    inside = 0
    for one in found.tasks:
        inside += one.now.low <= seen[last][one.task] <= one.now.high
        if one.forgetting:
            inside += one.forgetting.low <= seen[one.task][one.task] - seen[last][one.task] <= one.forgetting.high
    row["inside"], row["intervals"] = inside, 2 * len(found.tasks) - 1
    for what in ("accuracy", "forgetting"):
        estimate = getattr(found, what)
        row |= {what: estimate.value, f"{what}_low": estimate.low, f"{what}_high": estimate.high}
    project.close()
    return {key: str(round(value, 3)) for key, value in row.items()}


def prepared(data: Data, place: Path, settings) -> Path:
    """Tasks with their embeddings, made once."""
    tasks = Tasks(place)
    for source in data.pools[len(tasks.all()) :]:
        tasks.add(source)
    for task in tasks.all():
        inputs.prepare(tasks, task, settings, ignore)
    return tasks.folder


def true_accuracies(project: Project, data: Data, count: int) -> list[float]:
    """Percent right on the test sets of the first tasks, among all classes seen."""
    handle = read_steps(project.journal, "train")[-1].result
    state = load_tensors(project.directory / "weights", handle)
    scale = inputs._load(project.tasks.folder_of(0) / "scale.safetensors")
    s, seen = project.settings, np.array(handle["seen"])
    names = {one.id: one.name for one in project.store.classes()}
    accuracies = []
    for t in range(count):
        raw = data.tests[t]
        if data.kind == "texts":
            raw = words.vectors(raw, project.tasks.folder_of(0) / "words.json")
        elif data.kind == "images":
            raw = test_embeddings(data, t, s)
        x = torch.from_numpy(inputs.scaled(raw, scale))
        model = models.build(s.head, len(state["head.weight"]), seed=0, input_shape=(x.shape[1],), width=s.width)
        model.load_state_dict(state)
        _, p = models.predict(model, x, Transform(), seen)
        said = [names[int(c)] for c in seen[p.argmax(axis=1)]]
        accuracies.append(100 * float(np.mean([a == b for a, b in zip(said, data.answers[t], strict=True)])))
    return accuracies


def test_embeddings(data: Data, t: int, settings) -> np.ndarray:
    tasks = Tasks(data.place / "test")
    while len(tasks.all()) <= t:
        tasks.add(data.tests[len(tasks.all())])
    inputs.prepare(tasks, tasks.all()[t], settings, ignore)
    return np.load(tasks.folder_of(t) / "inputs.npy")


def write_csv(path: Path, rows: list[dict]) -> None:
    aside = path.with_suffix(".part")
    with aside.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[-1]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    aside.replace(path)


def table(rows: list[dict], given) -> str:
    """Means over seeds, in Markdown."""
    lines = [
        "| data | strategy | seeds | labels | held out | accuracy: truth | estimate (95 %) | forgetting: truth | "
        "estimate (95 %) | intervals with the truth |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in given.data:
        for strategy in given.strategies:
            group = [row for row in rows if (row["data"], row["strategy"]) == (name, strategy)]
            if not group:
                continue

            def mean(key: str, group=group) -> float:
                return statistics.mean(float(row[key]) for row in group)

            cells = [name, strategy, str(len(group)), f"{mean('labels'):.0f}", f"{mean('held'):.0f}"]
            for what in ("accuracy", "forgetting"):
                cells.append(f"{mean('true_' + what):.1f}")
                cells.append(f"{mean(what):.1f} ({mean(what + '_low'):.0f} to {mean(what + '_high'):.0f})")
            inside, total = (sum(int(float(row[key])) for row in group) for key in ("inside", "intervals"))
            lines.append(f"| {' | '.join([*cells, f'{inside} of {total}'])} |")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"
    seeds = ", ".join(map(str, given.seeds))
    command = "`python benchmarks/projects.py --data-dir DATA --table docs/projects.md`"
    return "\n".join(lines) + f"\n\nMeans over seeds {seeds}, in percent; {machine}. Command: {command}.\n"


if __name__ == "__main__":
    main()

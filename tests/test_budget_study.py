"""The measurement of how projects share a budget: labels by rule, metrics, and the tables."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import budget
from paired import show

from accuacl.labeling.project import Project, make
from scripted import SMALL, blobs, finish

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("rule", "counts"),
    [("even", [150, 150, 150]), ("even, number unknown", [225, 113, 56]), ("cap", [200, 200, 50])],
)
def test_what_each_task_gets(rule, counts):
    assert budget.split(rule) == counts


@pytest.mark.parametrize("rule", ["even", "even, number unknown"])
def test_projects_split_alike(rule, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "TOTAL", 18)
    monkeypatch.setattr(budget, "PER_ROUND", 2)
    usual = {name: value for name, value in SMALL.items() if name != "rounds"} | {"per_round": 2, "budget_total": 18}
    quick = {"learner": "ridge", "head": "linear", "strategy": "coverage", "first_round": "coverage"}
    with Project.create(tmp_path / "p", make(usual | quick | budget.RULES[rule])) as project:
        project.store.add_person("Ada", lead=True)
        for task in range(budget.TASKS):
            project.add(blobs(task)[0])
            finish(project)
        assert [project.store.used(task) for task in range(budget.TASKS)] == budget.split(rule)


def test_learning_from_separate_classes():
    """Classes of a task that got no labels are never right, and what was held out is not learned from."""
    rows = [np.eye(6, dtype=np.float32)[np.repeat([2 * t, 2 * t + 1], 20)] for t in range(3)]
    classes = [np.repeat([2 * t, 2 * t + 1], 20) for t in range(3)]
    data = budget.Parts("images", rows, classes, rows, classes)
    order = np.arange(40).reshape(2, 20).T.ravel()  # one class, then the other
    assert budget.learned(data, [order] * 3, [20, 20, 0]) == [[100.0], [100.0, 100.0], [100.0, 100.0, 0.0]]
    assert [int(classes[0]) for classes in data.turned("rising").truth] == [4, 2, 0]


def test_tables_by_hand(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(budget, "RESULTS", tmp_path / "budget.csv")
    for seed in range(6):
        for order, gain in (("falling", -2), ("rising", 6)):
            budget.add([f"d, {order}", "cap", seed, "[4, 4, 1]", 70 + seed, 3, 40, 0.1], budget.RESULTS)
            budget.add([f"d, {order}", "even", seed, "[3, 3, 3]", 70 + seed + gain, 3, 50, 0.1], budget.RESULTS)
    rows = budget.read(budget.RESULTS)
    assert (len(rows), json.loads(rows[1]["labels"])) == (24, [3, 3, 3])
    lines = budget.report(rows).splitlines()
    assert "| d, rising | even | 3, 3, 3 | 78.5 ± 1.9 | 3.0 ± 0.0 | 50.0 ± 0.0 | 6 |" in lines
    assert "| d, falling | even | -2.0 | 0.031 | +0.0 | 1.000 | +10.0 | 0.031 | 6 |" in lines
    assert "| d, both orders | even | +2.0 | 0.031 | +0.0 | 1.000 | +10.0 | 0.031 | 6 |" in lines


def test_the_page_has_the_table_of_what_was_measured(tmp_path):
    page, copy = ROOT / "docs/projects.md", tmp_path / "projects.md"
    copy.write_text(page.read_text())
    show(budget.report(budget.read(ROOT / budget.RESULTS)), copy, budget.START, budget.END)
    assert copy.read_text() == page.read_text()
    with (ROOT / budget.RESULTS).open(newline="") as file:
        measured = {(row["data"], row["rule"], int(row["seed"])) for row in csv.DictReader(file)}
    assert measured == {(f"{base}, {order}", rule, seed) for base, seed, order, rule in budget.cells("report")}

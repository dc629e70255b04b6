"""`accuacl paper`: recipes as sweeps, their cost, time and memory of queries."""

from __future__ import annotations

import csv
import io

import pytest

from accuacl.cli import sweep
from accuacl.experiments import read_csv, write_csv
from accuacl.experiments.sweeps import RECIPES, efficiency, measure_queries, read_recipe, run_missing, runs_of
from accuacl.experiments.sweeps.efficiency import Measurement
from commands import PLUGIN, SMALL, accuacl
from pool_files import Inline


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "efficiency"])
@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
def test_every_recipe_is_a_sweep_at_every_scale(name, scale):
    recipe = read_recipe(name)
    assert recipe["title"]
    assert recipe["about"]
    assert all(run.config.scale == scale for run in runs_of(recipe, {"scale": scale}))


def test_the_main_recipe_is_the_papers_table():
    found = [run.config for run in runs_of(read_recipe("main"), {"scale": "paper"})]
    assert len(found) == 3 * 4 * (2 * 8 + 2 * 7 * 2)  # seeds, learners; BAIT on split-cifar10 only
    assert {c.memory for c in found if c.benchmark == "split-tiny-imagenet"} == {2000, 5000}


def test_a_lambda_recipe_differs_in_the_fourth_task_alone():
    found = [run.config for run in runs_of(read_recipe("lambda"), {"scale": "cpu", "seeds": 0})]
    assert [c.lam for c in found] == [0, 1 / 2, 2 / 3, 3 / 4, 4 / 5]
    assert {(c.tasks, c.lam_from, c.benchmark) for c in found} == {(4, 4, "split-cifar10")}


@pytest.fixture
def measured(monkeypatch):
    """Every query takes half a second and 1,000 bytes, and BAIT refuses more than four classes; (strategy, classes)."""
    asked = []

    def measure(function, case, threads):
        asked.append((case.strategy, case.K))
        refuses = case.strategy == "bait" and case.K > 4
        return Measurement(needs=case.K << 30) if refuses else Measurement(0.5, 0.5, 1000)

    monkeypatch.setattr(efficiency, "in_fresh_process", measure)
    return asked


def test_efficiency_measures_each_strategy_and_goes_on(tmp_path, monkeypatch):
    here = lambda function, *given, threads: function(*given)  # noqa: E731
    monkeypatch.setattr(efficiency, "in_fresh_process", here)
    options = ("paper", "efficiency", "--only", "strategy=accuacl", "--out", tmp_path)
    done = accuacl(*options)
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "efficiency.csv").read_text()
    assert len(first.splitlines()) == 6
    assert accuacl(*options).returncode == 0
    assert (tmp_path / "efficiency.csv").read_text() == first


def test_efficiency_names_the_machines_of_its_rows_and_its_whole_command(tmp_path, measured):
    options = ("paper", "efficiency", "--only", "strategy=accuacl,uniform", "--out", tmp_path)
    assert accuacl(*options).returncode == 0
    table = tmp_path / "efficiency.csv"
    lines = list(csv.DictReader(io.StringIO(table.read_text())))
    for line in lines:
        line["machine"] = "a clock" if line["strategy"] == "uniform" else "an abacus"
    with table.open("w") as written:
        writer = csv.DictWriter(written, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    done = accuacl(*options)
    page = (tmp_path / "efficiency.html").read_text()
    assert "an abacus; a clock" in done.stdout or "a clock; an abacus" in done.stdout
    assert "an abacus" in page
    assert "--only strategy=accuacl,uniform" in page


def test_a_query_that_is_refused_for_want_of_memory_is_left_out_and_asked_again(tmp_path, measured):
    recipe, table = read_recipe("efficiency"), tmp_path / "efficiency.csv"
    costs = measure_queries(recipe, "smoke", ["bait", "uniform"], table)
    assert costs.totals == {"uniform": (9 * 5 * 0.5, 1000.0)}
    assert costs.refused == {"bait": 10 << 30}
    measured.clear()
    assert measure_queries(recipe, "smoke", ["bait", "uniform"], table) == costs
    assert measured == [("bait", 6), ("bait", 8), ("bait", 10)]
    done = accuacl("paper", "efficiency", "--only", "strategy=bait,uniform", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "bait is left out: it needs 10.0 GiB" in (tmp_path / "efficiency.html").read_text()


def test_where_no_strategy_could_be_measured_there_is_no_report(tmp_path, monkeypatch):
    refused = Measurement(needs=3 << 30)
    monkeypatch.setattr(efficiency, "in_fresh_process", lambda function, case, threads: refused)
    done = accuacl("paper", "efficiency", "--only", "strategy=bait", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "bait is left out: it needs 3.0 GiB, more than there is here." in done.stdout
    assert not (tmp_path / "efficiency.html").exists()


@pytest.mark.parametrize("option", ["--results=x.csv", "--workers=2", "--engine=ray", "--gpus=0.5", "--plugin=mine.py"])
def test_efficiency_refuses_what_it_would_ignore(tmp_path, option):
    (tmp_path / "mine.py").write_text(PLUGIN)
    done = accuacl("paper", "efficiency", option, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2
    assert f"efficiency takes no {option.partition('=')[0]}" in done.stderr


def test_a_recipe_has_the_strategies_of_a_plugin_too(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(PLUGIN)
    recipe = {"title": "Digits", "about": "two", **SMALL, "strategy": "uniform", "seeds": [0, 1]}
    monkeypatch.setattr(sweep, "read_recipe", lambda name: recipe)
    command = ["paper", "scores", "--plugin", "mine.py", "--out", "out"]
    for more in (["--only", "strategy=last"], ["--only", "seed=0"]):
        done = accuacl(*command, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        page = (tmp_path / "out/scores.html").read_text()
        assert ("--only" in page) == (more == ["--only", "strategy=last"])  # then it holds more than the last one did
        assert ("2 of the 4 runs of this recipe." in page) == (more == ["--only", "strategy=last"])
    assert "3 of the 4 runs of this recipe." in page
    rows = read_csv(tmp_path / "out/scores.csv")
    assert [(row["strategy"], row["seed"]) for row in rows] == [("last", 0), ("last", 1), ("uniform", 0)]
    done = accuacl(*command, "--results", "out/scores.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "gets the recipe's own rows and no others" in done.stderr
    assert read_csv(tmp_path / "out/scores.csv") == rows


def test_costs_are_listed(tmp_path):
    done = accuacl("paper", "list", cwd=tmp_path, width=200)
    assert done.returncode == 0
    for name in RECIPES:
        assert name in done.stdout
    assert "0.00" not in done.stdout
    assert "BAIT on split-cifar10 only" in done.stdout
    assert "35 queries" in done.stdout
    row = run_missing(runs_of(SMALL | {"strategy": "uniform"}), tmp_path, tmp_path / "results.csv", Inline()).rows[0]
    one = runs_of(read_recipe("scores"), {"scale": "smoke"})[0].config.model_dump()
    write_csv(tmp_path / "results.csv", [row | one])
    done = accuacl("paper", "list", "--out", tmp_path, width=200)
    (line,) = (line for line in done.stdout.splitlines() if " scores " in line)
    assert line.split()[3:6:2] == ["3", "1"]
    assert accuacl("paper", "nothing").returncode == 2
    done = accuacl("paper", "list", "--only", "seed=0")
    assert (done.returncode, "list takes no --only" in done.stderr) == (2, True)

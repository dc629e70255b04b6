"""What a run says of its settings before it begins, and how it shows its result."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
import pytest

from accuacl.experiments import advice, make, read_csv, run
from commands import accuacl

ROOT = Path(__file__).parent.parent
MEASURED = list(csv.DictReader((ROOT / "src/accuacl/experiments/measured.csv").read_text().splitlines()))
EVERYWHERE = "nothing that was measured is better than uniform on every data set; see docs/strategies.md."
OF_IMAGES = EVERYWHERE.replace("see", "for images, --model pretrained is far more accurate; see")
SMALL = ("--tasks", "1", "--labels", "8", "--rounds", "1", "--pool", "40", "--epochs", "1", "--out", "run")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"learner": "der++", "strategy": "entropy", "benchmark": "split-cifar10", "labels": 1000, "memory": 100},
            "with der++, entropy was 9.8 points less accurate than uniform on split-cifar10 (cpu scale, 1,000 labels a "
            "task, memory 100, 3 seeds); try --strategy coverage --memory-policy coverage beside it.",
        ),
        ({"learner": "der++", "strategy": "entropy", "benchmark": "split-cifar10", "memory": 50}, OF_IMAGES),
        ({"learner": "der++", "strategy": "entropy", "benchmark": "split-cifar10", "labels": 1001}, OF_IMAGES),
        ({"learner": "der++", "strategy": "entropy"}, EVERYWHERE),  # of the digits nothing was measured
        ({}, EVERYWHERE),
        (
            {"memory": 50},
            "9.8 points more accurate than accuacl on split-digits (cpu scale, 50 labels a task, memory 50, 10 seeds), "
            "and forgot 5.4 points less.",
        ),
        ({"memory": 49}, EVERYWHERE),
        ({"memory": 50, "labels": 51}, EVERYWHERE),
        (
            {"learner": "der++", "benchmark": "split-cifar100", "labels": 500, "memory": 500},
            "3.1 points more accurate than accuacl on split-cifar100 (cpu scale, 1,000 labels a task, memory 500, 10 "
            "seeds), and forgot 2.8 points more.",
        ),
        ({"learner": "der++", "benchmark": "split-cifar100", "memory": 499, "labels": 1000}, OF_IMAGES),
        (
            {"learner": "der++", "benchmark": "split-cifar10", "memory": 100, "labels": 1000, "scale": "paper"},
            OF_IMAGES,
        ),
        (
            {"learner": "der++", "strategy": "badge", "benchmark": "split-cifar10", "memory": 100, "scale": "paper"},
            OF_IMAGES,
        ),
        ({"learner": "der++", "benchmark": "split-cifar10", "memory": 100, "model": "pretrained"}, ""),
        ({"model": "linear"}, ""),
        ({"learner": "der++", "memory_policy": "coverage"}, ""),
        (
            {"strategy": "uniform", "memory": 200, "labels": 40, "tasks": 5},
            "a memory of 200 keeps all 200 labels of the 5 tasks",
        ),
        ({"strategy": "uniform", "memory": 200, "labels": 40, "tasks": 0, "recurring": 1}, ""),  # of ten tasks
        ({"strategy": "accuacl", "memory": 0}, "accuacl weighs the past by the replay memory, and --memory is 0"),
        ({"strategy": "kcenter+memory", "memory": 0}, "it picks as kcenter does"),
        ({"memory_policy": "coverage"}, ""),
        ({"learner": "gss"}, ""),  # of which nothing was measured
        ({"learner": "der++", "benchmark": "split-cifar10", "labels": 1001}, OF_IMAGES),
        ({"learner": "der++", "strategy": "coverage"}, ""),
        ({"strategy": "entropy"}, ""),
        ({"strategy": "uniform", "sample": 5}, "uniform has no option 'sample'; --sample is ignored."),
        ({"strategy": "uniform", "sample": 50, "first_round": "coverage"}, ""),
        ({"learner": "gss", "share": 0.5}, "accuacl has no option 'share'; --share is ignored."),
        ({"strategy": "full", "variant": "paper"}, "full has no option 'variant'; --variant is ignored."),
        ({"strategy": "bait", "lam": 0.1}, "bait has no option 'lam'; --lam is ignored."),
    ],
)
def test_settings_that_go_badly_together_are_named(settings, says):
    sentences = advice(make({"benchmark": "split-digits", "memory": 20} | settings))
    assert len(sentences) == bool(says)
    assert says in "".join(sentences)


@pytest.mark.parametrize("learner", ["finetune", "joint", "lwf"])
def test_settings_that_a_learner_does_not_have_are_named_if_they_were_given(learner):
    given = {"learner": learner, "memory": 500, "learner_variant": "original", "strategy": "uniform", "tasks": 5}
    assert advice(make(given), given) == [
        f"--memory 500 makes no difference to {learner}.",
        f"--learner-variant original makes no difference to {learner}.",
    ]
    assert advice(make(given)) == []  # a default of the benchmark: nobody meant anything by it
    usual = {"learner": learner, "memory": 0, "learner_variant": "paper", "strategy": "uniform"}
    assert advice(make(usual), usual) == []
    own = {"learner": "er", "memory": 19, "learner_variant": "original", "strategy": "uniform"}
    assert advice(make(own), own) == []


def test_a_run_says_which_settings_make_no_difference(tmp_path):
    ended = accuacl("run", "--learner", "joint", "--memory", "50", "--strategy", "uniform", *SMALL, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("note: --memory 50 makes no difference to joint.") == 1


@pytest.mark.parametrize("line", MEASURED, ids=lambda line: f"{line['learner']}-{line['strategy']}-{line['benchmark']}")
def test_what_was_measured_is_in_the_table_that_it_names(line):
    rows = read_csv(ROOT / line["source"])
    names = ("learner", "benchmark", "strategy", "memory_policy")

    def results(strategy, policy):
        """By seed: average accuracy and forgetting."""
        chosen = (line["learner"], line["benchmark"], strategy, policy)
        alike = [row for row in rows if tuple(row.get(name, "paper") for name in names) == chosen]
        for name in ("labels", "memory"):
            assert {row[name] for row in alike} == {int(line[name])}
        assert {row["scale"] for row in alike} == {line["scale"]}
        return {row["seed"]: np.array([row["average_accuracy"], row["forgetting"]]) for row in alike}

    ours, theirs = results(line["strategy"], line["memory_policy"]), results(line["than"], "paper")
    paired = ours.keys() & theirs.keys()
    assert len(paired) == int(line["seeds"])
    differences = np.mean([ours[seed] - theirs[seed] for seed in paired], axis=0)
    assert [f"{difference:.1f}" for difference in differences] == [line["accuracy"], line["forgetting"]]


def test_a_run_of_your_own_data_says_that_smoke_learns_little(tmp_path):
    x, y = np.eye(20, 3, dtype=np.float32), np.arange(20) % 2
    np.savez(tmp_path / "x.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    command = ("run", "--benchmark", "x.npz", "--classes-per-task", "2", *SMALL)
    for more, told in (((), True), ((), False), (("--fresh",), True)):
        ended = accuacl(*command, *more, cwd=tmp_path, width=200)
        assert ended.returncode == 0, ended.stderr
        assert ("--scale smoke only tries whether everything works" in ended.stdout) == told


def test_title_and_means_are_not_broken_to_the_width_of_a_small_table(tmp_path):
    ended = accuacl("run", "--strategy", "uniform", *SMALL, cwd=tmp_path, width=100)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert "split-digits, er with uniform, memory 20, 8 labels a task, seed 0: accuracy (%)" in lines
    assert any(line.startswith("average accuracy ") and "learning accuracy" in line for line in lines)


def test_the_report_of_a_run_does_not_say_again_what_the_run_said_of_its_data(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.eye(20, 3, dtype=np.float32), y=np.arange(20) % 2)
    with warnings.catch_warnings(action="ignore"):
        run(make({"benchmark": str(tmp_path / "x.npz"), "classes_per_task": 2, "labels": 8}), tmp_path / "run")
    ended = accuacl("report", "run", cwd=tmp_path)  # where a warning is an error
    assert (ended.returncode, ended.stderr) == (0, "")

"""Runs and `select` look at a sample of large pools, unless they are told not to, and say so."""

from __future__ import annotations

import json

import numpy as np
import pytest

from accuacl.base.progress import Progress
from accuacl.cli import screen
from accuacl.experiments import LoopState, choose, make, run
from accuacl.experiments.data import Task
from accuacl.features import Features

SETTINGS = {"strategy": "coverage", "labels": 8, "rounds": 2, "epochs": 1, "tasks": 2}
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 5))


def features(ids):
    return Features(ROWS[ids], np.ones((len(ids), 1)))


def picks(pool, sample, seed=0, strategy="coverage", budget=6):
    config = make(SETTINGS | {"strategy": strategy, "sample": sample, "seed": seed})
    state = LoopState(Task(0, (0,), pool, pool), 2, pool, round=1)
    return choose(config, state, strategy, budget, features)


def test_a_sample_is_drawn_by_the_seed_and_stays_from_round_to_round():
    pool = np.arange(100, 200)
    picked = picks(pool, 30)
    assert (picked["sample"], picked["pool"]) == (30, 100)
    others = [set(picks(pool, 30, seed=seed, budget=30)["ids"]) for seed in (0, 1)]
    assert set(picked["ids"]) <= others[0] != others[1]
    later = picks(np.setdiff1d(pool, picked["ids"]), 24, budget=24)["ids"]  # of those that are left
    assert set(later) == others[0] - set(picked["ids"])


def test_gains_of_a_sample_are_estimates_for_the_pool():
    whole, part = picks(np.arange(200), 0), picks(np.arange(200), 100)
    assert "sample" not in whole
    assert part["scores"]["gain"][0] == pytest.approx(whole["scores"]["gain"][0], rel=0.3)


@pytest.mark.parametrize("strategy", ["kcenter", "uniform", "accuacl+coverage"])
def test_strategies_that_cannot_work_on_a_sample_look_at_everything(strategy):
    assert "sample" not in picks(np.arange(200), 30, strategy=strategy)


def test_a_sample_that_is_smaller_than_a_round_is_refused():
    with pytest.raises(ValueError, match="sample is 5, but 6 are to be picked"):
        picks(np.arange(200), 5)


@pytest.mark.parametrize(
    ("given", "sample"),
    [
        ({"benchmark": "split-cifar10"}, 5000),
        ({"benchmark": "split-cifar10", "labels": 3000, "rounds": 2}, 30_000),
        ({"benchmark": "split-cifar10", "sample": 0}, 0),
        ({"benchmark": "split-cifar10", "strategy": "uniform"}, 0),
        ({"benchmark": "split-cifar10", "strategy": "uniform", "first_round": "coverage"}, 5000),
        ({"benchmark": "split-cifar10", "options": {"sample": 70}}, 0),
        ({}, 0),  # the digits are few
    ],
)
def test_the_usual_sample(given, sample):
    assert make({"strategy": "coverage"} | given).sample == sample


def test_a_run_that_began_before_there_were_samples_goes_on_with_whole_pools(tmp_path):
    config = make(SETTINGS | {"sample": 0})
    run(config, tmp_path / "a")
    before = (tmp_path / "a" / "result.json").read_text()
    for name in ("config.json", "result.json"):
        path = tmp_path / "a" / name
        content = json.loads(path.read_text())
        content.get("config", content).pop("sample")
        path.write_text(json.dumps(content))
    assert run(make(SETTINGS | {"sample": 100}), tmp_path / "a") == json.loads(before)
    run(config, tmp_path / "b")
    with pytest.raises(ValueError, match="holds a run with sample 0, not 100"):
        run(make(SETTINGS | {"sample": 100}), tmp_path / "b")


def test_a_run_says_how_many_it_looks_at_and_records_it(tmp_path):
    with pytest.warns(UserWarning, match="coverage looks at a random sample of 100 of a task's examples"):
        result = run(make(SETTINGS | {"sample": 100}), tmp_path / "a")
    assert result["config"]["sample"] == 100


def test_without_a_terminal_long_work_prints_a_line_every_half_minute(capsys):
    now = 0.0
    lines = screen.ProgressLines(lambda: now)
    for now in (1.0, 29.0, 31.0, 45.0, 60.9, 61.0, 300.0):
        lines.draw(Progress(now, 400, "task [1]/5"))
    assert capsys.readouterr().err.splitlines() == [
        "8 % after 31 s: task [1]/5",
        "15 % after 1.0 min: task [1]/5",
        "75 % after 5.0 min: task [1]/5",
    ]

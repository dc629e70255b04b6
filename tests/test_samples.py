"""Runs and `select` look at a sample of large pools, unless they are told not to, and say so."""

from __future__ import annotations

import json

import numpy as np
import pytest

from accuacl import pools
from accuacl.base.progress import Progress
from accuacl.cli import screen
from accuacl.experiments import LoopState, canonical, choose, make, read_config, run
from accuacl.experiments.config import write_config
from accuacl.experiments.data import Task
from accuacl.features import Features
from accuacl.labeling.project import ProjectSettings, make as new_project
from accuacl.labeling.project.rounds import looked_at, sample_of
from accuacl.strategies import REGISTRY, Selection, TooLarge
from commands import accuacl
from pool_files import write

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
        ({"benchmark": "split-cifar10", "options": {"sample": 70}}, 70),
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


def test_a_sample_among_the_options_is_the_setting():
    assert make(SETTINGS | {"options": {"sample": "30"}}) == make(SETTINGS | {"sample": 30})
    project = {"kind": "texts", "model": "none", "strategy": "coverage", "per_round": 10}
    settings = new_project(project | {"options": {"sample": "5"}})
    assert settings == new_project(project | {"sample": 5})
    assert settings.options == {}
    assert looked_at(settings.sample, settings.per_round) == 200


def test_what_began_with_a_sample_among_its_options_goes_on_with_it(tmp_path):
    before = make(SETTINGS | {"sample": 0}).model_copy(update={"options": {"sample": 50}})
    result = run(before, tmp_path / "a")
    assert run(make(SETTINGS | {"options": {"sample": 50}}), tmp_path / "a") == result
    with pytest.raises(ValueError, match="holds a run with the option sample 50, not unset"):
        run(make(SETTINGS | {"options": {"sample": 60}}), tmp_path / "a")
    settings = new_project({"kind": "texts", "model": "none", "strategy": "coverage"})
    write_config(tmp_path / "config.json", settings.model_copy(update={"options": {"sample": 5}}))
    opened = ProjectSettings(**read_config(tmp_path / "config.json", ProjectSettings))
    assert (opened.sample, opened.options) == (5000, {"sample": 5})


def test_what_is_refused_leaves_no_run_behind(tmp_path):
    command = ("run", "--strategy=coverage", "--tasks=1", "--labels=8", "--rounds=1", "--epochs=1", "--out=a")
    ended = accuacl(*command, "--option", "sample=5", cwd=tmp_path)
    says = "accuacl: sample is 5, but 8 are to be picked from it; give several times as many.\n"
    assert (ended.returncode, ended.stderr) == (2, says)
    assert accuacl(*command, "--sample=250", cwd=tmp_path).returncode == 0


def of_ones_own(seen):
    def seesize(query, *, sample: int = 3):
        seen.append((len(query.pool), sample))
        return Selection(np.arange(query.count), {})

    return seesize


@pytest.fixture
def seen(monkeypatch):
    """The sizes of the pools that a strategy was given, which means something else by `sample`."""
    seen = []
    monkeypatch.setitem(REGISTRY, "seesize", of_ones_own(seen))
    return seen


def test_an_option_sample_of_ones_own_truncates_no_pool(seen, tmp_path):
    assert "sample" not in picks(np.arange(200), 30, strategy="seesize")
    config = make(SETTINGS | {"strategy": "seesize", "sample": 30, "options": {"sample": 7}})
    assert (config.sample, config.options) == (30, {"sample": 7})
    assert canonical(config.model_dump())["sample"] == 0
    state = LoopState(Task(0, (0,), np.arange(200), np.arange(200)), 2, np.arange(200), round=1)
    choose(config, state, "seesize", 6, features)
    assert sample_of(state, "seesize", 30, 1, seed=0) is state
    assert len(sample_of(state, "coverage", 30, 1, seed=0).pool) == 30
    assert seen == [(200, 3), (200, 7)]


def test_a_strategy_of_ones_own_that_needs_a_whole_pool_is_offered_no_sample(seen, tmp_path):
    pool = write(tmp_path / "pool.parquet", np.arange(200), features(np.arange(200)))
    for strategy, offered in (("seesize", False), ("coverage", True)):
        with pytest.raises(TooLarge) as refused:
            pools.select(pool, strategy, budget=6, memory_limit=9)
        assert ("let a random sample represent the pool" in str(refused.value)) == offered


def test_select_says_that_it_sampled_only_if_it_did(seen, tmp_path):
    write(tmp_path / "pool.parquet", np.arange(200), features(np.arange(200)))
    command = ("select", "--pool=pool.parquet", "--budget=3", "--sample=6", "--out=picked.csv")
    for strategy, said in (("seesize", False), ("coverage", True)):
        ended = accuacl(*command, f"--strategy={strategy}", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert ("from a random sample of 6" in " ".join(ended.stdout.split())) == said


def test_the_note_of_a_sample_names_the_strategy(tmp_path):
    for given, name in (({"strategy": "coverage+memory"}, r"coverage\+memory"), ({"strategy": "entropy"}, "coverage")):
        with pytest.warns(UserWarning, match=f"^{name} looks at a random sample of 100"):
            run(make(SETTINGS | given | {"first_round": "coverage", "sample": 100, "tasks": 1}), tmp_path / name)


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

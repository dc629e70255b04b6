"""Runs: any learner with any strategy, killed at any instant and gone on with, byte for byte the same."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accuacl import NAMES, learners
from accuacl.data import load
from accuacl.experiment import LabelsPending, config, make, run
from accuacl.experiment.journal import Journal

SMALL = {"tasks": 3, "labels": 12, "rounds": 3, "epochs": 2, "memory": 8, "pool": 60}


def small(**more):
    return make({"benchmark": "split-digits"} | SMALL | more)


def outcome(out: Path) -> dict:
    """What must be the same to the last byte: matrix, every step's record, final weights; not the times it took."""
    result = json.loads((out / "result.json").read_text())
    del result["seconds"]
    db = sqlite3.connect(out / "journal.sqlite")
    steps = dict(db.execute("SELECT key, result FROM steps WHERE kind NOT IN ('load', 'result')"))
    db.close()
    weights = {path.name: path.read_bytes() for path in (out / "weights").iterdir()}
    return {"result": result, "steps": steps, "weights": weights}


@pytest.mark.parametrize("learner", learners.NAMES)
@pytest.mark.parametrize("variant", ["paper", "original"])
def test_every_learner_runs(tmp_path, learner, variant):
    result = run(small(learner=learner, learner_variant=variant), tmp_path)
    matrix = result["accuracy_matrix"]
    assert [[x is None for x in row] for row in matrix] == [[j > t for j in range(3)] for t in range(3)]
    assert all(0 <= x <= 100 for row in matrix for x in row if x is not None)
    assert set(result["seconds"]) == {"query", "train", "evaluate", "load", "other", "cpu"}
    assert {p.name for p in tmp_path.iterdir()} >= {"config.json", "journal.sqlite", "weights", "result.json"}


@pytest.mark.parametrize("strategy", [*NAMES, "full"])
def test_every_strategy_runs_and_respects_the_budget(tmp_path, strategy):
    run(small(strategy=strategy), tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    rows = db.execute("SELECT task, COUNT(*), COUNT(DISTINCT id) FROM picks GROUP BY task").fetchall()
    db.close()
    each = 60 if strategy == "full" else 12
    assert rows == [(task, each, each) for task in range(3)]


def test_picks_come_from_the_task_and_memory_from_what_was_labelled(tmp_path):
    run(small(), tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    labels = db.execute("SELECT task, id, label FROM labels").fetchall()
    assert all(label // 2 == task for task, _, label in labels)
    known = set()
    for task in range(3):
        known |= {i for t, i, _ in labels if t == task}
        memory = json.loads(db.execute("SELECT result FROM steps WHERE key = ?", (f"{task:03}/memory",)).fetchone()[0])
        assert len(memory["ids"]) == 8
        assert set(memory["ids"]) <= known
    db.close()


def test_only_what_is_needed_is_kept_of_the_weights(tmp_path):
    run(small(), tmp_path)
    names = {p.name for p in (tmp_path / "weights").iterdir()}
    assert names == {f"{name}{what}.safetensors" for name in ("001-002", "002-002") for what in ("", "-memory")}


def test_the_first_round_is_the_same_for_every_strategy(tmp_path):
    firsts = []
    for strategy in ("uniform", "accuacl", "badge"):
        run(small(strategy=strategy, tasks=1), tmp_path / strategy)
        db = sqlite3.connect(tmp_path / strategy / "journal.sqlite")
        firsts.append(db.execute("SELECT id FROM picks WHERE round = 0 ORDER BY rank").fetchall())
        db.close()
    assert firsts[0] == firsts[1] == firsts[2]


def test_seeds_differ_and_repeat(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(small(seed=seed), tmp_path / name)
    a, b, c = (outcome(tmp_path / name) for name in "abc")
    assert a == b
    assert a["weights"] != c["weights"]


def test_rounds_can_be_tested_too_and_change_nothing_else(tmp_path):
    plain = run(small(), tmp_path / "a")
    each = run(small(evaluate="round"), tmp_path / "b")
    assert plain["accuracy_matrix"] == each["accuracy_matrix"]
    db = sqlite3.connect(tmp_path / "b" / "journal.sqlite")
    assert db.execute("SELECT COUNT(*) FROM steps WHERE kind = 'test'").fetchone() == (9,)
    db.close()


def test_fewer_examples_than_the_budget_are_all_labelled(tmp_path):
    run(small(pool=10, labels=30), tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    assert db.execute("SELECT COUNT(*) FROM labels").fetchone() == (30,)
    db.close()


@pytest.mark.parametrize("learner", learners.NAMES)
@pytest.mark.parametrize("memory", [0, 1, 3])
def test_memory_smaller_than_the_number_of_classes(tmp_path, learner, memory):
    run(small(learner=learner, memory=memory, rounds=1), tmp_path)


def test_a_label_of_one_and_a_batch_of_one(tmp_path):
    run(small(labels=1, rounds=1), tmp_path / "a")
    run(small(batch=1), tmp_path / "b")
    run(small(labels=13, batch=4, rounds=1), tmp_path / "c")  # 13 = 4 + 4 + 5


def test_skipped_examples_are_left_out_and_pending_labels_wait(tmp_path):
    there, digits = [], load("digits").train.labels

    def people(task, r, ids):
        if (task, r) == (1, 1) and not there:
            raise LabelsPending("2 labels are missing")
        labels = digits[ids]
        labels[:1] = -1
        return labels

    with pytest.raises(LabelsPending, match="2 labels"):
        run(small(strategy="entropy"), tmp_path, oracle=people)
    there.append(1)
    run(small(strategy="entropy"), tmp_path, oracle=people)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    assert db.execute("SELECT COUNT(*) FROM labels").fetchone() == (3 * 3 * 3,)
    assert db.execute("SELECT COUNT(*), COUNT(DISTINCT id) FROM picks").fetchone() == (36, 36)  # never asked again
    db.close()


def test_a_wrong_answer_is_refused_and_can_be_corrected(tmp_path):
    digits = load("digits").train.labels
    with pytest.raises(ValueError, match="99"):
        run(small(), tmp_path, oracle=lambda task, r, ids: np.full(len(ids), 99))
    with pytest.raises(LabelsPending, match="none of the 4 examples of task 1 has a label"):
        run(small(), tmp_path, oracle=lambda task, r, ids: np.full(len(ids), -1))
    run(small(), tmp_path, oracle=lambda task, r, ids: digits[ids])


def test_queries_see_the_memory_of_the_past_and_its_size(tmp_path, monkeypatch):
    loop = sys.modules["accuacl.experiment.steps"]
    select, seen = loop.strategies.select, []

    def watched(name, **given):
        if name != "uniform":
            seen.append((len(given["pool"]), len(given["labelled"]), len(given["memory"]), given["past"]))
        return select(name, **given)

    monkeypatch.setattr(loop.strategies, "select", watched)
    run(small(learner="er-ace"), tmp_path)
    assert seen == [(56, 4, 0, 0), (52, 8, 0, 0), (56, 4, 8, 60), (52, 8, 8, 60), (56, 4, 8, 120), (52, 8, 8, 120)]


def test_a_failed_start_leaves_no_trace_and_fresh_destroys_nothing_then(tmp_path):
    for wrong in ({"order": "0,1,77"}, {"model": "conv4"}):
        with pytest.raises(ValueError, match=r"77|conv4"):
            run(small(**wrong), tmp_path / "a")
    assert not (tmp_path / "a").exists()
    first = run(small(tasks=1), tmp_path / "a")
    (tmp_path / "a" / "weights" / "mine.safetensors").write_bytes(b"mine")
    with pytest.raises(ValueError, match="conv4"):
        run(small(model="conv4"), tmp_path / "a", fresh=True)
    assert run(small(tasks=1), tmp_path / "a") == first
    run(small(tasks=1, seed=4), tmp_path / "a", fresh=True)
    assert (tmp_path / "a" / "weights" / "mine.safetensors").read_bytes() == b"mine"


def test_other_data_are_noticed(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 5)).astype(np.float32), np.arange(80) % 4
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    names = {"benchmark": str(folder), "classes_per_task": 2, "model": "mlp", "labels": 6, "rounds": 2, "memory": 4}
    stop = lambda task, r, ids: y[ids] if task == 0 else (_ for _ in ()).throw(LabelsPending("later"))  # noqa: E731
    with pytest.raises(LabelsPending):
        run(make(names), tmp_path / "run", oracle=stop)
    np.savez(folder / "data.npz", x_train=x + 1, y_train=y, x_test=x, y_test=y)
    with pytest.raises(ValueError, match=r"the data \(train\) are not those that this run was begun with"):
        run(make(names), tmp_path / "run")


def test_classes_per_task_divide_the_classes_anew(tmp_path):
    result = run(small(classes_per_task=5, tasks=0), tmp_path)
    assert len(result["accuracy_matrix"]) == 2
    assert len(result["recall"]) == 10
    assert 0 <= result["calibration_error"] <= 100


# -- killed and gone on with ----------------------------------------------------------------------------------------

# Runs attempts, each in a process of its own, and says how each ended. Forked: importing torch every time takes longer.
DRIVER = """
import json, os, signal, sys, time
from pathlib import Path
from accuacl.data import load
from accuacl.experiment import journal, make, run

load("digits")  # and with it scikit-learn, once for all attempts

def die_at(where, count):
    left = [count]
    def die():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    once, replace = journal.Journal.once, os.replace
    def before(self, key, step, *arguments):
        def dies(*a):
            if key.endswith(where[7:]):
                die()
            return step(*a)
        return once(self, key, dies, *arguments)
    def after(self, key, step, *arguments):
        new = not self.has(key)
        result = once(self, key, step, *arguments)
        if new and key.endswith(where[6:]):
            die()
        return result
    def renames_then_dies(a, b):
        replace(a, b)
        die()
    def dies_then_renames(a, b):
        die()
        replace(a, b)
    if where.startswith("before "):
        journal.Journal.once = before
    elif where.startswith("after "):
        journal.Journal.once = after
    elif where == "between file and record":
        os.replace = renames_then_dies
    elif where == "file not yet in place":
        os.replace = dies_then_renames

out, settings, attempts = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
codes = []
for attempt in attempts:
    child = os.fork()
    if child == 0:
        die_at(attempt.get("where", "nowhere"), attempt.get("count", 0))
        run(make(settings), out)
        os._exit(0)
    if "seconds" in attempt:
        time.sleep(attempt["seconds"])
        os.kill(child, signal.SIGKILL)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""


def attempts(out, learner, *tries):
    settings = {"benchmark": "split-digits", "learner": learner} | SMALL | {"tasks": 2, "rounds": 2}
    command = [sys.executable, "-c", DRIVER, str(out), json.dumps(settings), json.dumps(tries)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    results = {}

    def get(learner):
        if learner not in results:
            out = tmp_path_factory.mktemp("undisturbed")
            assert attempts(out, learner, {}) == [0]
            results[learner] = outcome(out)
        return results[learner]

    return get


KINDS = ("query", "label", "train", "memory", "evaluate", "result")
WHERE = [f"{when} {kind}" for when in ("before", "after") for kind in KINDS]
WHERE += ["after 001/001/train", "between file and record", "file not yet in place"]


@pytest.mark.parametrize("where", WHERE)
def test_killed_at_every_kind_of_step(tmp_path, where, undisturbed):
    learner = learners.NAMES[WHERE.index(where) % 4]
    codes = attempts(tmp_path, learner, *({"where": where, "count": count} for count in (1, 2, 3)), {})
    assert codes[0] == -signal.SIGKILL
    assert codes[-1] == 0
    assert outcome(tmp_path) == undisturbed(learner)


@pytest.mark.parametrize("learner", learners.NAMES)
def test_killed_at_random_instants(tmp_path, learner, undisturbed):
    rng = random.Random(learner)
    codes = attempts(tmp_path, learner, *({"seconds": rng.uniform(0, 0.5)} for _ in range(8)), {})
    assert -signal.SIGKILL in codes
    assert codes[-1] == 0
    assert outcome(tmp_path) == undisturbed(learner)


def test_finished_is_shown_at_once(tmp_path, monkeypatch):
    first = run(small(tasks=1), tmp_path)
    (tmp_path / "result.json").unlink()

    def never(*_, **__):
        raise AssertionError("data was loaded for a finished run")

    monkeypatch.setattr(sys.modules["accuacl.experiment.setting"], "load", never)
    assert run(small(tasks=1), tmp_path) == first
    assert json.loads((tmp_path / "result.json").read_text()) == first


def test_a_damaged_weights_file_is_named_and_kept(tmp_path):
    with pytest.raises(LabelsPending):
        run(small(), tmp_path, oracle=stops_at(1, 1))
    path = tmp_path / "weights" / "001-000.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    before = {p.name: p.read_bytes() for p in (tmp_path / "weights").iterdir()}
    with pytest.raises(LabelsPending):  # the query was done before it was damaged; nobody needs it yet
        run(small(), tmp_path, oracle=stops_at(1, 1))
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    db.execute("DELETE FROM steps WHERE key = '001/001/query'")
    db.commit()
    db.close()
    with pytest.raises(ValueError, match=r"001-000\.safetensors is damaged"):
        run(small(), tmp_path)
    assert {p.name: p.read_bytes() for p in (tmp_path / "weights").iterdir()} == before


def stops_at(task, r):
    digits = load("digits").train.labels

    def oracle(t, i, ids):
        if (t, i) == (task, r):
            raise LabelsPending("later")
        return digits[ids]

    return oracle


def test_a_full_disk_says_so_and_the_run_goes_on_afterwards(tmp_path, monkeypatch):
    whole = run(small(), tmp_path / "a")
    fsync, left = os.fsync, [7]

    def full(descriptor):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        run(small(), tmp_path / "b")
    assert not list((tmp_path / "b").rglob("*.part"))
    monkeypatch.undo()
    again = run(small(), tmp_path / "b")
    assert again["accuracy_matrix"] == whole["accuracy_matrix"]
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")


def test_another_machine_is_warned_of(tmp_path, monkeypatch):
    with pytest.raises(LabelsPending):
        run(small(), tmp_path, oracle=stops_at(1, 0))
    loop = sys.modules["accuacl.experiment.loop"]
    monkeypatch.setattr(loop, "environment", lambda config: {"torch": "another"})
    with pytest.warns(UserWarning, match="may differ in the last bits"):
        run(small(), tmp_path)


# -- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark", config.DEFAULTS)
@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
def test_defaults_are_valid_and_go_through_yaml(tmp_path, benchmark, scale):
    made = make({"benchmark": benchmark, "scale": scale})
    (tmp_path / "x.yaml").write_text(config.to_yaml(made))
    assert make(config.read(tmp_path / "x.yaml")) == made
    long = make({"benchmark": benchmark, "scale": scale, "order": ", ".join(map(str, range(100)))})
    (tmp_path / "x.yaml").write_text(config.to_yaml(long))
    assert make(config.read(tmp_path / "x.yaml")) == long


def test_paper_settings_are_the_papers():
    table = {
        "split-cifar10": (100, 1000, 10, 50, 16, 0.01, 0.8, 1e-4, "resnet18"),
        "split-cifar100": (500, 2000, 10, 20, 16, 0.01, 0.8, 1e-4, "resnet18"),
        "split-tiny-imagenet": (2000, 3000, 10, 30, 32, 0.01, 0.9, 0.0, "resnet18-3x3-pool"),
    }
    for benchmark, expected in table.items():
        c = make({"benchmark": benchmark, "scale": "paper"})
        got = (c.memory, c.labels, c.rounds, c.epochs, c.batch, c.lr, c.momentum, c.weight_decay, c.model)
        assert got == expected


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"learner": "magic"}, "there is no learner 'magic'; the learners are er"),
        ({"strategy": "magic"}, "there is no strategy 'magic'"),
        ({"benchmark": "magic"}, "there is no benchmark or folder 'magic'"),
        ({"epochs": 0}, "epochs is 0: Input should be greater than or equal to 1"),
        ({"lam": 2.0}, "lam is 2.0: Input should be less than"),
        ({"labels": 3, "rounds": 5}, "3 labels cannot be asked for in 5 rounds"),
        ({"colour": "red"}, "colour is 'red': Extra inputs are not permitted"),
        ({"scale": "huge"}, "scale is 'huge'"),
        ({"order": "random"}, "order is 'random'"),
        ({"order": "0,1,77"}, "77"),
        ({"model": "conv4"}, "conv4"),
        ({"model": "magic"}, "there is no model 'magic'"),
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"device": "cuda"}, "device is 'cuda' but torch finds none"),
        ({"benchmark": ["a"]}, "benchmark is"),
        ({"scale": ["a"]}, "scale is"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path, given, says):
    with pytest.raises(ValueError, match=says) as raised:
        run(make({"benchmark": "split-digits"} | SMALL | given), tmp_path)
    assert "\n" not in str(raised.value)


def cli(*arguments):
    command = [sys.executable, "-c", "from accuacl.cli import main; main()", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | {"COLUMNS": "120"})
    return done.returncode, done.stdout, done.stderr


def test_command_runs_then_shows_then_refuses_another_config(tmp_path):
    options = [f"--{key}={value}" for key, value in SMALL.items()]
    code, text, error = cli("run", "--out", tmp_path / "a", *options)
    assert code == 0, error
    assert "average accuracy" in text
    start_time = (tmp_path / "a" / "journal.sqlite").stat().st_mtime
    assert cli("run", "--out", tmp_path / "a", *options)[1].split("query")[0] == text.split("query")[0]
    assert (tmp_path / "a" / "journal.sqlite").stat().st_mtime == start_time
    code, _, error = cli("run", "--out", tmp_path / "a", *options, "--seed", 5)
    assert code == 2
    assert "holds a run with seed 0, not 5" in error
    assert len(error.splitlines()) == 1
    assert cli("run", "--out", tmp_path / "a", *options, "--seed", 5, "--fresh")[0] == 0


def test_command_takes_yaml_and_gives_it(tmp_path):
    code, text, _ = cli("run", "--benchmark", "split-digits", "--strategy", "badge", "--print-config")
    assert code == 0
    (tmp_path / "c.yaml").write_text(text)
    code, again, _ = cli("run", "--config", tmp_path / "c.yaml", "--seed", 3, "--print-config")
    assert code == 0
    assert config.read(tmp_path / "c.yaml")["strategy"] == "badge"
    assert again == text.replace("seed: 0 ", "seed: 3 ", 1)
    code, _, error = cli("run", "--config", tmp_path / "c.yaml", "--scale", "paper")
    assert code == 2
    assert "is of scale smoke" in error
    for content, says in (("a: [", "is not YAML"), ("hello", "holds no settings"), ("1: 2", "holds no settings")):
        (tmp_path / "bad.yaml").write_text(content)
        code, _, error = cli("run", "--config", tmp_path / "bad.yaml")
        assert code == 2
        assert says in error


def test_two_processes_on_one_directory(tmp_path):
    held = Journal(tmp_path, small().model_dump(), {})
    code, _, error = cli("run", "--out", tmp_path, *[f"--{key}={value}" for key, value in SMALL.items()])
    held.close()
    assert code == 2
    assert "another process" in error


def test_missing_data_is_one_sentence(tmp_path):
    code, _, error = cli("run", "--benchmark", "split-cifar10", "--data-dir", tmp_path, "--out", tmp_path / "run")
    assert code == 2
    assert str(tmp_path) in error
    assert len(error.splitlines()) == 1


@pytest.mark.skipif("ACCUACL_DATA" not in os.environ, reason="ACCUACL_DATA is not set: no real data")
@pytest.mark.parametrize("benchmark", ["split-cifar100", "split-tiny-imagenet"])
@pytest.mark.parametrize("learner", learners.NAMES)
def test_real_data_end_to_end(tmp_path, benchmark, learner):
    result = run(make({"benchmark": benchmark, "learner": learner, "tasks": 2, "scale": "smoke"}), tmp_path)
    assert np.isfinite(result["average_accuracy"])
    shutil.rmtree(tmp_path)

"""Runs: any learner with any strategy, killed at any instant and gone on with, byte for byte the same."""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from pydantic import Field

import journals
from accuacl import strategies, strategy_names
from accuacl.base.errors import InputError, LabelsPending
from accuacl.cli import main
from accuacl.experiments import (
    DEFAULTS,
    Config,
    Journal,
    canonical,
    checkpoints,
    data as data_sets,
    learners,
    make,
    read_steps,
    read_yaml,
    run,
    runner,
    to_yaml,
)
from accuacl.experiments.data import BENCHMARKS, Dataset, Split, load
from dying import run_until
from effort import times
from processes import Running, start_command

pytestmark = pytest.mark.posix

SMALL = {"tasks": 3, "labels": 12, "rounds": 3, "epochs": 2, "memory": 8, "pool": 60}


def small(**more):
    return make({"benchmark": "split-digits"} | SMALL | more)


def outcome(out: Path) -> dict:
    """What must be the same to the last byte: matrix, every step's record, final weights; not the times it took."""
    result = json.loads((out / "result.json").read_text())
    del result["seconds"]
    steps = {name: value for name, value in records(out).items() if name not in ("load", "result")}
    weights = {path.name: path.read_bytes() for path in (out / "weights").iterdir()}
    return {"result": result, "steps": steps, "weights": weights}


def records(out: Path, like: str = "*") -> dict:
    """What the journal has of the steps whose keys are like that, in their order."""
    return journals.records(out / "journal.sqlite", like)


@pytest.mark.parametrize("learner", [name for name in learners.NAMES if "paper" in learners.REGISTRY[name].policy])
@pytest.mark.parametrize("policy", ["herding", "coverage"])
def test_a_run_with_a_memory_policy_that_is_interrupted_goes_on_to_the_same_bytes(learner, policy, tmp_path):
    settings = small(learner=learner, memory_policy=policy, first_round="coverage", strategy="coverage")
    run(settings, tmp_path / "whole")
    stopped = []

    def stop(progress):
        stopped.append(progress.text)
        if len(stopped) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(settings, tmp_path / "parts", progress=stop)
    run(settings, tmp_path / "parts")
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")
    kept = records(tmp_path / "whole", "001/memory")["001/memory"]
    assert sorted(kept["keys"]) == [0, 0, 0, 0, 1, 1, 1, 1]  # the order within each of four classes


def test_the_first_round_covers_the_pool_once_there_is_a_model(tmp_path):
    run(small(first_round="coverage"), tmp_path / "coverage")
    run(small(), tmp_path / "uniform")
    covered, drawn = (records(tmp_path / name, "*/000/query") for name in ("coverage", "uniform"))
    assert covered["000/000/query"] == drawn["000/000/query"]
    assert covered["001/000/query"]["scores"].keys() == {"gain"}
    assert covered["001/000/query"]["ids"] != drawn["001/000/query"]["ids"]


@pytest.mark.parametrize("learner", learners.NAMES)
@pytest.mark.parametrize("variant", ["paper", "original"])
def test_every_learner_runs(tmp_path, learner, variant):
    result = run(small(learner=learner, learner_variant=variant), tmp_path)
    matrix = result["accuracy_matrix"]
    assert [[x is None for x in row] for row in matrix] == [[j > t for j in range(3)] for t in range(3)]
    assert all(0 <= x <= 100 for row in matrix for x in row if x is not None)
    assert set(result["seconds"]) == {"query", "train", "evaluate", "load", "other", "cpu"}
    assert {p.name for p in tmp_path.iterdir()} >= {"config.json", "journal.sqlite", "weights", "result.json"}


@pytest.mark.parametrize("strategy", [*strategy_names(), "full"])
def test_every_strategy_runs_and_respects_the_budget(tmp_path, strategy):
    run(small(strategy=strategy), tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    rows = db.execute("SELECT task, COUNT(*), COUNT(DISTINCT id) FROM picks GROUP BY task").fetchall()
    db.close()
    each = 60 if strategy == "full" else 12
    assert rows == [(task, each, each) for task in range(3)]


class Counted(np.ndarray):
    """An array that knows how many of its rows were read at a time."""

    reads: list

    def __getitem__(self, key):
        if isinstance(key, np.ndarray):
            self.reads.append(len(key))
        return np.asarray(super().__getitem__(key))


def test_inputs_are_read_in_parts_however_large_the_past(tmp_path, monkeypatch):
    data, reads = load("digits"), []

    def counted(split):
        inputs = split.inputs.view(Counted)
        inputs.reads = reads
        return Split(inputs, split.labels)

    watched = Dataset(data.name, counted(data.train), counted(data.test), data.classes)
    settings = small(strategy="accuacl-full", classes_per_task=5, tasks=0, pool=0)
    with monkeypatch.context() as then:
        then.setattr(data_sets, "load", lambda *_, **__: watched)
        run(settings, tmp_path / "a")
    assert sum(reads) > 4000  # two queries a task of pools of 600, the past, tests of 300
    assert max(reads) == 128
    run(settings, tmp_path / "b")
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")


def test_picks_come_from_the_task_and_memory_from_what_was_labelled(tmp_path):
    run(small(), tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    labels = db.execute("SELECT task, id, label FROM labels").fetchall()
    assert all(label // 2 == task for task, _, label in labels)
    known = set()
    for task in range(3):
        known |= {i for t, i, _ in labels if t == task}
        memory = records(tmp_path)[f"{task:03}/memory"]
        assert len(memory["ids"]) == 8
        assert set(memory["ids"]) <= known
    db.close()


@pytest.mark.parametrize(
    ("learner", "more"), [("er", "keys"), ("der++", "keys"), ("er-ace", "keys"), ("gss", "scores")]
)
@pytest.mark.parametrize("memory", [0, 8])
def test_the_journal_has_the_memory_to_the_bit(tmp_path, learner, more, memory):
    run(small(learner=learner, memory=memory), tmp_path)
    for task in (1, 2):  # the file of the first is gone
        recorded = records(tmp_path, f"{task:03}/memory")[f"{task:03}/memory"]
        file = checkpoints.load_arrays(tmp_path / "weights", recorded.pop("file"))
        assert ("logits" in file) == (learner == "der++")
        file.pop("logits", None)
        assert recorded.keys() == file.keys()
        assert len(recorded["ids"]) == memory
        assert more in recorded or not memory
        for name, array in file.items():
            assert np.array(recorded[name], array.dtype).tobytes() == array.tobytes(), name


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


def test_uniform_trains_only_what_is_looked_at_and_gets_the_same(tmp_path):
    for name, evaluate in (("a", "task"), ("b", "round")):
        run(small(strategy="uniform", evaluate=evaluate), tmp_path / name)
    a, b = outcome(tmp_path / "a"), outcome(tmp_path / "b")
    assert list(records(tmp_path / "a", "*/train")) == ["000/002/train", "001/002/train", "002/002/train"]
    assert len(records(tmp_path / "b", "*/train")) == 9
    assert a["weights"] == b["weights"]
    assert a["result"].pop("config") != b["result"].pop("config")
    assert a["result"] == b["result"]
    assert a["steps"].items() <= b["steps"].items()
    run(small(strategy="badge"), tmp_path / "c")
    assert len(records(tmp_path / "c", "*/train")) == 9  # a strategy looks at every round's


@pytest.mark.parametrize(
    ("labels", "last", "sizes"), [(12, 5, [4, 4, 4, 4, 4]), (13, 6, [4, 4, 5, 4, 4, 5]), (12, 2, [4, 4])]
)
def test_the_last_task_may_have_more_rounds_of_the_same_size(tmp_path, labels, last, sizes):
    run(small(labels=labels), tmp_path / "a")
    result = run(small(labels=labels, last_rounds=last), tmp_path / "b")
    asked = {key: len(query["ids"]) for key, query in records(tmp_path / "b", "*/query").items()}
    assert [asked[f"002/{r:03}/query"] for r in range(last)] == sizes
    assert sum(asked.values()) == 2 * labels + sum(sizes)
    assert result["weights"] == f"002-{last - 1:03}.safetensors"
    for before in ("000/%", "001/%", "002/000/%"):
        assert records(tmp_path / "a", before) == records(tmp_path / "b", before)


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_lam_holds_from_its_task_on(tmp_path, monkeypatch, first):
    loop = sys.modules["accuacl.experiments.loop"]
    select, lams = loop.strategies.select, []

    def watched(name, **given):
        if name != "uniform":
            lams.append(given.get("lam"))
        return select(name, **given)

    run(small(), tmp_path / "a")
    monkeypatch.setattr(loop.strategies, "select", watched)
    run(small(lam=0.0, lam_from=first), tmp_path / "b")
    assert lams == [None if task < first else 0.0 for task in (1, 2, 3) for _ in range(2)]  # two queries each
    for task in range(min(first - 1, 3)):
        assert records(tmp_path / "a", f"{task:03}/*") == records(tmp_path / "b", f"{task:03}/*")
    if first == 3:  # the past counts for nothing now: others are picked
        assert records(tmp_path / "a", "002/*/query") != records(tmp_path / "b", "002/*/query")


@pytest.mark.parametrize(("replay", "sizes"), [("once", [8, 8, 4]), ("cycled", [8, 8, 8])])
def test_er_replays_once_an_epoch_or_at_every_step(tmp_path, monkeypatch, replay, sizes):
    """By hand: 12 labels are 3 batches of 4, a memory of 8 has 2."""
    seen, augmented = [], learners.Round.augmented
    monkeypatch.setattr(learners.Round, "augmented", lambda self, rows: seen.append(len(rows)) or augmented(self, rows))
    run(small(replay=replay, batch=4, rounds=1, tasks=2), tmp_path)
    assert seen == 2 * [4, 4, 4] + 2 * sizes  # two epochs a task; nothing to replay in the first


def test_times_of_all_processes_are_counted_and_loading_is_the_first_ones(tmp_path):
    with pytest.raises(LabelsPending):
        run(small(), tmp_path, oracle=stops_at(1, 1))
    loading = records(tmp_path)["load"]
    seconds = run(small(), tmp_path)["seconds"]
    rows = {journals.key(step): step.cpu for step in read_steps(tmp_path / "journal.sqlite")}
    assert 0 < loading == seconds["load"]
    assert seconds["cpu"] == pytest.approx(sum(cpu for key, cpu in rows.items() if key != "result"))
    assert seconds["cpu"] > sum(cpu for key, cpu in rows.items() if key.endswith("train")) > 0
    assert json.loads((tmp_path / "result.json").read_text())["seconds"] == seconds


def test_fewer_examples_than_the_budget_are_all_labelled(tmp_path):
    run(small(pool=10, labels=30), tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    assert db.execute("SELECT COUNT(*) FROM labels").fetchone() == (30,)
    db.close()


@pytest.mark.parametrize("learner", learners.NAMES)
@pytest.mark.parametrize("memory", [0, 1, 3])
def test_memory_smaller_than_the_number_of_classes(tmp_path, learner, memory):
    result = run(small(learner=learner, memory=memory, rounds=1), tmp_path)
    assert 0 <= result["average_accuracy"] <= 100


@pytest.mark.parametrize(
    "settings", [{"labels": 1, "rounds": 1}, {"batch": 1}, {"labels": 13, "batch": 4, "rounds": 1}]
)
def test_a_label_of_one_and_a_batch_of_one(tmp_path, settings):
    result = run(small(**settings), tmp_path)  # 13 = 4 + 4 + 5
    assert 0 <= result["average_accuracy"] <= 100


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
    loop = sys.modules["accuacl.experiments.loop"]
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


def attempts(out, learner, *tries):
    """How each of them ended; a try dies where it is told to, or is killed after some seconds."""
    settings = small(learner=learner, tasks=2, rounds=2)
    codes = []
    for given in tries:
        process = Running(run_until, out, settings, given.get("where", ""), given.get("count", 0))
        if "seconds" in given:
            time.sleep(given["seconds"])
            process.kill()
        ended = process.wait()
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        codes.append(ended.returncode)
    return codes


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    results = {}

    def get(learner):
        if learner not in results:
            out = tmp_path_factory.mktemp("undisturbed")
            run(small(learner=learner, tasks=2, rounds=2), out)
            results[learner] = outcome(out)
        return results[learner]

    return get


KINDS = ("query", "label", "train", "memory", "evaluate", "result")
WHERE = [f"{when} {kind}" for when in ("before", "after") for kind in KINDS]
WHERE += ["after 1/1/train", "between file and record", "file not yet in place"]


@pytest.mark.parametrize("where", WHERE)
def test_killed_at_every_kind_of_step(tmp_path, where, undisturbed):
    learner = learners.NAMES[WHERE.index(where) % len(learners.NAMES)]
    tries = [{"where": where, "count": count} for count in range(1, times(1, 3) + 1)]
    codes = attempts(tmp_path, learner, *tries, {})
    assert codes[0] == -signal.SIGKILL
    assert codes[-1] == 0
    assert outcome(tmp_path) == undisturbed(learner)


@pytest.mark.parametrize("learner", learners.NAMES)
def test_killed_at_random_instants(tmp_path, learner, undisturbed):
    rng = random.Random(learner)
    tries = [{"seconds": 0.0}, *({"seconds": rng.uniform(0, 0.07 * (i + 1))} for i in range(times(3, 11)))]
    codes = attempts(tmp_path, learner, *tries, {})
    assert -signal.SIGKILL in codes
    assert codes[-1] == 0
    assert outcome(tmp_path) == undisturbed(learner)


def run_and_say_what_was_loaded(out):
    run(small(tasks=1), out)
    print(sorted({"sympy", "matplotlib"} & set(sys.modules)))


def test_a_run_does_not_wait_for_what_it_does_not_use(tmp_path):
    ended = Running(run_and_say_what_was_loaded, tmp_path).wait()  # torch loads sympy in half a second, for some calls
    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr


def test_finished_is_shown_at_once(tmp_path, monkeypatch):
    first = run(small(tasks=1), tmp_path)
    (tmp_path / "result.json").unlink()

    def never(*_, **__):
        raise AssertionError("data was loaded for a finished run")

    monkeypatch.setattr(data_sets, "load", never)
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
    db.execute("DELETE FROM steps WHERE task = 1 AND round = 1 AND kind = 'query'")
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
    with pytest.raises(InputError, match="no space left"):
        run(small(), tmp_path / "b")
    assert not list((tmp_path / "b").rglob("*.part"))
    monkeypatch.undo()
    again = run(small(), tmp_path / "b")
    assert again["accuracy_matrix"] == whole["accuracy_matrix"]
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")


def test_another_machine_is_warned_of(tmp_path, monkeypatch):
    with pytest.raises(LabelsPending):
        run(small(), tmp_path, oracle=stops_at(1, 0))
    journal = sys.modules["accuacl.experiments.journal"]
    monkeypatch.setattr(journal, "environment_of", lambda device: {"torch": "another"})
    with pytest.warns(UserWarning, match="may differ in the last bits"):
        run(small(), tmp_path)


# -- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark", DEFAULTS)
@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
def test_defaults_are_valid_and_go_through_yaml(tmp_path, benchmark, scale):
    made = make({"benchmark": benchmark, "scale": scale})
    (tmp_path / "x.yaml").write_text(to_yaml(made))
    assert make(read_yaml(tmp_path / "x.yaml")) == made
    long = make({"benchmark": benchmark, "scale": scale, "order": ", ".join(map(str, range(100)))})
    (tmp_path / "x.yaml").write_text(to_yaml(long))
    assert make(read_yaml(tmp_path / "x.yaml")) == long


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
        ({"benchmark": "magic"}, "there is no benchmark or folder 'magic'.*the benchmarks are split-digits"),
        ({"benchmark": "cifar100"}, "cifar100 is a data set; the benchmark made of it is split-cifar100"),
        ({"benchmark": "."}, "needs --classes-per-task"),
        ({"epochs": 0}, "epochs is 0; give at least 1."),
        ({"lam": 2.0}, "lam is 2.0; give a number from 0 to 1."),
        ({"labels": 3, "rounds": 5}, "3 labels cannot be asked for in 5 rounds"),
        ({"colour": "red"}, "there is no setting colour"),
        ({"scale": "huge"}, "scale is 'huge'"),
        ({"order": "random"}, "order is 'random'"),
        ({"order": "0,1,77"}, "77"),
        ({"model": "conv4"}, "conv4"),
        ({"model": "magic"}, "there is no model 'magic'"),
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"device": "cpux"}, "device is 'cpux'"),
        ({"device": "cuda"}, "device is 'cuda', but torch finds no GPU"),
        ({"benchmark": ["a"]}, "benchmark is"),
        ({"scale": ["a"]}, "scale is"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path, given, says):
    with pytest.raises(ValueError, match=says) as raised:
        run(make({"benchmark": "split-digits"} | SMALL | given), tmp_path)
    assert "\n" not in str(raised.value)


@pytest.fixture
def command(monkeypatch, capsys):
    """A command, in this process; its exit code, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["accuacl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    return call


def test_command_runs_then_shows_then_refuses_another_config(tmp_path, command):
    options = [*(f"--{key}={value}" for key, value in SMALL.items()), "--share=0.5"]
    ended = start_command("run", "--out", tmp_path / "a", *options).wait()  # a run of another process
    assert ended.returncode == 0, ended.stderr
    ignored, measured, text = ended.stdout.split("\n", 2)  # notes are given once, before the run
    assert ignored == "note: accuacl has no option 'share'; --share is ignored."
    assert measured.startswith("note: for networks trained from scratch, ")
    assert "average accuracy" in text
    start_time = (tmp_path / "a" / "journal.sqlite").stat().st_mtime
    assert command("run", "--out", tmp_path / "a", *options)[1].split("query")[0] == text.split("query")[0]
    assert (tmp_path / "a" / "journal.sqlite").stat().st_mtime == start_time
    code, _, error = command("run", "--out", tmp_path / "a", *options, "--seed", 5)
    assert code == 2
    assert "holds a run with seed 0, not 5" in error
    assert len(error.splitlines()) == 1
    assert command("run", "--out", tmp_path / "a", *options, "--seed", 5, "--fresh")[0] == 0


def test_command_takes_yaml_and_gives_it(tmp_path, command):
    code, text, _ = command("run", "--benchmark", "split-digits", "--strategy", "badge", "--print-config")
    assert code == 0
    (tmp_path / "c.yaml").write_text(text)
    code, again, _ = command("run", "--config", tmp_path / "c.yaml", "--seed", 3, "--print-config")
    assert code == 0
    assert read_yaml(tmp_path / "c.yaml")["strategy"] == "badge"
    assert again == text.replace("seed: 0 ", "seed: 3 ", 1)
    code, _, error = command("run", "--config", tmp_path / "c.yaml", "--scale", "paper")
    assert code == 2
    assert "c.yaml is of scale smoke and sets memory, labels, rounds, epochs, batch, lr, which --scale paper" in error
    assert "delete its line scale and those that the scale should decide, or leave out --scale" in error
    (tmp_path / "d.yaml").write_text("scale: smoke\nstrategy: badge\n")  # nothing that the scale decides
    code, text, _ = command("run", "--config", tmp_path / "d.yaml", "--scale", "paper", "--print-config")
    assert code == 0
    (tmp_path / "e.yaml").write_text(text)
    assert make(read_yaml(tmp_path / "e.yaml")) == make({"scale": "paper", "strategy": "badge"})
    (tmp_path / "d.yaml").write_text("labels: 77\n")  # what a file sets stays set
    code, text, _ = command("run", "--config", tmp_path / "d.yaml", "--scale", "paper", "--print-config")
    assert code == 0
    (tmp_path / "e.yaml").write_text(text)
    assert make(read_yaml(tmp_path / "e.yaml")) == make({"scale": "paper", "labels": 77})
    for content, says in (("a: [", "is invalid YAML"), ("hello", "has no settings"), ("1: 2", "has no settings")):
        (tmp_path / "bad.yaml").write_text(content)
        code, _, error = command("run", "--config", tmp_path / "bad.yaml")
        assert code == 2
        assert says in error


MERGED = "base: &base\n  lr: 1\nfirst: &first\n  <<: *base\n  lr: 2\nsecond:\n  <<: *first\n  lr: 3\n"


def test_a_setting_twice_in_yaml_is_refused(tmp_path):
    path = tmp_path / "twice.yaml"
    for content, says in (
        ("seed: 0\n# again\n'seed': 1\n", "line 3, column 1: seed is given twice"),
        ("runs:\n  - lr: 1\n    batch: 2\n    lr: 3\n", "line 4, column 5: lr is given twice"),
        ("runs: {lr: 1, lr: 1}", "line 1, column 15: lr is given twice"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=says):
            read_yaml(path)
    path.write_text(MERGED)
    assert read_yaml(path) == {"base": {"lr": 1}, "first": {"lr": 2}, "second": {"lr": 3}}


def test_two_processes_on_one_directory(tmp_path):
    held = Journal(tmp_path, small(), {})
    ended = start_command("run", "--out", tmp_path, *[f"--{key}={value}" for key, value in SMALL.items()]).wait()
    held.close()
    assert ended.returncode == 2
    assert "another process" in ended.stderr


def test_missing_data_is_one_sentence(tmp_path, command):
    code, _, error = command("run", "--benchmark", "split-cifar10", "--data-dir", tmp_path, "--out", tmp_path / "run")
    assert code == 2
    assert str(tmp_path) in error
    assert "--data-dir" in error
    assert "ACCUACL_DATA" in error
    assert len(error.splitlines()) == 1


def write_vectors(folder):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 5)), np.arange(80) % 4
    folder.mkdir(parents=True)
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=x, y_test=y)


def test_own_vectors_in_the_data_folder_get_a_net_for_vectors(tmp_path, command):
    write_vectors(tmp_path / "data" / "mine")
    options = ["--benchmark", "mine", "--data-dir", tmp_path / "data", "--classes-per-task", 2]
    code, text, error = command("run", *options, "--out", tmp_path / "run")
    assert code == 0, error
    assert "average accuracy" in text
    used = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (used["benchmark"], used["model"]) == ("mine", "mlp")
    code, text, _ = command("run", *options, "--scale", "paper", "--model", "linear", "--print-config")
    assert code == 0
    assert 'model: "linear"' in text
    code, _, error = command("run", "--benchmark", "yours", "--data-dir", tmp_path / "data", "--classes-per-task", 2)
    assert code == 2
    assert f"there is no benchmark or folder 'yours' here or in {tmp_path / 'data'}; the benchmarks are split-" in error
    assert len(error.splitlines()) == 1


def test_own_data_is_looked_for_here_then_in_the_data_folder(tmp_path, monkeypatch):
    write_vectors(tmp_path / "data" / "mine")
    given = {"benchmark": "mine", "classes_per_task": 2}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCUACL_DATA", raising=False)
    with pytest.raises(ValueError, match="'mine' here, and no data folder is named with --data-dir or in the env"):
        make(given)
    for scale in ("smoke", "cpu", "paper"):
        assert make(given | {"scale": scale}, tmp_path / "data").model == "mlp"
    monkeypatch.setenv("ACCUACL_DATA", str(tmp_path / "data"))
    assert make(given).model == "mlp"
    np.savez(
        tmp_path / "data" / "mine" / "data.npz",
        **dict.fromkeys(("x_train", "y_train", "x_test", "y_test"), np.zeros((3, 8, 8))),
    )
    assert make(given).model == "conv3"  # images
    write_vectors(tmp_path / "mine")
    assert make(given).model == "mlp"


REAL = [name for name in BENCHMARKS if name != "split-digits"]


@pytest.mark.parametrize("benchmark", REAL)
@pytest.mark.parametrize("learner", [name for name in learners.NAMES if not learners.REGISTRY[name].exact])
def test_real_data_end_to_end(tmp_path, benchmark, learner):
    if "ACCUACL_DATA" not in os.environ:
        pytest.skip("ACCUACL_DATA is not set: no real data")
    name, _, each = BENCHMARKS[benchmark]
    try:
        data = load(name)
    except ValueError as error:
        if "is not in" not in str(error):
            raise  # broken, not absent
        pytest.skip(str(error))
    settings = make({"benchmark": benchmark, "learner": learner, "tasks": 2, "scale": "smoke"})
    result = run(settings, tmp_path)
    (first, none), (a, b) = result["accuracy_matrix"]
    assert none is None
    assert all(0 <= x <= 100 for x in (first, a, b))
    assert list(result["recall"]) == list(data.classes[: 2 * each])
    for task in range(2):
        pairs = [
            pair for r in range(2) for pair in records(tmp_path, f"{task:03}/*")[f"{task:03}/{r:03}/label"]["labels"]
        ]
        assert len(pairs) == settings.labels
        assert all(data.train.labels[row] == label and label // each == task for row, label in pairs)
    remembered = records(tmp_path, "001/memory")["001/memory"]
    capacity = {"finetune": 0, "lwf": 0, "joint": 2 * settings.labels}.get(learner, settings.memory)
    assert len(remembered["ids"]) == min(capacity, 2 * settings.labels)
    np.testing.assert_array_equal(remembered["labels"], data.train.labels[remembered["ids"]])
    shutil.rmtree(tmp_path)


def test_a_part_of_the_test_examples_is_drawn_by_the_seed(tmp_path):
    some, other = (run(small(test=30, seed=seed, tasks=1), tmp_path / str(seed)) for seed in (0, 1))
    assert {round(value * 30 / 100, 6) % 1 for value in (some["average_accuracy"], other["average_accuracy"])} == {0}
    everything = run(small(test=10**6, tasks=1), tmp_path / "all")
    assert everything["accuracy_matrix"] == run(small(tasks=1), tmp_path / "usual")["accuracy_matrix"]


def test_a_run_begun_before_a_setting_existed_goes_on(tmp_path):
    whole = run(small(), tmp_path)
    path = tmp_path / "config.json"
    older = json.loads(path.read_text())
    del older["test"]
    path.write_text(json.dumps(older))
    assert run(small(), tmp_path) == whole
    with pytest.raises(ValueError, match="holds a run with test 0, not 5"):
        run(small(test=5), tmp_path)


class Newer(Config):
    """The settings of a later version, with one more."""

    colour: str = Field("red")


def test_a_new_setting_leaves_runs_that_lack_it_as_they_were(tmp_path):
    with pytest.raises(LabelsPending):
        run(small(), tmp_path / "begun", oracle=stops_at(1, 1))
    whole = run(small(), tmp_path / "whole")
    for name in ("begun", "whole"):
        with pytest.raises(InputError, match="holds a run with colour 'red', not 'blue'"):
            run(Newer(**small().model_dump(), colour="blue"), tmp_path / name)
        result = run(Newer(**small().model_dump()), tmp_path / name)
        assert result["accuracy_matrix"] == whole["accuracy_matrix"]
    run(Newer(**small(tasks=1).model_dump()), tmp_path / "new")
    with pytest.raises(InputError, match=r"newer version of accuacl \(with the settings colour\); upgrade"):
        run(small(tasks=1), tmp_path / "new")


def test_settings_of_a_newer_version_are_refused(tmp_path):
    run(small(tasks=1), tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 2}))
    with pytest.raises(InputError, match=r"config\.json was written by a newer version .*; upgrade accuacl"):
        run(small(tasks=1), tmp_path)


# -- options of strategies ------------------------------------------------------------------------------------------


@pytest.fixture
def own_strategy():
    """Registers a strategy that picks the first rows, and notes the options that it is handed."""

    def keep(name, strategy):
        strategies.register(name)(strategy)
        names.append(name)

    names: list[str] = []
    yield keep
    for name in names:
        del strategies.REGISTRY[name]


def test_a_strategy_is_handed_the_options_that_its_signature_has(tmp_path, own_strategy):
    handed = []

    def first(query):
        return strategies.Selection(np.arange(query.count), {})

    def mine(query, *, oversample=9.0, lam=None, total_classes=0):
        handed.append((oversample, lam, total_classes))
        return first(query)

    own_strategy("accuacl-mine", first)
    own_strategy("mine", mine)
    run(small(strategy="accuacl-mine", tasks=1, keep=3, lam=0.5), tmp_path / "a")
    run(small(strategy="mine", tasks=1, keep=3, lam=0.5, oversample=4.0), tmp_path / "b")
    assert set(handed) == {(4.0, 0.5, 10)}
    handed.clear()
    run(small(strategy="mine", tasks=1), tmp_path / "c")
    assert set(handed) == {(9.0, None, 10)}  # what is not set is left to the strategy
    given = small(keep=3, lam=0.5, lam_from=2, oversample=4.0, variant="paper").model_dump()
    unset = {"keep": 0, "lam": None, "lam_from": 1, "oversample": 2.0, "variant": "released"}
    assert canonical(given | {"strategy": "accuacl-mine"}) == given | unset | {"strategy": "accuacl-mine"}
    assert canonical(given | {"strategy": "full"}) == given | unset | {"strategy": "full"}
    kept = {"lam": 0.5, "lam_from": 2, "oversample": 4.0}
    assert canonical(given | {"strategy": "mine"}) == given | unset | kept | {"strategy": "mine"}
    assert canonical(given | {"strategy": "not loaded"}) == given | {"strategy": "not loaded"}


@pytest.mark.parametrize(
    ("strategy", "given", "handed"),
    [
        ("accuacl+uniform", {"share": 0.2}, {"share": 0.2}),
        ("accuacl+coverage", {"share": 1.0}, {"share": 1.0}),
        ("fisher-ratio", {"uncertainty": "ignored"}, {"uncertainty": "ignored"}),
        ("coverage", {"share": 0.2, "uncertainty": "ignored"}, {}),
    ],
)
def test_options_of_strategies_that_choose_a_set_are_settings(tmp_path, monkeypatch, strategy, given, handed):
    asked, select = [], strategies.select
    known = (
        "pool",
        "labelled",
        "memory",
        "budget",
        "past",
        "seed",
        "progress",
        "total_classes",
        "variant",
        "oversample",
        "classes",
    )

    def spy(name, **arguments):
        asked.append((name, {key: value for key, value in arguments.items() if key not in known}))
        return select(name, **arguments)

    monkeypatch.setattr(strategies, "select", spy)
    config = small(strategy=strategy, tasks=1, rounds=2, **given)
    run(config, tmp_path / "a")
    assert [options for name, options in asked if name == strategy] == [handed]
    assert (canonical(config.model_dump()) == config.model_dump()) == bool(handed)
    asked.clear()
    run(small(strategy=strategy, tasks=1, rounds=2), tmp_path / "b")
    assert [options for name, options in asked if name == strategy] == [{}]


def test_half_accuacl_is_the_same_run_whether_it_is_said_or_not():
    half, fifth, unset = (small(strategy="accuacl+uniform", share=share).model_dump() for share in (0.5, 0.2, None))
    assert canonical(half) == canonical(unset) == unset
    assert canonical(fifth) == fifth


@pytest.mark.parametrize(("a_second", "told"), [(1, True), (1000, False)])
def test_a_choice_that_takes_long_says_how_far_it_is(tmp_path, monkeypatch, a_second, told):
    ticks = itertools.count()
    monkeypatch.setattr("accuacl.experiments.loop.monotonic", lambda: next(ticks) / a_second)
    seen = []
    run(small(strategy="coverage", tasks=1, rounds=2), tmp_path / "a", progress=seen.append)
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares)
    parts = [progress for progress in seen if progress.step is not None]
    assert bool(parts) == told
    assert [part.step for part in parts] == sorted(part.step for part in parts)
    for part in parts:
        assert (part.stage, part.text) == ("choosing", f"task 1/1 round 2/2 choosing {100 * part.step:.0f} %")


def test_bait_has_no_weight_of_the_past(tmp_path):
    plain, given = (run(small(strategy="bait", lam=lam), tmp_path / str(lam)) for lam in (None, 0.5))
    assert plain["accuracy_matrix"] == given["accuracy_matrix"]
    assert canonical(given["config"]) == plain["config"]


@pytest.mark.parametrize("given", ["x", None, ["er"]])
def test_settings_are_a_dict(given):
    with pytest.raises(InputError, match=r"the settings are .*; give a dict of them, such as"):
        make(given)


@pytest.mark.parametrize("learner", learners.NAMES)
def test_a_finished_run_lets_go_of_its_data_at_once(tmp_path, monkeypatch, learner):
    """A process that does many runs, as in a sweep, does not keep the data of each until memory is tidied."""
    made = []

    class Watched(runner.ExperimentSteps):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(weakref.ref(self))

    monkeypatch.setattr(runner, "ExperimentSteps", Watched)
    gc.disable()
    try:
        run(small(learner=learner, strategy="accuacl", tasks=1), tmp_path / "run")
        assert [steps() for steps in made] == [None]
    finally:
        gc.enable()

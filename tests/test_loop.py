"""Algorithm 1 with steps that only note that they were done: their order, what they are given, which files stay."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl.base.errors import LabelsPending
from accuacl.experiments import Journal, LoopState, all_tasks, checkpoints, make, read_steps, run
from accuacl.experiments.data import Task
from journals import key

EMPTY = np.empty(0, np.int64)
CONFIG = make({})


class NotedSteps:
    """Two rounds a task; of each task ten examples, of which a round asks for two. The class is the task's number."""

    def __init__(self, folder, tasks, waits_at=None):
        self.folder, self.waits_at = folder, waits_at
        self.tasks = [Task(index, (index,), np.arange(10 * index, 10 * index + 10), EMPTY) for index in tasks]
        self.test_every_round = False
        self.done, self.given = [], []

    def begin(self, task, before):
        return LoopState(task, 2, task.train, **(before.carried_over() if before else {}))

    def note(self, kind, known):
        self.done.append((known.task.index, known.round, kind))
        self.given.append(known)

    def query(self, known):
        self.note("query", known)
        return {"ids": known.left[:2].tolist()}

    def label(self, known, picked):
        self.note("label", known)
        if (known.task.index, known.round) == self.waits_at:
            raise LabelsPending("later")
        return {"labels": picked["ids"]}

    def with_labels(self, known, answer):
        ids = np.append(known.ids, answer["labels"])
        labels = np.full(len(ids), known.task.index)
        return LoopState(**{**vars(known), "ids": ids, "labels": labels, "seen": np.union1d(known.seen, labels)})

    def needs_training(self, known):
        return True

    def train(self, known):
        self.note("train", known)
        return checkpoints.save_arrays(
            self.folder / f"{known.task.index:03}-{known.round:03}.safetensors", {"ids": known.ids}
        )

    def memory(self, known):
        self.note("memory", known)
        name = f"{known.task.index:03}-{known.round:03}-memory.safetensors"
        return {"file": checkpoints.save_arrays(self.folder / name, {"ids": known.ids[:1]})}

    def evaluate(self, known):
        self.note("evaluate", known)
        return {"accuracy": [50.0]}


def test_the_steps_of_algorithm_1_in_their_order(tmp_path):
    steps = NotedSteps(tmp_path / "weights", [0, 1])
    with Journal(tmp_path, CONFIG, {}) as journal:
        _, row, weights = all_tasks(steps, journal)
    rounds = [(r, kind) for r in (0, 1) for kind in ("query", "label", "train")]
    assert steps.done == [(t, *step) for t in (0, 1) for step in (*rounds, (1, "memory"), (1, "evaluate"))]
    assert (row, weights["file"]) == ({"accuracy": [50.0]}, "001-001.safetensors")
    first, second = (next(known for known in steps.given if (known.task.index, known.round) == (1, r)) for r in (0, 1))
    assert (first.asked.tolist(), first.ids.tolist(), first.earlier.tolist()) == ([], [], list(range(10)))
    assert (first.seen.tolist(), first.memory["file"]) == ([0], "000-001-memory.safetensors")
    assert first.start == first.weights
    assert first.start["file"] == "000-001.safetensors"
    assert (second.ids.tolist(), second.labels.tolist(), second.seen.tolist()) == ([10, 11], [1, 1], [0, 1])
    assert (second.start["file"], second.weights["file"]) == ("000-001.safetensors", "001-000.safetensors")


@pytest.mark.parametrize("waits_at", [(999, 1), (1000, 0), (1001, 1)])
def test_more_than_a_thousand_tasks(tmp_path, waits_at):
    """What is needed stays, what is not goes, and what was done is not done again."""
    numbers = range(998, 1003)
    with Journal(tmp_path / "whole", CONFIG, {}) as journal:
        all_tasks(NotedSteps(journal.weights, numbers), journal)
    with Journal(tmp_path / "cut", CONFIG, {}) as journal:
        first = NotedSteps(journal.weights, numbers, waits_at)
        with pytest.raises(LabelsPending):
            all_tasks(first, journal)
        known = first.given[-1]
        for handle in (known.start, known.weights, known.memory):
            assert checkpoints.load_arrays(journal.weights, handle)
        assert len(list(journal.weights.iterdir())) <= 4
    with Journal(tmp_path / "cut", CONFIG, {}) as journal:
        second = NotedSteps(journal.weights, numbers)
        all_tasks(second, journal)
    whole, cut = ([(key(s), s.result) for s in read_steps(tmp_path / n / "journal.sqlite")] for n in ("whole", "cut"))
    assert whole == cut
    assert len(whole) == 1 + 5 * (2 * 3 + 2)
    assert not set(first.done[:-1]) & set(second.done)
    for name in ("whole", "cut"):
        assert sorted(path.stem for path in (tmp_path / name / "weights").iterdir()) == [
            "1001-001", "1001-001-memory", "1002-001", "1002-001-memory"
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("learner", "variant", "in_training"),
    [
        ("er", "paper", False),
        ("er-ace", "paper", False),
        ("er-ace", "original", False),
        ("der++", "paper", False),
        ("gss", "paper", True),
        ("er", "original", True),
        ("der++", "original", True),
        ("gss", "original", True),
    ],
)
def test_the_memory_is_made_in_its_own_step_unless_training_makes_it(tmp_path, learner, variant, in_training):
    small = {"benchmark": "split-digits", "tasks": 2, "labels": 12, "rounds": 2, "epochs": 1, "memory": 8, "pool": 60}
    run(make(small | {"learner": learner, "learner_variant": variant}), tmp_path)
    trained = {(step.task, step.round): step.result for step in read_steps(tmp_path / "journal.sqlite", "train")}
    for step in read_steps(tmp_path / "journal.sqlite", "memory"):
        assert len(step.result["ids"]) == 8
        assert "memory" not in trained[step.task, 0]
        assert trained[step.task, 1].get("memory") == (step.result["file"] if in_training else None)

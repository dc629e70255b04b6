"""Learning from rare classes and wrong labels: balanced epochs, and a memory that keeps what is confirmed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from accuacl.base.randomness import torch_generator
from accuacl.experiments import checkpoints, learners, make, read_steps, run
from accuacl.experiments.data import load
from accuacl.experiments.learners.round import evenly
from accuacl.experiments.memory import Memory, class_balanced
from accuacl.experiments.memory.policies import NEIGHBOURS, agreement, votes
from effort import examples, times

SMALL = {"benchmark": "split-digits", "tasks": 2, "labels": 12, "rounds": 1, "epochs": 1, "memory": 8, "pool": 60}


@examples(50, 500)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 99))
def test_an_even_epoch_has_as_many_of_each_class(labels, seed):
    labels = torch.tensor(labels)
    rows = evenly(labels, torch_generator(seed))
    assert len(rows) == len(labels)
    counts = labels[rows].bincount()
    there = counts[labels.unique()]
    assert there.max() - there.min() <= 1
    uses = rows.bincount(minlength=len(labels))
    for c in labels.unique():  # of a class no example comes more often than another by two
        of_class = uses[labels == c]
        assert of_class.max() - of_class.min() <= 1


def test_balanced_epochs_of_balanced_labels_have_every_example():
    labels = torch.arange(30) % 3
    assert sorted(evenly(labels, torch_generator(0)).tolist()) == list(range(30))


@pytest.mark.parametrize(("learner", "variant"), [(n, v) for n in learners.NAMES for v in learners.REGISTRY[n]])
def test_every_learner_trains_evenly_and_remembers_each_example_once(tmp_path, learner, variant, monkeypatch):
    seen = []
    augmented = learners.Round.augmented
    monkeypatch.setattr(
        learners.Round, "augmented", lambda self, rows: (seen.append(self.labels[rows]), augmented(self, rows))[1]
    )
    settings = SMALL | {"learner": learner, "learner_variant": variant, "imbalance": 0.02, "tasks": 1, "memory": 50}
    run(make(settings | {"sampling": "balanced", "classes_per_task": 5, "labels": 40, "memory": 30}), tmp_path)
    (step,) = read_steps(tmp_path / "journal.sqlite", "label")
    asked = np.bincount([label for _, label in step.result["labels"]])
    assert asked[asked > 0].min() * 3 < asked.max()  # they are not balanced
    if learner == "er" and variant == "paper":
        counts = torch.cat(seen).bincount()
        assert counts[counts > 0].max() - counts[counts > 0].min() <= 1
    (memory,) = [step.result for step in read_steps(tmp_path / "journal.sqlite", "memory")]
    assert len(set(memory["ids"])) == len(memory["ids"])
    assert set(checkpoints.load_arrays(tmp_path / "weights", memory["file"])["ids"]) == set(memory["ids"])


def votes_by_hand(x, labels, predicted):
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)
    counted = []
    for i in range(len(x)):
        others = sorted((j for j in range(len(x)) if j != i), key=lambda j: (-(x[i] @ x[j]), j))[:NEIGHBOURS]
        tally = {c: sum(labels[j] == c for j in others) for c in set(labels.tolist())}
        counted.append(int(predicted[i] == labels[i]) + int(tally[labels[i]] == max(tally.values())))
    return counted


@pytest.mark.parametrize("seed", range(times(20, 200)))
def test_votes_are_those_of_the_model_and_of_the_nearest(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    x, labels, predicted = rng.normal(size=(n, 3)), rng.integers(0, 3, n), rng.integers(0, 3, n)
    assert votes(x, labels, predicted).tolist() == votes_by_hand(x, labels, predicted)


def test_the_memory_keeps_what_is_confirmed_and_no_class_goes_without():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [40, 40, 4])
    x = np.eye(3)[truth] + 0.1 * rng.normal(size=(84, 3))
    labels = truth.copy()
    labels[:8], labels[40:48] = 1, 0  # a fifth of the answers are wrong
    kept = agreement(Memory.empty(), np.arange(84), labels, x, 24, seed=0, predicted=truth)
    right = labels == truth
    assert right[kept.ids].all()
    np.testing.assert_array_equal(np.bincount(kept.labels), [10, 10, 4])
    random = class_balanced(Memory.empty(), np.arange(84), labels, 24, seed=0)
    assert not right[random.ids].all()
    # another class comes: the tail goes, which is what the hash put last
    more = agreement(
        kept, np.arange(84, 90), np.full(6, 3), rng.normal(size=(30, 3)), 12, seed=1, predicted=np.full(30, 3)
    )
    assert set(more.ids[more.labels < 3]) < set(kept.ids)
    np.testing.assert_array_equal(np.bincount(more.labels), [3, 3, 3, 3])


def test_without_wrong_answers_it_is_a_random_memory():
    truth = np.repeat([0, 1], 30)
    x = np.eye(2)[truth]
    kept = agreement(Memory.empty(), np.arange(60), truth, x, 10, seed=4, predicted=truth)
    np.testing.assert_array_equal(kept.ids, class_balanced(Memory.empty(), np.arange(60), truth, 10, seed=4).ids)


@pytest.mark.parametrize("learner", [name for name in learners.NAMES if learners.REGISTRY[name].policy])
def test_agreement_keeps_more_right_labels(tmp_path, learner):
    settings = SMALL | {"learner": learner, "label_noise": 0.4, "labels": 30, "epochs": 8, "memory": 12, "pool": 0}
    settings |= {"seed": 3}
    shares = {}
    for policy in ("paper", "agreement"):
        run(make(settings | {"memory_policy": policy}), tmp_path / policy)
        (_, step) = read_steps(tmp_path / policy / "journal.sqlite", "memory")
        truth = load("digits").train.labels[step.result["ids"]]
        shares[policy] = float((truth == step.result["labels"]).mean())
    assert shares["agreement"] > shares["paper"]

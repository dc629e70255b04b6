"""GSS: scores against gradients by brute force, and scoring that leaves no trace."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from accuacl.experiments.learners import Round, TaskData, Training, Transform, start
from accuacl.experiments.learners.gss import direction, similarities, similarity
from accuacl.experiments.memory import Memory
from accuacl.experiments.models import build
from accuacl.torch import evaluating

RNG = np.random.default_rng(3)
IMAGES = torch.from_numpy(RNG.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8))
LABELS = np.arange(40) % 4
PLAIN = Transform((0.5,), (0.25,), flip=True)


def net():
    model = build("conv3", 4, seed=0, input_shape=(3, 8, 8), width=3)
    model.train()(PLAIN.plain(IMAGES))  # so that the running statistics are not those of a new net
    return model


def started(variant="paper", capacity=12, inside=12, last=True, epochs=2, epoch=None):
    """A learner with a memory of `inside`, at the start of an epoch if one is given."""
    kept = Memory(np.arange(inside), LABELS[:inside], scores=np.linspace(-0.5, 0.5, inside))
    ids = np.arange(20, 40)
    given = Training(epochs, 4, 0.05, 0.8, 1e-4, capacity=capacity)
    task = TaskData(ids, LABELS[ids], IMAGES[ids])
    common = {"seed": (0, 1), "last_round": last, "seen": np.arange(4)}
    learner = start("gss", Round(net(), task, kept, lambda i: IMAGES[i], given, PLAIN, **common), variant)
    if epoch is not None:
        learner.start_epoch(epoch)
        learner.round.lr = 0.0  # a step changes nothing
    return learner


def brute(model, x, y):
    """The gradient of one batch, by a backward pass over a copy."""
    model = copy.deepcopy(model).eval()
    model.zero_grad()
    cross_entropy(model(x), y).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).double()


def cosine(a, b):
    return float(a @ b / a.norm() / b.norm())


def test_scores_are_the_largest_cosines_of_per_sample_gradients():
    model, x, y = net(), PLAIN.plain(IMAGES), torch.from_numpy(LABELS)
    parts = [slice(0, 4), slice(4, 8), slice(8, 12)]
    with evaluating(model):
        others = torch.stack([direction(model, x[part], y[part]) for part in parts])
        each = similarities(model, x[20:26], y[20:26], others)
        whole = similarity(model, x[20:26], y[20:26], others)
    far = [brute(model, x[part], y[part]) for part in parts]
    for i, score in enumerate(each.tolist()):
        near = brute(model, x[20 + i : 21 + i], y[20 + i : 21 + i])
        assert score == pytest.approx(max(cosine(near, other) for other in far), abs=1e-5)
    assert whole == pytest.approx(max(cosine(brute(model, x[20:26], y[20:26]), other) for other in far), abs=1e-5)


@pytest.mark.parametrize("variant", ["paper", "original"])
def test_scoring_changes_neither_gradients_nor_weights_nor_statistics(variant):
    made = started(variant, epoch=1)
    round, rows = made.round, torch.arange(8)
    cross_entropy(round.logits(round.augmented(rows)[0]), round.labels[rows]).backward()
    before = [parameter.grad.clone() for parameter in round.model.parameters()]
    state = copy.deepcopy(round.model.state_dict())
    with evaluating(round.model):
        made.offer(rows)
    assert all(torch.equal(a, b.grad) for a, b in zip(before, round.model.parameters(), strict=True))
    assert all(torch.equal(value, round.model.state_dict()[key]) for key, value in state.items())
    assert round.model.training


def test_scoring_does_not_touch_the_update():
    """With and without scoring (the last round, and one before it) the same weights come out."""
    scored, without = started(inside=3), started(inside=3, last=False)
    scored.train()
    without.train()
    assert len(scored.remember()) == 12
    assert without.remember() is without.round.memory
    for key, value in scored.round.model.state_dict().items():
        assert torch.equal(value, without.round.model.state_dict()[key]), key


def test_the_first_batch_scores_a_tenth_and_later_ones_their_cosine():
    made = started(inside=0, capacity=6, epoch=1)
    made.observe(torch.tensor([3, 1, 2, 0]))
    np.testing.assert_array_equal(made.buffer.ids, [23, 21, 22, 20])
    np.testing.assert_allclose(made.buffer.scores, 0.1)
    made.observe(torch.tensor([4, 5, 6, 7]))
    np.testing.assert_array_equal(made.buffer.ids, [23, 21, 22, 20, 24, 25])  # four in one subset, then two more fit
    x, y, model = PLAIN.plain(IMAGES), torch.from_numpy(LABELS), made.round.model
    far = brute(model, x[20:24], y[20:24])
    wanted = [cosine(brute(model, x[i : i + 1], y[i : i + 1]), far) for i in (24, 25)]
    np.testing.assert_allclose(made.buffer.scores[4:], wanted, atol=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_full_memory_opens_only_to_batches_that_point_elsewhere(sign, monkeypatch):
    monkeypatch.setattr("accuacl.experiments.learners.gss.similarity", lambda *given: sign * 0.3)
    made = started(epoch=1)
    for first in range(0, 20, 4):
        made.observe(torch.arange(first, first + 4))
    changed = not np.array_equal(made.buffer.ids, np.arange(12))
    assert changed == (sign < 0)
    assert len(np.unique(made.buffer.ids)) == 12
    np.testing.assert_array_equal(made.buffer.labels, LABELS[made.buffer.ids])


def test_only_the_last_epoch_of_the_last_round_scores_unless_original():
    for variant, last, epoch, scores in [
        ("paper", True, 0, False),
        ("paper", True, 1, True),
        ("paper", False, 1, False),
        ("original", False, 0, True),
    ]:
        made = started(variant, inside=4, last=last, epoch=epoch)
        made.observe(torch.arange(4))
        assert (len(made.buffer) > 4) == scores


def test_an_example_enters_once_however_often_it_goes_by():
    made = started("original", inside=4, epochs=4)
    made.train()
    memory = made.remember()
    assert len(np.unique(memory.ids)) == len(memory) == 12
    np.testing.assert_array_equal(memory.labels, LABELS[memory.ids])
    assert np.isin(memory.ids, np.r_[0:4, 20:40]).all()

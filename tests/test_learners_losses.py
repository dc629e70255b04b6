"""Losses, replay and memories of the learners against values computed by hand in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accuacl.base.randomness import torch_generator
from accuacl.experiments.learners import Round, TaskData, Training, Transform, start
from accuacl.experiments.learners.erace import absent
from accuacl.experiments.learners.loop import learning_rate
from accuacl.experiments.learners.round import every
from accuacl.experiments.memory import Memory
from accuacl.experiments.models import build

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)  # the data set; ids are its rows
Y = RNG.integers(0, 6, 40)
STORED = RNG.normal(size=(10, 6)).astype(np.float32)
SEED = (4, 1, 2)


def training(**more):
    return Training(**{"epochs": 1, "batch": 4, "lr": 0.1, "momentum": 0.8, "weight_decay": 0.01} | more)


def fetch(ids):
    return torch.from_numpy(X[ids])


def learner(name, memory=10, new=14, variant="paper", seen=(), before=None, labels=Y, **more):
    """A learner at the start of its first epoch: the task has rows 10.., the memory the first ones."""
    ids = np.arange(10, 10 + new)
    past = np.arange(memory)
    kept = Memory(past, labels[past], scores=np.zeros(memory), logits=STORED[:memory])
    model = build("linear", 6, seed=0, input_shape=(3,))
    given = training(**{"capacity": 10} | more)
    task = TaskData(ids, labels[ids], fetch(ids))
    common = {"seed": SEED, "last_round": True, "seen": np.array(seen, int), "seen_before": before}
    made = start(name, Round(model, task, kept, fetch, given, Transform(), **common), variant)
    made.start_epoch(0)
    made.round.lr = 0.0  # a step changes nothing
    return made


def logits(model, rows):
    return X[rows].astype(np.float64) @ model.head.weight.detach().numpy().T + model.head.bias.detach().numpy()


def ce(z, y):
    return np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y])


def replayed(made, count):
    """The ids that the learner will replay in its first steps (asked of a twin, which is used up)."""
    return [
        made.round.ids[rows.numpy()] if rows is not None else None
        for rows in (next(made.replay, None) for _ in range(count))
    ]


@pytest.mark.parametrize("name", ["er", "gss"])
def test_er_and_gss_take_one_mean_over_new_and_replayed(name):
    made, (r,) = learner(name), replayed(learner(name), 1)
    both = np.concatenate([[12, 15, 10, 11], r])
    assert (r < 10).all()
    assert len(r) == 4
    loss = made.observe(torch.tensor([2, 5, 0, 1]))
    assert loss.item() == pytest.approx(ce(logits(made.round.model, both), Y[both]), rel=1e-5)


def trained(name, memory=0, **more):
    """The weights after an epoch."""
    made = learner(name, memory=memory, **more)
    made.train()
    return made, torch.cat([parameter.flatten() for parameter in made.round.model.parameters()]).detach()


def test_finetune_is_er_without_a_memory():
    finetuned, er = trained("finetune", memory=10), trained("er", memory=0, capacity=0)
    assert torch.equal(finetuned[1], er[1])
    assert len(finetuned[0].remember()) == len(er[0].remember()) == 0


def test_joint_trains_on_all_labels_so_far_and_keeps_them():
    made = learner("joint")
    assert sorted(made.epoch_rows(torch.Generator()).tolist()) == list(range(24))
    rows = torch.tensor([2, 20, 0, 14])  # 14 and above are the memory's
    ids = made.round.ids[rows]
    assert made.observe(rows).item() == pytest.approx(ce(logits(made.round.model, ids), Y[ids]), rel=1e-5)
    np.testing.assert_array_equal(made.remember().ids, np.arange(24))


SPLIT = np.where(np.arange(40) < 10, Y % 3, 3 + Y % 3)  # the memory has classes 0 to 2, the task 3 to 5


def test_lwf_keeps_what_the_old_model_says_of_earlier_classes():
    made = learner("lwf", labels=SPLIT, seen=range(6), alpha=0.7)
    old = made.old.head.weight.detach().numpy() + RNG.normal(size=(6, 3))
    made.old.head.weight.data.copy_(torch.from_numpy(old))
    ids = np.array([12, 15, 10, 11])
    z = logits(made.round.model, ids)
    target = X[ids] @ made.old.head.weight.numpy().T.astype(float) + made.old.head.bias.detach().numpy()
    q, p = (np.exp(v[:, :3] / 2) / np.exp(v[:, :3] / 2).sum(1, keepdims=True) for v in (target, z))
    kl = 4 * (q * np.log(q / p)).sum(1).mean()
    loss = made.observe(torch.tensor([2, 5, 0, 1]))
    assert loss.item() == pytest.approx(ce(z[:, 3:], SPLIT[ids] - 3) + 0.7 * kl, rel=1e-5)
    first = learner("lwf", labels=SPLIT, memory=0)
    assert first.observe(torch.tensor([2, 5, 0, 1])).item() == pytest.approx(ce(z[:, 3:], SPLIT[ids] - 3), rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 50.0])
def test_lwf_distils_classes_that_come_back_too(alpha):
    """The task has classes 3 to 5, of which 3 and 5 were seen before it, as was 1."""
    made = learner("lwf", labels=SPLIT, seen=[1, 3, 4, 5], before=[1, 3, 5], alpha=alpha)
    made.old.head.weight.data += 1.0 + torch.arange(6.0)[:, None]
    ids, before = np.array([12, 15, 10, 11]), [1, 3, 5]
    z, target = logits(made.round.model, ids), logits(made.old, ids)
    q, p = (np.exp(v[:, before] / 2) / np.exp(v[:, before] / 2).sum(1, keepdims=True) for v in (target, z))
    kl = 4 * (q * np.log(q / p)).sum(1).mean()
    assert kl > 0.1
    loss = made.observe(torch.tensor([2, 5, 0, 1]))
    assert loss.item() == pytest.approx(ce(z[:, 3:], SPLIT[ids] - 3) + alpha * kl, rel=1e-5)


def test_icarl_has_a_binary_cross_entropy_for_each_output():
    made, twin = learner("icarl", labels=SPLIT, seen=range(6)), learner("icarl", labels=SPLIT, seen=range(6))
    replayed = next(twin.replay).numpy()
    ids = np.concatenate([[12, 15, 10, 11], replayed])
    z, target = logits(made.round.model, ids), np.zeros((8, 6))
    target[np.arange(8), SPLIT[ids]] = 1
    target[4:, :3] = 1 / (1 + np.exp(-STORED[replayed][:, :3]))
    entropy = np.log1p(np.exp(z)) - target * z
    loss = made.observe(torch.tensor([2, 5, 0, 1]))
    expected = entropy[:, 3:].sum(1).mean() + entropy[4:, :3].sum(1).mean()
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_icarl_predicts_the_nearest_mean_of_exemplars():
    made, _ = trained("icarl", memory=10, labels=SPLIT, seen=range(6), capacity=9)
    kept = made.remember()
    assert np.bincount(kept.labels).max() <= 2  # six classes share nine places
    x = X / np.linalg.norm(X, axis=1, keepdims=True)  # the linear net's features are its inputs
    means = {c: x[kept.ids[kept.labels == c]].mean(0) for c in np.unique(kept.labels)}
    means = {c: mean / np.linalg.norm(mean) for c, mean in means.items()}
    nearest = [min(means, key=lambda c: np.linalg.norm(row - means[c])) for row in x]
    z = logits(made.round.model, np.arange(40))
    known = np.array(sorted(means))
    np.testing.assert_array_equal(known[z[:, known].argmax(1)], nearest)
    assert kept.logits.shape == (len(kept), 6)


def test_er_goes_through_the_memory_once_an_epoch():
    rows = replayed(learner("er", memory=10), 6)
    assert [None if r is None else len(r) for r in rows] == [4, 4, 2, None, None, None]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows[:3])), np.arange(10))


@pytest.mark.parametrize(
    ("labels", "memory", "batch", "replaying"), [(1000, 100, 16, 7), (30, 10, 4, 3), (4, 10, 2, 2)]
)
def test_er_replays_beside_the_first_batches_only(labels, memory, batch, replaying):
    """7 of 63 at 1000 labels and a memory of 100, in each epoch."""
    x, y = torch.zeros(labels + memory, 2), np.zeros(labels + memory, int)
    model = build("linear", 2, seed=0, input_shape=(2,))
    sizes = []
    model.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    ids = np.arange(labels + memory)
    kept = Memory(ids[labels:], y[labels:])
    given = training(epochs=2, batch=batch, capacity=memory)
    task = TaskData(ids[:labels], y[:labels], x[:labels])
    seen = np.array([0])
    common = {"seed": (0,), "last_round": True, "seen": seen}
    start("er", Round(model, task, kept, lambda i: x[i], given, Transform(), **common)).train()
    alone = [len(part) for part in every(torch.arange(labels), batch, torch.Generator())]
    extra = [batch] * (memory // batch) + [memory % batch] * (memory % batch > 0)
    extra = (extra + [0] * len(alone))[: len(alone)]
    assert sum(size > 0 for size in extra) == replaying
    assert sizes == 2 * [a + b for a, b in zip(alone, extra, strict=True)]


def test_er_cycled_replays_at_every_step():
    rows = replayed(learner("er", memory=10, cycled=True), 7)
    assert [len(r) for r in rows] == [4, 4, 2, 4, 4, 2, 4]  # by hand: 10 = 4 + 4 + 2, then shuffled afresh
    for part in (rows[:3], rows[3:6]):
        np.testing.assert_array_equal(np.sort(np.concatenate(part)), np.arange(10))
    assert rows[0].tolist() != rows[3].tolist()
    np.testing.assert_array_equal(np.concatenate(rows[:3]), np.concatenate(replayed(learner("er"), 3)))
    assert replayed(learner("er", memory=0, cycled=True), 2) == [None, None]


def test_gss_cycles_through_the_memory():
    rows = replayed(learner("gss"), 7)
    assert [len(r) for r in rows] == [4, 4, 2, 4, 4, 2, 4]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows[3:6])), np.arange(10))


def test_derpp_loss():
    made, (r,) = learner("der++"), [next(learner("der++").replay).numpy()]
    new = np.array([12, 15, 10, 11])
    z = logits(made.round.model, r)
    wanted = ce(logits(made.round.model, new), Y[new]) + 0.1 * np.mean((z - STORED[r]) ** 2) + 0.5 * ce(z, Y[r])
    assert made.observe(torch.tensor([2, 5, 0, 1])).item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("variant", ["paper", "original"])
def test_derpp_weighs_its_terms_by_alpha_and_beta(variant):
    """The loss is linear in both: three settings give a fourth."""
    rows = torch.tensor([2, 5, 0, 1])
    plain, first, second, both = (
        learner("der++", variant=variant, alpha=alpha, beta=beta).observe(rows).item()
        for alpha, beta in [(0.0, 0.0), (2.0, 0.0), (0.0, 3.0), (0.1, 0.5)]
    )
    assert plain == pytest.approx(ce(logits(learner("der++").round.model, [12, 15, 10, 11]), Y[[12, 15, 10, 11]]))
    assert both == pytest.approx(plain + 0.1 * (first - plain) / 2 + 0.5 * (second - plain) / 3, rel=1e-5)
    assert min(first, second) > plain


def test_derpp_compares_only_the_logits_that_were_stored():
    made, r = learner("der++"), next(learner("der++").replay).numpy()
    model = made.round.model
    made.stored[:5, 2:] = torch.nan  # stored when the head had two classes
    new = np.array([12, 13, 14])
    z = logits(model, r)
    known = (r[:, None] >= 5) | (np.arange(6) < 2)
    wanted = ce(logits(model, new), Y[new]) + 0.1 * ((z - STORED[r]) ** 2)[known].mean() + 0.5 * ce(z, Y[r])
    loss = made.observe(torch.tensor([2, 3, 4]))
    assert loss.item() == pytest.approx(wanted, rel=1e-5)
    assert model.head.weight.grad.isfinite().all()


def test_derpp_original_draws_a_batch_for_each_term():
    made = learner("der++", variant="original")
    draws = torch_generator(*SEED, 0, "replay")
    one, two = (torch.randperm(10, generator=draws)[:4].numpy() for _ in range(2))
    assert set(one) != set(two)
    new = np.array([12, 15, 10, 11])
    model = made.round.model
    error = np.mean((logits(model, one) - STORED[one]) ** 2)
    wanted = ce(logits(model, new), Y[new]) + 0.1 * error + 0.5 * ce(logits(model, two), Y[two])
    assert made.observe(torch.tensor([2, 5, 0, 1])).item() == pytest.approx(wanted, rel=1e-5)
    inside = np.isin(made.buffer.ids, new)
    assert inside.any()
    wanted = logits(model, made.buffer.ids[inside])
    np.testing.assert_allclose(made.buffer.logits[inside], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [0, 1, 3, 10])
@pytest.mark.parametrize("name", ["der++", "er-ace"])
def test_memory_batches_of_derpp_and_erace_are_full_or_the_whole_memory(name, size):
    made = learner(name, memory=size, **({"capacity": size} if name == "er-ace" else {}))
    batches = [next(made.replay, ()) for _ in range(9)]
    assert {len(rows) for rows in batches} == {min(size, 4)}
    assert all(len(set(map(int, rows))) == len(rows) for rows in batches)


def test_derpp_replays_a_memory_that_is_smaller_than_a_batch():
    made, new = learner("der++", memory=3), np.array([12, 15, 10, 11])
    z = logits(made.round.model, np.arange(3))
    wanted = ce(logits(made.round.model, new), Y[new]) + 0.1 * np.mean((z - STORED[:3]) ** 2) + 0.5 * ce(z, Y[:3])
    assert made.observe(torch.tensor([2, 5, 0, 1])).item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("shuffle", range(4))
@pytest.mark.parametrize("variant", ["paper", "original"])
def test_erace_masks_with_shuffled_classes(shuffle, variant):
    order = np.random.default_rng(shuffle).permutation(6)
    labels = order[np.where(np.arange(40) < 10, np.arange(40) % 2, 2 + np.arange(40) % 2)]  # past: 2 classes, now: 2
    seen = order[:4]
    made = learner("er-ace", labels=labels, variant=variant, seen=seen)
    twin = learner("er-ace", labels=labels, variant=variant, seen=seen)
    r = twin.round.ids[next(twin.replay).numpy()]
    for rows in ([0, 2, 4, 6], [0, 1]):  # one class in the batch, or both
        new = 10 + np.array(rows)
        z = logits(made.round.model, new)
        present = set(labels[new])
        for c in range(6):
            if c not in present and (variant == "paper" or c in seen):
                z[:, c] = -np.inf
        terms = [ce(z, labels[new]), ce(logits(made.round.model, r), labels[r])]
        made.start_epoch(0)
        wanted = np.mean(terms) if variant == "paper" else np.sum(terms)
        assert made.observe(torch.tensor(rows)).item() == pytest.approx(wanted, rel=1e-5)


def test_erace_mask():
    assert absent(torch.tensor([4, 1]), 6).tolist() == [True, False, True, True, False, True]
    assert absent(torch.tensor([4, 1]), 6, torch.tensor([5, 1, 4, 0])).tolist() == [True] + [False] * 4 + [True]


def test_erace_takes_the_labels_in_before_training_and_replays_in_the_first_task():
    made = learner("er-ace", memory=0)
    memory = made.remember()
    assert len(memory) == 10
    assert (memory.ids >= 10).all()
    replayed_ids = np.concatenate(replayed(made, 2))
    assert len(replayed_ids) == 8
    assert np.isin(replayed_ids, memory.ids).all()


def test_a_whole_epoch_of_naive_training_by_hand():
    """SGD with momentum and decay, cosine per epoch, `er` without memory."""
    made = training(epochs=3, capacity=0)
    model = build("linear", 6, seed=0, input_shape=(3,))
    w = np.hstack([model.head.weight.detach().numpy(), model.head.bias.detach().numpy()[:, None]]).astype(float)
    ids, velocity, losses, told = np.arange(13), 0.0, [], []
    x = np.hstack([X[ids], np.ones((13, 1))]).astype(float)
    for epoch in range(3):
        rate = 0.001 + (0.1 - 0.001) * (1 + np.cos(np.pi * epoch / 3)) / 2
        assert learning_rate(made, epoch) == pytest.approx(rate)
        losses.append([])
        for rows in every(torch.arange(13), 4, torch_generator(*SEED, epoch, "order")):
            z = x[rows] @ w.T
            losses[-1].append(ce(z, Y[rows]))
            p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
            gradient = (p - np.eye(6)[Y[rows]]).T @ x[rows] / len(rows) + 0.01 * w
            velocity = 0.8 * velocity + gradient
            w = w - rate * velocity
    task = TaskData(ids, Y[ids], fetch(ids))
    common = {"seed": SEED, "last_round": True, "seen": np.unique(Y)}
    learner = start("er", Round(model, task, Memory.empty(), fetch, made, Transform(), **common))
    learner.train(told.append)
    np.testing.assert_allclose(model.head.weight.detach(), w[:, :3], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.head.bias.detach(), w[:, 3], rtol=1e-4, atol=1e-5)
    assert [progress.epochs for progress in told] == [(1, 3), (2, 3), (3, 3)]
    assert [progress.text for progress in told] == [
        f"epoch {epoch} loss {np.mean(part):.3f}" for epoch, part in enumerate(losses, 1)
    ]
    assert len(learner.remember()) == 0


def test_derpp_stores_logits_in_eval_mode_of_plain_images_after_the_task():
    images = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (30, 8, 8, 3), dtype=np.uint8))
    labels = np.arange(30) % 3
    model = build("conv3", 3, seed=0, input_shape=(3, 8, 8), width=4)
    transform = Transform((0.5,), (0.25,), crop=2, flip=True)
    ids = np.arange(100, 130)

    def learn(ids, memory):
        given = training(capacity=9)
        task = TaskData(ids, labels[ids - 100], images[ids - 100])
        common = {"seed": (0,), "last_round": True, "seen": np.arange(3)}
        round = Round(model, task, memory, lambda i: images[i - 100], given, transform, **common)
        learner = start("der++", round)
        learner.train()
        return learner.remember()

    first = learn(ids[:15], Memory.empty())
    with torch.no_grad():
        z = model.eval()(transform.plain(images[first.ids - 100]))
    np.testing.assert_allclose(first.logits, z.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(np.bincount(first.labels), [3, 3, 3])
    model.grow(5, seed=0)
    second = learn(ids[15:], first)
    old = np.isin(second.ids, first.ids)
    assert 0 < old.sum() < 9
    np.testing.assert_array_equal(second.logits[old][:, :3], first.take(np.isin(first.ids, second.ids)).logits)
    assert np.isnan(second.logits[old][:, 3:]).all()
    with torch.no_grad():
        z = model.eval()(transform.plain(images[second.ids[~old] - 100]))
    np.testing.assert_allclose(second.logits[~old], z.numpy(), rtol=1e-4, atol=1e-5)

"""The template that every registered learner passes in each variant; a new one is covered by its registry line."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accuacl.base.errors import InputError
from accuacl.base.randomness import derive
from accuacl.experiments.checks import check_learner
from accuacl.experiments.learners import REGISTRY, Round, TaskData, Training, Transform, start
from accuacl.experiments.learners.round import cycle, every
from accuacl.experiments.memory import POLICIES, Memory
from accuacl.experiments.models import build, predict
from accuacl.torch import evaluating

RNG = np.random.default_rng(5)
LABELS = np.repeat(np.arange(6), 20)
CENTRES = RNG.integers(40, 216, (6, 8, 8, 3))
IMAGES = torch.from_numpy(np.clip(CENTRES[LABELS] + RNG.normal(0, 30, (120, 8, 8, 3)), 0, 255).astype(np.uint8))
TRANSFORM = Transform((0.5,), (0.25,), crop=1, flip=True)
SEEDS = (0, 1)


@pytest.fixture(params=[(name, variant) for name, variants in REGISTRY.items() for variant in variants], ids="-".join)
def pair(request):
    return request.param


@pytest.fixture
def name(pair):
    return pair[0]


@pytest.fixture
def variant(pair):
    return pair[1]


def fetch(ids):
    return IMAGES[ids]


def net(name="conv3", classes=6):
    return build(name, classes, seed=0, input_shape=(3, 8, 8), width=4)


def training(**more):
    return Training(
        **{"epochs": 2, "batch": 8, "lr": 0.05, "momentum": 0.8, "weight_decay": 1e-4, "capacity": 12} | more
    )


def task_of(ids):
    return TaskData(ids, LABELS[ids], IMAGES[ids])


def run(name, variant, model=None, tasks=3, last_round=True, labels=40, **more):
    """Two classes a task; the model and the memories after each."""
    model, memories = model or net(), [Memory.empty()]
    for t in range(tasks):
        ids = 40 * t + np.random.default_rng(t).permutation(40)[:labels]
        seen = np.arange(2 * t + 2)
        given = {"training": training(**more), "seed": (*SEEDS, t), "last_round": last_round, "seen": seen}
        memories.append(learn(name, variant, model=model, task=task_of(ids), memory=memories[-1], **given))
    return model, memories


def learn(name, variant, **given):
    """One round; the memory after it."""
    learner = start(name, Round(**{"fetch": fetch, "training": training(), "transform": TRANSFORM} | given), variant)
    learner.train()
    return learner.remember()


def test_it_keeps_the_contract_that_plugins_are_checked_for(name, variant):
    assert [outcome for outcome in check_learner(name, variant) if outcome.fault] == []


def test_the_same_seed_gives_the_same_bytes_and_the_global_generators_have_no_part(name, variant):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    state, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, memories = run(name, variant)
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], legacy)  # noqa: NPY002
    torch.manual_seed(2)
    second, others = run(name, variant)
    for key, value in first.state_dict().items():
        assert value.numpy().tobytes() == second.state_dict()[key].numpy().tobytes(), key
    for a, b in zip(memories, others, strict=True):
        for key, array in a.to_arrays().items():
            assert array.tobytes() == b.to_arrays()[key].tobytes(), key


def size(name, offered, capacity=12):
    """How many of the examples a learner keeps."""
    return {"ridge": offered, "kernel": offered, "joint": offered, "finetune": 0, "lwf": 0}.get(
        name, min(offered, capacity)
    )


def test_the_memory_is_full_of_labelled_examples_each_once(name, variant):
    _, memories = run(name, variant)
    for t, memory in enumerate(memories[1:], 1):
        assert len(memory) == len(np.unique(memory.ids)) == size(name, 40 * t)
        assert (memory.ids < 40 * t).all()
        np.testing.assert_array_equal(memory.labels, LABELS[memory.ids])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_memory_policy_decides_what_is_kept(name, variant, policy):
    if variant not in REGISTRY[name].policy:
        with pytest.raises(InputError, match=f"cannot follow the memory policy {policy}"):
            run(name, variant, policy=policy)
        return
    model, memories = run(name, variant, policy=policy)
    ids = np.concatenate([memories[2].ids, 80 + np.random.default_rng(2).permutation(40)])
    with torch.no_grad(), evaluating(model):
        features, logits = (part.numpy() for part in model.both(TRANSFORM.plain(IMAGES[ids])))
    new, seed = ids[len(memories[2]) :], derive(*SEEDS, 2, "memory")
    more = {"predicted": logits.argmax(axis=1)} if policy == "agreement" else {}
    expected = POLICIES[policy](memories[2], new, LABELS[new], features, 12, seed, **more)
    np.testing.assert_array_equal(memories[3].ids, expected.ids)
    np.testing.assert_array_equal(memories[3].keys, expected.keys)
    assert (memories[3].logits is not None) == (name in ("der++", "icarl"))


@pytest.mark.parametrize("net_name", ["resnet18", "conv3"])
@pytest.mark.parametrize("labels", [1, 2, 9])
def test_batches_of_one(name, variant, net_name, labels):
    """One label, a rest of one, and `batch=1`: finite weights, BatchNorm or not (resnet18 has single pixels here)."""
    for batch in (1, 8):
        model, _ = run(name, variant, net(net_name), tasks=2, labels=labels, batch=batch, epochs=1, lr=0.01)
        assert all(value.isfinite().all() for value in model.state_dict().values())
        h, p = predict(model, IMAGES[:1], TRANSFORM, np.arange(4))
        assert np.isfinite(h).all()
        assert p.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("capacity", [0, 1, 3])
def test_a_memory_smaller_than_the_number_of_classes_or_none(name, variant, capacity):
    model, memories = run(name, variant, capacity=capacity)
    assert [len(memory) for memory in memories] == [size(name, 40 * t, capacity) for t in range(4)]
    assert all(value.isfinite().all() for value in model.state_dict().values())


def test_new_examples_come_once_an_epoch_and_a_single_one_joins():
    for n, batch, sizes in [(9, 4, [4, 5]), (8, 4, [4, 4]), (10, 4, [4, 4, 2]), (1, 4, [1]), (3, 1, [1, 1, 1])]:
        parts = every(torch.arange(n), batch, torch.Generator().manual_seed(n))
        assert [len(part) for part in parts] == sizes
        assert sorted(torch.cat(parts).tolist()) == list(range(n))
    assert sorted(next(cycle(torch.arange(3), 4, torch.Generator(), full=True)).tolist()) == [0, 1, 2]
    assert next(cycle(torch.arange(0), 4, torch.Generator(), full=True), None) is None
    assert next(cycle(torch.arange(0), 4, torch.Generator(), full=False), None) is None


ONE = np.arange(3)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "ewc"}, "there is no learner 'ewc'; the learners are er, gss,"),
        ({"variant": "mine"}, "there is no variant 'mine' of er; its variants are paper, original"),
        ({"task": TaskData(ONE, ONE, IMAGES[:3].float())}, "give images as uint8"),
        (
            {"training": training(lr=1e30)},
            r"diverged: the loss is .* after epoch \d with --lr 1e\+30; give a",
        ),
    ],
)
def test_wrong_input_is_named_in_one_sentence(given, says):
    plain = {"name": "er", "variant": "paper", "model": net(), "task": task_of(ONE), "memory": Memory.empty()}
    more = {"seed": (0,), "last_round": True, "seen": ONE}
    with pytest.raises(InputError, match=says) as raised:
        learn(**plain | more | given)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("repeated", [False, True])
def test_a_repeated_epoch_has_the_batches_crops_and_replays_of_the_first(repeated, monkeypatch):
    seen = []
    augmented = Round.augmented

    def watched(self, rows):
        x, y = augmented(self, rows)
        seen.append((rows.clone(), x.clone()))
        return x, y

    model, memories = run("der++", "paper", tasks=1)
    monkeypatch.setattr(Round, "augmented", watched)
    given = {"training": training(repeated=repeated), "seed": (*SEEDS, 1), "last_round": True, "seen": np.arange(4)}
    learn("der++", "paper", model=model, task=task_of(np.arange(40, 80)), memory=memories[-1], **given)
    half = len(seen) // 2
    same = [torch.equal(a, b) and torch.equal(x, y) for (a, x), (b, y) in zip(seen[:half], seen[half:], strict=True)]
    assert half > 1
    assert all(same) if repeated else not any(same)

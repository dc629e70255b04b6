"""Runs whose images are seen through a pretrained network: embedded once, then only a head learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from accuacl.base.errors import InputError
from accuacl.experiments import make, run
from accuacl.experiments.data import benchmark_tasks, load, make_stream
from accuacl.experiments.embed import ReadOptions, open_for_run
from accuacl.experiments.networks import FrozenNetwork, seen, seen_through
from accuacl.experiments.report.documents import command
from accuacl.experiments.report.groups import make_groups
from accuacl.experiments.sweeps import run_name
from test_data_layouts import pictures, write_parquet


class Colours(nn.Module):
    """The means of the colours in two halves of an image, and how often it was called."""

    calls = 0

    def forward(self, x):
        Colours.calls += 1
        left, right = x.tensor_split(2, dim=3)
        return torch.cat([half.mean(dim=(2, 3)) for half in (left, right)], dim=1)


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Four classes of a colour each, a little noisy; the network is small."""
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Colours, "calls", 0)
    network = FrozenNetwork(Colours(), lambda x: x.permute(0, 3, 1, 2).float() / 255)
    monkeypatch.setattr(seen, "pretrained_network", lambda name: network)
    monkeypatch.setattr(seen, "choose_runtime", lambda network, first: seen_runtime(network))
    rng = np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 6)):
        for c, colour in enumerate([(200, 30, 30), (30, 200, 30), (30, 30, 200), (150, 150, 30)]):
            folder = tmp_path / "photos" / split / f"c{c}"
            folder.mkdir(parents=True)
            for i in range(count):
                pixels = np.clip(rng.normal(colour, 40, size=(8, 8, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.png")
    return tmp_path / "photos"


def seen_runtime(network):
    from accuacl.experiments.networks.runtime import TorchRuntime

    return TorchRuntime(network)


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """A hundred classes of noise in the layout of CIFAR-100: three images of each to learn, one to test."""
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))
    network = FrozenNetwork(Colours(), lambda x: x.permute(0, 3, 1, 2).float() / 255)
    monkeypatch.setattr(seen, "pretrained_network", lambda name: network)
    monkeypatch.setattr(seen, "choose_runtime", lambda network, first: seen_runtime(network))
    for split, count in (("train", 300), ("test", 100)):
        pixels, labels = pictures(count, 100, seed=count)
        write_parquet(tmp_path / "data" / "cifar100" / f"{split}.parquet", pixels, labels)
    return tmp_path / "data"


@pytest.mark.parametrize("learner", ["kernel", "er"])
def test_the_defaults_on_a_pretrained_network_are_those_that_learn(cifar, tmp_path, learner):
    given = {"benchmark": "split-cifar100", "model": "pretrained", "learner": learner}
    config = make(given)
    assert (config.scale, config.strategy, config.first_round) == ("cpu", "coverage", "coverage")
    assert (config.labels, config.rounds, config.pool, config.sample) == (1000, 5, 0, 5000)
    result = run(make(given | {"labels": 10, "rounds": 2, "memory": 50}), tmp_path / "out", data_dir=cifar)
    assert len(result["accuracy_matrix"]) == 10
    assert result["config"]["strategy"] == result["config"]["first_round"] == "coverage"


def test_what_is_given_stays():
    given = {"benchmark": "split-cifar100", "learner": "ridge"}
    assert make(given).model_dump() == make(given | {"model": "pretrained"}).model_dump()
    uniform = make(given | {"strategy": "uniform"})
    assert (uniform.scale, uniform.strategy, uniform.first_round) == ("cpu", "uniform", "uniform")
    smoke = make(given | {"scale": "smoke", "first_round": "uniform"})
    assert (smoke.labels, smoke.strategy, smoke.first_round) == (24, "coverage", "uniform")
    scratch = make({"benchmark": "split-cifar100"})
    assert (scratch.scale, scratch.strategy, scratch.first_round) == ("smoke", "accuacl", "uniform")
    digits = make({"learner": "kernel"})
    assert (digits.scale, digits.strategy, digits.model) == ("smoke", "accuacl", "linear")


def test_runs_that_were_begun_with_the_defaults_of_other_networks_are_resumed(photos, tmp_path):
    given = {"benchmark": str(photos), "classes_per_task": 2, "learner": "ridge", "labels": 8}
    before = {"scale": "smoke", "strategy": "accuacl", "first_round": "uniform"}
    result = run(make(given | before), tmp_path / "out")
    assert run(make(given), tmp_path / "out") == result
    with pytest.raises(InputError, match="labels"):
        run(make(given | {"labels": 6}), tmp_path / "out")
    with pytest.raises(InputError, match="strategy"):
        run(make(given | {"strategy": "coverage"}), tmp_path / "out")


def test_names_of_directories_are_those_of_before():
    given = {"benchmark": "split-cifar100", "learner": "kernel", "scale": "cpu", "strategy": "coverage"}
    names = [run_name(make(given | {"first_round": first}), None) for first in ("uniform", "coverage")]
    assert names == [
        "split-cifar100-kernel-coverage-m500-s0",
        "split-cifar100-kernel-coverage-m500-s0-first_round=coverage",
    ]


@pytest.mark.parametrize("learner", ["kernel", "ridge", "er"])
def test_a_head_learns_on_what_the_network_gives(photos, tmp_path, learner):
    given = {"benchmark": str(photos), "classes_per_task": 2, "model": "pretrained", "learner": learner}
    more = {"labels": 8, "rounds": 2, "strategy": "coverage", "epochs": 20, "tasks": 2, "lr": 0.05}
    result = run(make(given | more), tmp_path / "out")
    assert result["average_accuracy"] > 80
    calls = Colours.calls
    assert calls > 0
    again = run(make(given | more), tmp_path / "again")
    assert Colours.calls == calls  # the cache has them
    assert again["accuracy_matrix"] == result["accuracy_matrix"]
    with pytest.raises(InputError, match="Label your images in a project"):
        open_for_run(tmp_path / "out", str(photos), ReadOptions())


def test_rows_are_the_embeddings_scaled_by_the_first_task(photos):
    dataset = load(str(photos))
    stream = make_stream(dataset, benchmark_tasks("photos", len(dataset.classes), len(dataset.classes) // 2))
    found = seen_through(stream).dataset
    raw = np.stack([seen.decode(image, seen.SIDE) for image in stream.dataset.train.inputs]) / 255
    expected = np.concatenate([raw[:, :, :64].mean(axis=(1, 2)), raw[:, :, 64:].mean(axis=(1, 2))], axis=1)
    first = expected[stream[0].train]
    expected = np.clip((expected - first.mean(axis=0)) / first.std(axis=0), -10, 10) * 8 / np.sqrt(6)
    np.testing.assert_allclose(found.train.inputs, expected, atol=1e-3)
    np.testing.assert_array_equal(found.train.labels, stream.dataset.train.labels)


def test_vectors_are_refused():
    with pytest.raises(InputError, match="digits has vectors; give --model linear"):
        seen_through(make_stream(load("digits"), benchmark_tasks("split-digits", 10)))


@pytest.mark.parametrize("first", ["uniform", "coverage"])
def test_the_command_of_a_report_does_the_same_run_again(first):
    given = {"benchmark": "split-cifar100", "learner": "kernel", "strategy": "coverage", "labels": 100}
    config = make(given | {"first_round": first})
    words = command(make_groups([config.model_dump()])[0]).split()
    again = dict(zip(words[2::2], words[3::2], strict=True))
    assert again["--first-round"] == first
    named = {name[2:].replace("-", "_"): value for name, value in again.items() if name != "--out"}
    assert make(named).model_dump() == config.model_dump()

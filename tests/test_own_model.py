"""`run --model net.py:build`: one's own network in experiments."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from accuacl.base.errors import InputError, LabelsPending
from accuacl.experiments import Config, make, models, run
from accuacl.experiments.data import load
from accuacl.experiments.embed.checkpoint import of_run
from accuacl.experiments.sweeps import runs_of
from commands import SMALL, accuacl as command

NET = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))

def softmax():
    return nn.Sequential(nn.Linear(64, 3), nn.Softmax(1))

def small():
    return nn.Linear(7, 3)

def text():
    return "a net"

def sized(width, *, depth=2):
    return nn.Linear(64, width)

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 64)
        self.b = nn.Linear(64, 64)
        self.b.weight = self.a.weight
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        return self.head(self.b(self.a(x).relu()).relu())
"""


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    return tmp_path / "net.py"


def settings(net, **more):
    return SMALL | {"model": f"{net}:build", "strategy": "badge", "learner": "er-ace", "epochs": 2} | more


def test_a_run_with_an_own_network_resumes_to_the_bit(net, tmp_path):
    config = make(settings(net))
    assert config.model == f"{net.resolve()}:build"
    assert len(config.model_digest) == 64
    torch.manual_seed(1)
    whole = run(config, tmp_path / "whole")
    labels = load("digits").train.labels

    def interrupted(task, round, ids):
        if (task, round) == (1, 1):
            raise LabelsPending("later")
        return labels[ids]

    with pytest.raises(LabelsPending):
        run(config, tmp_path / "parts", oracle=interrupted)
    torch.manual_seed(99)  # what the global generator stands at does not matter
    state = torch.random.get_rng_state()
    parts = run(config, tmp_path / "parts")
    assert torch.equal(state, torch.random.get_rng_state())
    files = [tmp_path / part / "weights" / whole["weights"] for part in ("whole", "parts")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert whole["accuracy_matrix"] == parts["accuracy_matrix"]


def test_the_head_has_as_many_classes_as_the_stream_and_the_body_is_the_users(net):
    model = models.build(f"{net}:build", 10, seed=0, input_shape=(64,))
    again = models.build(f"{net}:build", 10, seed=0, input_shape=(64,))
    other = models.build(f"{net}:build", 10, seed=1, input_shape=(64,))
    assert model(torch.zeros(2, 64)).shape == (2, 10)
    first = [next(each.parameters()) for each in (model, again, other)]
    assert torch.equal(first[0], first[1])
    assert not torch.equal(first[0], first[2])


def test_layers_that_share_weights_can_be_saved(net, tmp_path):
    run(make(settings(net, model=f"{net}:Tied", tasks=1)), tmp_path / "a")
    assert of_run(tmp_path / "a", trust_code=True).model.head.out_features == 10


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "{net}:softmax"}, "probabilities: it ends in a softmax; give a module that returns logits"),
        ({"model": "{net}:small"}, r"does not take inputs of shape \(64,\): .*give a network for these"),
        ({"model": "{net}:text"}, "returned str; return an nn.Module"),
        ({"model": "{net}:missing"}, "has no function missing"),
        ({"model": "{net}:sized"}, r"sized \(.*net.py, line 16\) has a required argument width; give it a default"),
        ({"model": "none.py:build"}, "there is no file none.py; write it or give"),
        ({"model": "none.py:a b"}, "give a Python file and a function in it"),
        ({"width": 5}, "leave out --width"),
        ({"learner": "ridge"}, "ridge learns on features that stay as they are"),
    ],
)
def test_networks_that_cannot_be_used(given, says, net, tmp_path):
    given = {name: value.format(net=net) if name == "model" else value for name, value in given.items()}
    with pytest.raises(InputError, match=says):
        run(make(settings(net, **given)), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_changed_file_is_noticed(net, tmp_path):
    config = make(settings(net, tasks=1))
    run(config, tmp_path / "a")
    net.write_text(NET + "\n# changed\n")
    with pytest.raises(InputError, match=r"net\.py has changed since it was recorded"):
        run(config, tmp_path / "b")
    with pytest.raises(InputError, match="model_digest"):
        run(make(settings(net, tasks=1)), tmp_path / "a")
    with pytest.raises(InputError, match="changed since"):
        make(config.model_dump())


def test_a_pool_is_embedded_with_the_network_of_a_run_that_is_trusted(net, tmp_path):
    run(make(settings(net, tasks=1)), tmp_path / "run")
    np.save(tmp_path / "x.npy", np.ones((5, 64), np.float32))
    given = ["embed", "--data", "x.npy", "--run", "run", "--out", "pool"]
    ended = command(*given, cwd=tmp_path)
    assert ended.returncode == 2
    assert "read it, and then give --trust-code" in " ".join(ended.stderr.split())
    assert not (tmp_path / "pool").exists()
    assert command(*given, "--trust-code", cwd=tmp_path).returncode == 0


def test_on_the_command_line_and_in_sweeps(net, tmp_path):
    options = ["--tasks", "1", "--labels", "8", "--rounds", "2", "--epochs", "1", "--pool", "40", "--out", "out"]
    assert command("run", "--model", "net.py:build", *options, cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model"] == f"{net.resolve()}:build"
    (only,) = runs_of(SMALL | {"model": str(net) + ":build"})
    assert only.name.endswith("-model=net.py_build")
    assert Config(model="net.py:build").model_digest is None


def test_training_that_diverges_says_so(tmp_path):
    for lr in (1e10, 1e4):
        with pytest.raises(InputError, match=r"training diverged: .* with --lr 10*e?\+?1?0?; give a smaller --lr"):
            run(make(SMALL | {"lr": lr, "strategy": "entropy", "epochs": 3}), tmp_path / f"{lr:g}")


def test_a_run_that_diverged_is_in_nobodys_way(tmp_path):
    """The corrected command works in the same directory; a run that can be finished is never thrown away."""
    with pytest.raises(InputError, match="training diverged"):
        run(make(SMALL | {"lr": 1e10}), tmp_path / "a")
    with pytest.raises(InputError, match="training diverged"):
        run(make(SMALL | {"lr": 1e10}), tmp_path / "a")
    result = run(make(SMALL), tmp_path / "a")
    assert result == run(make(SMALL), tmp_path / "a")
    assert result["accuracy_matrix"] == run(make(SMALL), tmp_path / "b")["accuracy_matrix"]
    with pytest.raises(InputError, match="holds a run with lr"):
        run(make(SMALL | {"lr": 1e10}), tmp_path / "a")

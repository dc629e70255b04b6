"""The kernel head as a layer of models and as a learner of runs."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from accuacl.base.errors import InputError
from accuacl.experiments import make, read_steps, run
from accuacl.experiments.heads import Term, fit, fit_with_pool
from accuacl.experiments.models import Classifier, KernelLayer, new_head
from commands import accuacl
from dying import run_until
from processes import Running

TERMS = (Term("gaussian", (0, 32)), Term("linear", (32, 64), 0.3), Term("arc-cosine", (32, 64)))


def rows(n=60):
    x, y = load_digits(return_X_y=True)
    x = x.astype(np.float32)
    x[3], x[5, 32:] = 0, 0
    return x[:n], y[:n], x[n : n + 300]


@pytest.mark.parametrize("mode", ["off", "self", "smooth"])
def test_the_layer_gives_what_the_head_gives(mode):
    x, y, new = rows()
    blocks = ((0, 32), (32, 64))
    head = fit_with_pool(x, y, [new], 11, mode=mode, candidates=[TERMS], blocks=blocks)
    layer = KernelLayer.of(head)
    given = torch.from_numpy(np.concatenate([new[:50], np.zeros((1, 64), np.float32), 1e20 * new[:1]]))
    np.testing.assert_allclose(layer(given).numpy(), head.logits(given.numpy()), rtol=1e-3, atol=2e-3)
    assert (layer(given)[:, 10] == layer.absent).all()


def test_columns_of_which_most_are_zero_are_multiplied_as_sparse():
    rng = np.random.default_rng(0)
    x = np.zeros((70, 2008), np.float32)
    x[:, :8] = rng.normal(size=(70, 8))
    x[np.arange(70)[:, None], rng.integers(8, 2008, size=(70, 9))] = rng.random((70, 9))
    x[2, 8:] = 0
    terms = (Term("gaussian", (0, 8)), Term("linear", (8, 2008), 0.3), Term("arc-cosine", (8, 2008)))
    layer = KernelLayer.of(fit(x[:40], np.arange(40) % 3, candidates=[terms]))
    given = torch.from_numpy(x[38:])
    found = layer(given)
    assert {columns: matrix is not None for columns, matrix in layer._sparse.items()} == {
        (0, 8): False,
        (8, 2008): True,
    }
    layer._sparse = dict.fromkeys(layer._sparse)  # as if no block were sparse
    torch.testing.assert_close(found, layer(given), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[:5], KernelLayer(layer.state_dict())(given[:5]), rtol=1e-5, atol=1e-5)


def test_it_is_loaded_with_its_support_rows_and_grows():
    x, y, new = rows()
    model = Classifier(torch.nn.Identity(), new_head(64, 10, seed=0))
    model.head = KernelLayer.of(fit(x, y, candidates=[TERMS]))
    other = Classifier(torch.nn.Identity(), new_head(64, 10, seed=1))
    other.load_state_dict(model.state_dict())
    given = torch.from_numpy(new)
    assert torch.equal(model(given), other(given))
    before = other(given)
    other.grow(12, seed=0)
    torch.testing.assert_close(other(given)[:, :10], before)
    assert (other(given)[:, 10:] == other.head.absent).all()
    assert other.head.out_features == 12


def settings(**more):
    return make(
        {"learner": "kernel", "strategy": "coverage", "labels": 20, "rounds": 2, "seed": 1, "first_round": "coverage"}
        | more
    )


def test_a_run_learns_with_kernels_and_from_the_pool(tmp_path):
    pseudo_labels = {}
    for way in ("self", "off"):
        result = run(settings(pool_learning=way), tmp_path / way)
        assert result["average_accuracy"] > 90
        facts = [step.result["facts"] for step in read_steps(tmp_path / way / "journal.sqlite", "train")]
        pseudo_labels[way] = [each.get("pseudo_labels") for each in facts]
    assert max(pseudo_labels["self"]) > 100
    assert set(pseudo_labels["off"]) == {None}


def test_the_pool_teaches_unless_it_is_told_not_to():
    assert settings().pool_learning == "self"
    assert make({"learner": "ridge"}).pool_learning == "off"
    shown = " ".join(accuacl("run", "--help").stdout.replace("│", " ").split())
    assert "Unset: self, but off for columns of a table. --sampling" in shown


def table_of(folder):
    """A table of two columns of numbers, of four classes."""
    rng = np.random.default_rng(0)
    rows = [f"{c},{c % 2 + 0.1 * a:.3f},{c // 2 + 0.1 * b:.3f}" for c in range(4) for a, b in rng.normal(size=(30, 2))]
    (folder / "t.csv").write_text("\n".join(["label,a,b", *rows]) + "\n")
    return {"benchmark": str(folder / "t.csv"), "classes_per_task": 2, "learner": "kernel", "labels": 8, "rounds": 2}


def test_columns_of_a_table_do_not_teach_unless_they_are_told_to(tmp_path):
    given = table_of(tmp_path)
    np.savez(tmp_path / "v.npz", x=np.eye(8, dtype=np.float32), y=np.arange(8) % 2)
    assert make(given).pool_learning == "off"
    assert make(given | {"pool_learning": "self"}).pool_learning == "self"
    assert make(given | {"benchmark": str(tmp_path / "v.npz")}).pool_learning == "self"


@pytest.mark.filterwarnings("ignore")  # no test split
def test_a_run_goes_on_as_it_was_begun(tmp_path):
    """Before, tables too were learned with their pools, if nothing else was said."""
    given = table_of(tmp_path)
    first = run(make(given | {"pool_learning": "self"}), tmp_path / "run")
    assert run(make(given), tmp_path / "run") == first
    with pytest.raises(InputError, match="pool_learning"):
        run(make(given | {"pool_learning": "off"}), tmp_path / "run")


def test_the_command_says_what_is_kept_and_refuses_what_is_not_used(tmp_path):
    shown = accuacl("run", "--learner", "kernel", "--tasks", "2", "--out", tmp_path / "a").stdout
    title = "split-digits, kernel with accuacl, memory: all, 20 labels a task, seed 0: accuracy (%)"
    assert title in " ".join(shown.split())
    refused = accuacl("run", "--learner", "ridge", "--pool-learning", "self", "--out", tmp_path / "b")
    assert refused.returncode == 2
    assert "--pool-learning goes with --learner kernel, not ridge; leave it out." in " ".join(refused.stderr.split())
    assert not (tmp_path / "b").exists()


def test_a_network_that_is_trained_is_refused():
    with pytest.raises(InputError, match="kernel learns on features that stay as they are"):
        make({"learner": "kernel", "model": "mlp"})


def test_the_same_run_again_gives_the_same_bytes(tmp_path):
    results = [run(settings(), tmp_path / name) for name in ("one", "other")]
    one, other = (
        sorted((path.name, path.read_bytes()) for path in (tmp_path / name / "weights").iterdir())
        for name in ("one", "other")
    )
    assert one == other
    assert json.dumps(results[0]["accuracy_matrix"]) == json.dumps(results[1]["accuracy_matrix"])


@pytest.mark.posix
@pytest.mark.parametrize("where", ["before 1/1/train", "after 1/1/train", "between file and record"])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(tmp_path, where):
    small = settings(tasks=2)
    run(small, tmp_path / "whole")
    killed = Running(run_until, tmp_path / "killed", small, where, 1).wait()
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    run(small, tmp_path / "killed")
    whole, resumed = (
        sorted((path.name, path.read_bytes()) for path in (tmp_path / name / "weights").iterdir())
        for name in ("whole", "killed")
    )
    assert whole == resumed

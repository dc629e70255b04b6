"""A second device that every machine has, for code that names one: CPU tensors that pretend to be elsewhere.

As on a GPU, an operation on tensors of both devices fails, and NumPy sees no tensor that is not on the CPU; numbers
are those of the CPU. Run as a program, it does everything in WORK there and on the CPU, and prints, for each, what
failed, or "". A process of its own: torch keeps a registered device for good.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from accuacl import select
from accuacl.base import machine
from accuacl.cli import main
from accuacl.experiments import learners, make, models, run
from accuacl.experiments.checks.learner_checks import IMAGES, VECTORS, Taught
from accuacl.experiments.memory import POLICIES
from accuacl.features import Features
from accuacl.torch import features

SECOND = "second"
MOVES = ("aten._to_copy", "aten.copy_")
INDEXING = ("aten.index.", "aten.index_put")  # whose indices may be on the CPU


class SecondTensor(torch.Tensor):
    """A tensor on the second device; `inner` has its numbers."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=torch.device(SECOND, 0)
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})

    def tolist(self):
        return self.inner.tolist()


def dispatch(func, args, kwargs):
    given, _ = tree_flatten((args, kwargs))
    there = {id(each.inner): each for each in given if isinstance(each, SecondTensor)}
    name = str(func)
    on_cpu = [each for each in given if type(each) in (torch.Tensor, nn.Parameter) and each.ndim]
    if there and on_cpu and not name.startswith((*MOVES, *INDEXING)):
        raise RuntimeError(f"Expected all tensors to be on the same device: {name} has some on {SECOND}, others on cpu")
    device = kwargs.get("device")
    target = torch.device(device).type if device is not None else (SECOND if there else "cpu")
    if name.startswith("aten.copy_"):
        target = SECOND if isinstance(args[0], SecondTensor) else "cpu"
    kwargs = dict(kwargs)
    if device is not None and target == SECOND:
        kwargs["device"] = torch.device("cpu")
    args, kwargs = tree_map(lambda each: each.inner if isinstance(each, SecondTensor) else each, (args, kwargs))
    out = func(*args, **kwargs)
    if target != SECOND:
        return out

    def there_too(each):
        if type(each) is not torch.Tensor:
            return each
        return there[id(each)] if id(each) in there else SecondTensor(each)

    return tree_map(there_too, out)


def register() -> torch.library.Library:
    """Make the device known to torch; the registrations last as long as what is returned."""
    torch.inference_mode = torch.no_grad  # which tensors of another class cannot do; both compute the same
    _setup_privateuseone_for_python_backend(SECOND)
    library = torch.library.Library("aten", "IMPL")

    def empty(size, *, dtype=None, memory_format=None, **_):
        return SecondTensor(torch.empty(size, dtype=dtype, memory_format=memory_format or torch.contiguous_format))

    def empty_strided(size, stride, *, dtype=None, **_):
        return SecondTensor(torch.empty_strided(size, stride, dtype=dtype))

    library.impl("empty.memory_format", empty, "PrivateUse1")
    library.impl("empty_strided", empty_strided, "PrivateUse1")
    return library


def same(first, second) -> None:
    """AssertionError unless two results, one of them perhaps of the second device, are equal to the bit."""
    if isinstance(first, torch.Tensor):
        assert torch.equal(first.cpu(), second.cpu()), (first, second)
    elif isinstance(first, np.ndarray):
        np.testing.assert_array_equal(first, second)
    elif isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            same(first[key], second[key])
    else:
        assert first == second


def learned(name, variant, **changes):
    def work(device):
        model = models.build("conv3", 6, seed=0, input_shape=(3, 8, 8), width=4)
        memories = Taught(name, variant).all_tasks(model, device=device, **changes)
        return {**model.state_dict(), **{f"memory {key}": x for key, x in memories[-1].to_arrays().items()}}

    return work


def network():
    return models.build("conv3", 6, seed=0, input_shape=(3, 8, 8), width=4)


def predicted(device):
    transform = learners.Transform((0.5,), (0.25,))
    h, p = models.predict(network(), IMAGES, transform, np.arange(4), device=device)
    return {"h": h, "p": p}


def embedded(device):
    frozen = models.Frozen(network().embed, learners.Transform((0.5,), (0.25,)).plain)
    return frozen.embed_all(IMAGES, 32, device)


def of_loader(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(192, 8), nn.ReLU(), nn.Linear(8, 4)).to(device)
    made = features(model, [VECTORS[:50], VECTORS[50:]], classes=[0, 2, 3])
    return {"h": made.embeddings, "p": made.probabilities}


def of_arrays(device):
    h, p = VECTORS.to(device), torch.full((len(VECTORS), 2), 0.5).to(device)
    return select("bait", pool=Features(h, p), budget=5).indices


def whole_run(**settings):
    def work(device):
        usual = {"tasks": 2, "labels": 12, "rounds": 2, "epochs": 2, "pool": 60, "memory": 8}
        with tempfile.TemporaryDirectory() as folder, elsewhere(device):
            result = run(make(usual | settings), Path(folder) / "run")
        return {name: result[name] for name in ("accuracy_matrix", "recall", "calibration_error")}

    return work


def project(*options):
    def work(device):
        with tempfile.TemporaryDirectory() as folder, elsewhere(device):
            at = Path(folder)
            (at / "net.py").write_text(
                "from torch import nn\ndef build():\n    return nn.Sequential(nn.Linear(2, 6), nn.Linear(6, 3))\n"
            )
            rng = np.random.default_rng(0)
            table = {"id": [f"r{i}" for i in range(60)], "embedding": rng.normal(size=(60, 2)).tolist()}
            import pyarrow as pa
            import pyarrow.parquet as pq

            table["label"] = [f"{i % 3}" for i in range(60)]
            pq.write_table(pa.table(table), at / "rows.parquet")
            words = [word.replace("NET", f"{at / 'net.py'}:build") for word in options]
            command("project", "new", at / "p", "--vectors", at / "rows.parquet", "--label-column", "label", *words)
            command("project", "train", at / "p")
            command("embed", "--run", at / "p", "--data", at / "rows.parquet", "--out", at / "pool", "--trust-code")
            made = pq.read_table(next((at / "pool").glob("*.parquet")))
            return {name: np.array(made[name].to_pylist()) for name in ("embedding", "probability")}

    return work


def command(*words) -> None:
    sys.argv = ["accuacl", *map(str, words)]
    with contextlib.suppress(SystemExit):
        main()


def on_cpu(device):
    return "cpu"


def on_second(device):
    return "second"


@contextlib.contextmanager
def elsewhere(device):
    """Within the block, everything that asks which device to use is given this one."""
    before = machine.device_of.__code__
    machine.device_of.__code__ = (on_cpu if device == "cpu" else on_second).__code__
    try:
        yield
    finally:
        machine.device_of.__code__ = before


WORK = {
    **{f"{n} {v}": learned(n, v) for n, variants in learners.REGISTRY.items() for v in variants},
    **{f"er with {policy}": learned("er", "paper", policy=policy) for policy in POLICIES},
    "predict": predicted,
    "a frozen network": embedded,
    "features of a loader": of_loader,
    "features of tensors": of_arrays,
    "a run": whole_run(strategy="accuacl"),
    "a run with badge and der++": whole_run(strategy="badge", learner="der++"),
    "a run with the kernel learner": whole_run(strategy="coverage", learner="kernel"),
    "a project": project(),
    "a project with er and mlp": project("--learner", "er", "--head", "mlp", "--epochs", "2"),
    "a project with its own network": project("--model", "NET", "--epochs", "2"),
    "a project that trains its network": project("--model", "NET", "--finetune", "--epochs", "2"),
}


def all_work() -> dict[str, str]:
    registered = register()
    failed = {}
    for name, work in WORK.items():
        try:
            with warnings.catch_warnings(action="ignore"):
                expected = work("cpu")
                same(expected, work(SECOND))
            failed[name] = ""
        except BaseException:
            failed[name] = traceback.format_exc()
    del registered
    return failed


if __name__ == "__main__":
    out = sys.stdout
    sys.stdout = sys.stderr
    print(json.dumps(all_work()), file=out)

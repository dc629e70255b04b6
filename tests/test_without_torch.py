"""Without any extra everything that chooses works, with the same picks, but for BAIT; what needs one names it.

A subprocess that cannot find the modules of extras stands for an environment without them; `accuacl select` starts
workers, which inherit that through a `sitecustomize` on their path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from accuacl import select, strategy_names
from accuacl.base.errors import EXTRAS
from pool_files import write
from problems import features

RNG = np.random.default_rng(0)
POOL, LABELLED, MEMORY = (features(RNG, n, 12, 5, scale=3) for n in (700, 20, 40))
NAMES = [name for name in strategy_names() if name != "bait"]
INSTALL = "pip install 'accuacl[train]'"
REFUSE = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.split(".")[0] in MODULES else find(name, path, target)

PathFinder.find_spec = staticmethod(find_spec)
"""
SELECT = """
import json, sys
import numpy as np
import accuacl
arrays = np.load(sys.argv[1])
sets = {name: accuacl.Features(arrays[f"{name}_h"], arrays[f"{name}_p"]) for name in ("pool", "labelled", "memory")}
found = {}
for name in json.loads(sys.argv[2]):
    picked = accuacl.select(name, budget=30, past=2000, seed=3, **sets)
    found[name] = [picked.indices.tolist(), {score: values.tolist() for score, values in picked.scores.items()}]
assert "torch" not in sys.modules
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Runs Python where no module of an extra can be imported."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "sitecustomize.py").write_text(
        f"MODULES = {[module for _, modules in EXTRAS.values() for module in modules]}\n{REFUSE}"
    )
    variables = os.environ | {"PYTHONPATH": str(folder)}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=600, env=variables
        )

    return run


def test_the_modules_are_refused(bare):
    assert "No module named 'torch'" in bare("-c", "import torch").stderr


def test_every_strategy_but_bait_picks_the_same(bare, tmp_path):
    """Bit for bit, scores too."""
    import torch  # noqa: F401, the picks here are those with torch imported

    sets = {"pool": POOL, "labelled": LABELLED, "memory": MEMORY}
    arrays = {f"{name}_h": some.embeddings for name, some in sets.items()}
    arrays |= {f"{name}_p": some.probabilities for name, some in sets.items()}
    np.savez(tmp_path / "sets.npz", **arrays)
    done = bare("-c", SELECT, tmp_path / "sets.npz", json.dumps(NAMES))
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert list(got) == NAMES
    for name, (indices, scores) in got.items():
        expected = select(name, budget=30, past=2000, seed=3, **sets)
        assert indices == expected.indices.tolist(), name
        assert scores == {score: values.tolist() for score, values in expected.scores.items()}, name


@pytest.mark.parametrize("strategy", ["accuacl", "accuacl+uniform", "coverage"])
def test_the_command_line_picks_the_same(bare, tmp_path, strategy):
    """With worker processes, which have no torch either."""
    write(tmp_path / "pool.parquet", np.arange(700), POOL, 100)
    write(tmp_path / "memory.parquet", np.arange(40), MEMORY, 100)
    files = ("--pool", tmp_path / "pool.parquet", "--memory", tmp_path / "memory.parquet", "--past", 2000)
    files = (*files, "--out", tmp_path / "picked.csv", "--workers", 2)
    done = bare("-m", "accuacl", "select", "--strategy", strategy, "--budget", 30, *files)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "picked.csv").read_text().splitlines()[1:]
    expected = select(strategy, pool=POOL, budget=30, memory=MEMORY, past=2000).indices
    assert [int(line.split(",")[0]) for line in lines] == expected.tolist()


def test_bait_says_how_to_install_torch(bare, tmp_path):
    write(tmp_path / "pool.parquet", np.arange(700), POOL, 100)
    files = ("--pool", tmp_path / "pool.parquet", "--out", tmp_path / "picked.csv")
    done = bare("-m", "accuacl", "select", "--strategy", "bait", "--budget", 3, *files)
    assert done.returncode == 2
    assert "bait needs the extra `train`" in done.stderr
    assert INSTALL in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--benchmark", "split-digits", "--scale", "smoke", "--out", "run"],
        ["paper", "main", "--scale", "smoke", "--out", "p"],
        ["project", "status", "p"],
    ],
    ids=lambda command: command[0],
)
def test_commands_that_need_torch_say_how_to_install_it(bare, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = bare("-m", "accuacl", *command)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "in the extra `train`" in done.stderr
    assert INSTALL in done.stderr


@pytest.mark.parametrize("code", ["import accuacl.torch", "from accuacl.experiments import run"])
def test_modules_that_need_torch_say_how_to_install_it(bare, code):
    done = bare("-c", f"import accuacl\ntry:\n    {code}\nexcept accuacl.InputError as error:\n    print(error)")
    assert INSTALL in done.stdout, done.stderr


def test_help_and_doctor_need_no_torch(bare):
    for arguments in (["--help"], ["select", "--help"], ["run", "--help"], ["doctor"]):
        done = bare("-m", "accuacl", *arguments)
        assert done.returncode == 0, done.stderr
    assert f"train (runs, sweeps, reports, BAIT and accuacl.torch): missing; install it: {INSTALL}" in done.stdout

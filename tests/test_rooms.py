"""Data walks through the house in one direction: no room imports one that comes after it."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

import accuacl

ROOT = Path(accuacl.__file__).parent
MAY_IMPORT = {
    "features": set(),
    "sums": {"features"},
    "fisher": {"features", "sums"},
    "strategies": {"features", "fisher"},
    "reference": {"features", "fisher", "strategies"},
    "bench": {"features", "fisher", "strategies", "reference"},
    "memory": set(),
    "models": {"features"},
    "learners": {"memory", "models"},
    "data": set(),
    "experiment": {"", "features", "strategies", "memory", "models", "learners", "data"},
    "scale": {"", "features", "fisher", "strategies", "models", "data", "experiment"},
    "report": {"", "experiment"},
    "labeling": {"", "features", "strategies", "memory", "models", "learners", "data", "experiment"},
    "recipes": set(),
    "cli": {"", "recipes", "strategies", "bench", "data", "experiment", "labeling", "scale", "report"},
    "": {"features", "strategies"},
}
FILES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {
                f"{node.module}.{alias.name}" if node.module == "accuacl" else str(node.module) for alias in node.names
            }
    return found


def rooms_of(names: set[str]) -> set[str]:
    known = set(MAY_IMPORT)
    parts = [name.split(".") for name in names if name.split(".")[0] == "accuacl"]
    return {part[1] if len(part) > 1 and part[1] in known else "" for part in parts}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_room_reaches_back(path):
    here = room(path)
    assert here in MAY_IMPORT, f"say in {__file__} what {here} may import"
    assert rooms_of(imports(path)) - {here} <= MAY_IMPORT[here]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_unpickles(path):
    if path.name == "unpickle.py":  # the official CIFAR archives; admits nothing but the arrays they hold
        return
    assert not imports(path) & {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve"}
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    loads = [node for node in calls if ast.unparse(node.func) == "torch.load"]
    if path.relative_to(ROOT).as_posix() == "labeling/pretrained.py":  # published as .pth only
        assert [[ast.unparse(k) for k in node.keywords if k.arg == "weights_only"] for node in loads] == [
            ["weights_only=True"]
        ]
    else:
        assert not loads


def test_the_version_is_written_the_same_everywhere():
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())
    assert project["project"]["version"] == accuacl.__version__

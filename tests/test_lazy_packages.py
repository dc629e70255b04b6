"""Packages offer what they say, and load it late: help and wrong input need not wait for torch."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from accuacl import strategies
from accuacl.base.lazy import Registry
from accuacl.experiments import learners, memory, models
from test_architecture import LAZY, module_of


@pytest.mark.parametrize("package", [module_of(path) for path in LAZY])
def test_every_name_is_there_and_dir_shows_it(package):
    module = importlib.import_module(f"accuacl.{package}")
    names = dir(module)
    assert names == sorted(set(names))
    for name in names:
        getattr(module, name)
    with pytest.raises(AttributeError, match=rf"module 'accuacl.{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_a_name_is_loaded_when_it_is_used(tmp_path, monkeypatch):
    package = tmp_path / "small_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from accuacl.base.lazy import lazy_attributes\n\n"
        "__getattr__, __dir__ = lazy_attributes(\n"
        '    __name__, modules="tool", picking="pick"\n)\n'
    )
    (package / "picking.py").write_text("def pick():\n    return 7\n")
    (package / "tool.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    import small_package

    assert "small_package.picking" not in sys.modules
    assert dir(small_package) == ["pick", "tool"]
    assert small_package.pick() == small_package.pick() == 7
    assert small_package.tool is sys.modules["small_package.tool"]


def test_a_registry_imports_what_is_asked_for(tmp_path, monkeypatch):
    """Also through values, get and pop; what was registered is there as it is."""
    (tmp_path / "late_package").mkdir()
    (tmp_path / "late_package" / "one.py").write_text("def first():\n    return 1\n\ndef second():\n    return 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("late_package", {"a": "one:first", "b": "one:second", "missing": "one:third"})
    assert list(registry) == ["a", "b", "missing"]
    assert "a" in registry
    assert "late_package.one" not in sys.modules
    registry["c"] = len
    assert registry["a"]() == 1
    assert registry.get("b")() == 2
    assert registry.pop("c") is len
    with pytest.raises(AttributeError, match="third"):
        registry["missing"]
    with pytest.raises(KeyError):
        registry["d"]
    del registry["missing"]
    assert [function() for function in registry.values()] == [1, 2]


def test_every_registry_of_the_package_finds_what_it_names():
    for registry in (strategies.REGISTRY, memory.POLICIES):
        assert all(map(callable, registry.values()))


def test_names_that_are_written_twice_are_the_same():
    assert set(models.NAMES) == set(importlib.import_module("accuacl.experiments.models.nets").NETS)
    assert tuple(learners.REGISTRY)[: len(learners.NAMES)] == learners.NAMES


HELPS = [
    "", "run", "sweep", "paper", "report", "embed", "select", "doctor", "project", "project new", "project add",
    "project status", "project serve", "project label", "project push", "project export",
]  # fmt: skip
WRONG = [
    "run --strategy nope", "run --learner nope", "run --lr -1", "run --benchmark nope", "run --config no",
    "run --option nope=1", "select --pool nope --budget 1 --out a.csv --option nope=1",
    "sweep nofile.yaml", "paper nope", "report nope",
    "embed --data x --out y --run z", "embed --data x --out y --model z.py:f",
    "project status nope", "project train nope", "project export nope --out y", "project serve nope",
    "project add nope --images y",
]  # fmt: skip
ONCE = """
import contextlib, io, json, sys
from accuacl.cli import main
loaded = {}
for command in json.loads(sys.argv[1]):
    sys.argv = ["accuacl", *command.split()]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    slow = {"torch", "sklearn", "scipy", "matplotlib", "fastapi", "ray"}
    slow |= {"pyarrow"} if command.endswith("--help") else set()
    loaded[command] = [code, sorted(slow & set(sys.modules))]
print(json.dumps(loaded))
"""


def test_help_and_wrong_input_load_nothing_slow(tmp_path):
    """All in one process: the first command that loads something slow is named."""
    commands = [f"{name} --help".strip() for name in HELPS] + WRONG
    done = subprocess.run(
        [sys.executable, "-c", ONCE, json.dumps(commands)], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    expected = {command: [0 if command.endswith("--help") else 2, []] for command in commands}
    assert json.loads(done.stdout or done.stderr) == expected

"""Rooms offer what they say, and load it late: checking an argument must not wait for torch."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

import accuacl
from accuacl import strategies
from accuacl.base.lazy import Registry, front_door
from accuacl.experiments import learners, memory, models

PACKAGES = [
    info.name
    for info in pkgutil.walk_packages(accuacl.__path__, "accuacl.")
    if info.ispkg and "__getattr__" in vars(importlib.import_module(info.name))
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package):
    room = importlib.import_module(package)
    for name in room.__all__:
        getattr(room, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        room.nothing  # noqa: B018


def test_a_file_does_not_take_the_place_of_the_function_that_has_its_name(tmp_path, monkeypatch):
    room = tmp_path / "small_room"
    room.mkdir()
    (room / "__init__.py").write_text(
        "from accuacl.base.lazy import front_door\n\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n"
        "    from small_room.pick import pick\n    from small_room import tool\n\n__getattr__ = front_door(__name__)\n"
    )
    (room / "pick.py").write_text("def pick():\n    return 7\n")
    (room / "tool.py").write_text("")
    (room / "other.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    import small_room.other
    import small_room.pick
    import small_room.tool

    assert small_room.pick() == small_room.pick() == 7
    assert small_room.tool is sys.modules["small_room.tool"]
    assert small_room.other is sys.modules["small_room.other"]


def test_a_registry_imports_what_is_asked_for(tmp_path, monkeypatch):
    """Also through values, get and pop; what was registered is there as it is."""
    (tmp_path / "late_room").mkdir()
    (tmp_path / "late_room" / "one.py").write_text("def first():\n    return 1\n\ndef second():\n    return 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("late_room", {"a": "one:first", "b": "one:second", "missing": "one:third"})
    assert list(registry) == ["a", "b", "missing"]
    assert "a" in registry
    assert "late_room.one" not in sys.modules
    registry["c"] = len
    assert registry["a"]() == 1
    assert registry.get("b")() == 2
    assert registry.pop("c") is len
    with pytest.raises(AttributeError, match="third"):
        registry["missing"]
    with pytest.raises(KeyError):
        registry["d"]
    del registry["missing"]
    assert [one() for one in registry.values()] == [1, 2]


def test_every_registry_of_the_package_finds_what_it_names():
    for registry in (strategies.REGISTRY, memory.POLICIES, *learners.REGISTRY.values()):
        assert all(map(callable, registry.values()))


def test_a_front_door_reads_from_imports_only(tmp_path, monkeypatch):
    (tmp_path / "odd_room.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SyntaxError, match="odd_room: below TYPE_CHECKING stands 'import os'"):
        front_door("odd_room")


def test_names_that_are_written_twice_are_the_same():
    assert tuple(importlib.import_module("accuacl.experiments.models.nets").NETS) == models.NAMES
    for variants in learners.REGISTRY.values():
        assert set(variants) == {"paper", "original"}


HELPS = [
    "run", "sweep", "paper", "report", "embed", "select", "doctor", "project", "project new", "project add",
    "project status", "project serve", "project label", "project push", "project export",
]  # fmt: skip
WRONG = [
    "run --strategy nope", "run --learner nope", "run --lr -1", "run --benchmark nope", "run --config no",
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
    slow |= {"numpy", "pyarrow"} if command.endswith("--help") else set()
    loaded[command] = [code, sorted(slow & set(sys.modules))]
print(json.dumps(loaded))
"""


def test_help_and_wrong_input_load_nothing_slow(tmp_path):
    """All in one process: the first command that loads something slow is named."""
    commands = [f"{name} --help" for name in HELPS] + WRONG
    done = subprocess.run(
        [sys.executable, "-c", ONCE, json.dumps(commands)], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    expected = {command: [0 if command.endswith("--help") else 2, []] for command in commands}
    assert json.loads(done.stdout or done.stderr) == expected

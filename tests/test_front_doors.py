"""Rooms offer what they say, and load it late: checking an argument must not wait for torch."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

import accuacl
from accuacl import learners, models
from accuacl.base.front import front_door

PACKAGES = [
    info.name
    for info in pkgutil.walk_packages(accuacl.__path__, "accuacl.")
    if info.ispkg and "__getattr__" in vars(importlib.import_module(info.name))
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there_and_none_is_also_a_files(package):
    room = importlib.import_module(package)
    files = {info.name for info in pkgutil.iter_modules(room.__path__)}
    for name in room.__all__:
        offered = getattr(room, name)
        # A file's import would put its module in the place of the function that has its name.
        assert name not in files or offered is sys.modules[f"{package}.{name}"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        room.nothing  # noqa: B018


def test_a_front_door_reads_from_imports_only(tmp_path, monkeypatch):
    (tmp_path / "odd_room.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SyntaxError, match="odd_room: below TYPE_CHECKING stands 'import os'"):
        front_door("odd_room")


def test_names_that_are_written_twice_are_the_same():
    assert tuple(importlib.import_module("accuacl.models.nets").NETS) == models.NAMES
    for variants in learners.REGISTRY.values():
        assert set(variants) == {"paper", "original"}


LIGHT = [
    "run --help", "run --strategy nope", "run --learner nope", "run --benchmark nope", "run --lr -1", "run --config no",
    "sweep --help", "sweep nofile.yaml", "paper --help", "paper nope", "report --help", "report nope",
    "embed --help", "embed --data x --out y --run z", "embed --data x --out y --model z.py:f", "bench --strategy nope",
    "project new --help", "project status nope", "project train nope", "project export nope --out y",
    "project serve nope", "project add nope --images y",
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
    loaded[command] = [code, sorted({"torch", "sklearn", "scipy", "matplotlib", "fastapi", "ray"} & set(sys.modules))]
print(json.dumps(loaded))
"""


def test_help_and_wrong_input_load_nothing_slow(tmp_path):
    """All in one process: the first command that loads something slow is named."""
    done = subprocess.run(
        [sys.executable, "-c", ONCE, json.dumps(LIGHT)], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    expected = {command: [0 if command.endswith("--help") else 2, []] for command in LIGHT}
    assert json.loads(done.stdout or done.stderr) == expected

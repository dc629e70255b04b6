"""Data walks through the house in one direction, and into each room by its front door."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import accuacl
from accuacl.base.userfile import load_file

ROOT = Path(accuacl.__file__).parent
MAY_IMPORT = {  # what each room may use of others; `base` is open to all
    "base": set(),
    "features": set(),
    "fisher": {"features"},
    "greedy": set(),
    "strategies": {"features", "fisher", "greedy"},
    "reference": {"features", "fisher", "greedy", "strategies"},
    "bench": {"features", "fisher", "strategies", "reference"},
    "memory": {"greedy"},
    "models": {"features"},
    "ridge": set(),
    "torch": {"features", "models"},
    "skactiveml": {"features", "strategies"},
    "learners": {"memory", "models", "ridge"},
    "data": set(),
    "experiment": {"", "features", "strategies", "memory", "models", "learners", "data"},
    "engines": set(),
    "pools": {"features", "fisher", "strategies", "engines"},
    "embed": {"features", "models", "data", "experiment", "engines", "pools"},
    "sweeps": {"", "data", "models", "experiment", "engines", "strategies", "bench"},
    "report": {"", "experiment", "sweeps"},
    "labeling": {"labeling.store"},
    "labeling.store": set(),
    "labeling.project": {
        "",
        "labeling.store",
        "features",
        "strategies",
        "memory",
        "models",
        "learners",
        "ridge",
        "data",
        "experiment",
        "embed",
    },
    "labeling.label_studio": {"labeling.store", "labeling.project"},
    "labeling.web": {"", "data", "labeling.store", "labeling.project"},
    "cli": {"", "strategies", "bench", "data", "experiment", "engines", "pools", "embed", "sweeps", "report"}
    | {"labeling.project", "labeling.store", "labeling.label_studio", "labeling.web"},
    "": {"features", "strategies"},
    "__main__": {"cli"},
}
FILES = sorted(ROOT.rglob("*.py"))


def room_of(module: str) -> str:
    """The room of a module, named from below the package; "" is the package itself."""
    parts = module.split(".")
    for name in (".".join(parts[:2]), parts[0]):
        if name in MAY_IMPORT:
            return name
    return ""


def room(path: Path) -> str:
    return room_of(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip("."))


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in a file's code."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> set[tuple[str, str]]:
    """(module, name) of all that a file imports; the name is "" for `import module`."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {(str(node.module), alias.name) for alias in node.names}
    return found


def of_ours(path: Path) -> Iterator[tuple[str, str, str]]:
    """(room, module below it, name) of what a file imports from this package."""
    for module, name in imports(path):
        if module.split(".")[0] != "accuacl":
            continue
        inside = module.removeprefix("accuacl").lstrip(".")
        if room_of(f"{inside}.{name}".strip(".")) != room_of(inside):  # `from accuacl import pools`
            inside, name = f"{inside}.{name}".strip("."), ""
        where = room_of(inside)
        yield where, inside.removeprefix(where).lstrip("."), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_room_reaches_back(path):
    here = room(path)
    assert {where for where, _, _ in of_ours(path)} - {here, "base"} <= MAY_IMPORT[here]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nobody_imports_past_a_rooms_front_door(path):
    here = room(path)
    for where, below, name in of_ours(path):
        if where in (here, "base", ""):
            continue
        front = importlib.import_module(f"accuacl.{where}")
        assert not below, f"import {name or below} from accuacl.{where}, not from {below} inside of it"
        offered = getattr(front, "__all__", [name])  # a room of a single file is its own front door
        assert not name or name in offered, f"accuacl.{where} does not offer {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_unpickles(path):
    if path.name == "unpickle.py":  # the official CIFAR archives; admits nothing but the arrays they hold
        return
    assert not {module for module, _ in imports(path)} & {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve"}
    calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
    loads = [node for node in calls if ast.unparse(node.func) == "torch.load"]
    if path.relative_to(ROOT).as_posix() == "labeling/project/inputs/pretrained.py":  # published as .pth only
        assert [[ast.unparse(k) for k in node.keywords if k.arg == "weights_only"] for node in loads] == [
            ["weights_only=True"]
        ]
    else:
        assert not loads


@pytest.mark.parametrize("path", sorted((ROOT / "cli").rglob("*.py")), ids=lambda path: path.name)
def test_commands_are_thin(path):
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= 40, f"{node.name} has {lines} lines; a command parses, calls and prints"


def test_a_class_has_a_name_of_its_own():
    """One name, one thing: two rooms do not call different things the same."""
    names = [(node.name, path) for path in FILES for node in nodes(path) if isinstance(node, ast.ClassDef)]
    count = Counter(name for name, _ in names if not name.startswith("_"))
    assert not [(name, str(path)) for name, path in names if count[name] > 1]


def test_what_is_imported_is_declared_and_what_is_declared_is_used():
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    extras = {name: words for name, words in project["optional-dependencies"].items() if name not in ("dev", "docs")}
    declared = {_distribution(word) for words in (project["dependencies"], *extras.values()) for word in words}
    modules = {module.split(".")[0] for path in FILES for module, _ in imports(path)}
    of = packages_distributions()
    used = {
        _distribution(name)
        for module in modules - sys.stdlib_module_names - {"accuacl"}
        for name in of.get(module, [module])[:1]
    }
    assert used - declared == set()
    otherwise = {"ray", "wordllama", "onnx"}  # imported by its name, read as files, and used by torch.onnx
    assert declared - used - otherwise == set()


def _distribution(requirement: str) -> str:
    """The name of a distribution, as all spellings of it are compared."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def test_the_plan_of_the_house_is_that_of_the_code():
    """docs/architecture.md names files that exist and every room, and its picture has the arrows of today."""
    docs = ROOT.parents[1] / "docs"
    text = (docs / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z_]+/[\w/.]+\.(?:py|js|md))`", text)) - {f"{room}/mine.py" for room in MAY_IMPORT}
    assert len(named) > 40
    assert not [name for name in named if not any((place / name).is_file() for place in (ROOT, ROOT.parents[1]))]
    for names, file in re.findall(r"((?:`\w+`(?:,| and)?\s+)+)in\s+`([\w/]+\.py)`", text):  # "`REGISTRY` in `...`"
        code = next(place / file for place in (ROOT, ROOT.parents[1]) if (place / file).is_file()).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(?:def|class) {name}\b|^{name}\b[^\n=]*=", code, re.MULTILINE), (name, file)
    files = {path.stem for path in (ROOT / "base").glob("*.py")} - {"__init__"}
    assert not files - set(re.findall(r"`(\w+)`", next(line for line in text.splitlines() if "| `base` |" in line)))
    rooms = {name.split(".")[0] for name in MAY_IMPORT} - {"", "__main__"}
    table = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} == rooms
    picture = load_file(docs / "rooms.py")
    assert set(picture.PLACES) == rooms - {"base"}
    assert (docs / "images" / "rooms.svg").read_text() == picture.draw(), "run: python docs/rooms.py"

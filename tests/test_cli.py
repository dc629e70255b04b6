"""The command line as a whole: quick, thin, one way to fail."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console

import accuacl
from accuacl import cli
from accuacl.base.progress import Progress
from accuacl.cli import load, project, screen
from accuacl.experiments import make
from accuacl.experiments.sweeps import run_name
from commands import accuacl as command
from processes import start_command

FILES = sorted(Path(cli.__file__).parent.rglob("*.py"))
COMMANDS = [(module, name, line) for group in (cli, project) for name, (module, line) in group.COMMANDS.items()]
SLOW = {"torch", "pyarrow", "matplotlib", "sklearn", "scipy", "numpy", "fastapi", "uvicorn", "ray"}


def python(*arguments, **more):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, **more)


def run(*arguments, **more):
    return python("-m", "accuacl", *arguments, **more)


def imports(arguments, modules):
    """The command, which at its end writes to stderr those of the modules that it has imported."""
    start = (
        f"import sys, json, atexit; sys.argv = ['accuacl', *{arguments!r}]\n"
        f"atexit.register(lambda: print(json.dumps(sorted({modules!r} & set(sys.modules))), file=sys.stderr))\n"
        "from accuacl.cli import main; main()"
    )
    return python("-c", start)


@pytest.mark.parametrize(("module", "name", "line"), COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(module, name, line):
    command = getattr(importlib.import_module(module), name)
    said = command.info.help if isinstance(command, typer.Typer) else inspect.getdoc(command)
    assert said.splitlines()[0] == line


def test_every_module_has_commands_or_what_they_share():
    shared = {f"accuacl.cli.{name}" for name in ("options", "screen")}
    modules = {f"accuacl.cli.{file.stem}" for file in FILES if file.stem != "__init__"}
    assert modules == shared | {module for module, _, _ in COMMANDS}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["bunch"], ["project", "--help"], ["project", "bunch"]]
)
def test_help_and_wrong_names_load_nothing_slow(arguments):
    done = imports(arguments, SLOW)
    assert json.loads(done.stderr.splitlines()[-1]) == []
    assert done.returncode == (2 if "bunch" in arguments else 0)


def test_what_needs_no_network_does_not_load_torch():
    done = imports(["select", "--help"], {"torch", "sklearn", "matplotlib"})
    assert json.loads(done.stderr.splitlines()[-1]) == []


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, name, _ in COMMANDS])
def test_help_names_what_options_take_and_flags_take_nothing(module, name):
    command = load(module, name)
    context = typer.Context(command)
    for option in (each for each in command.get_params(context) if each.param_type_name == "option"):
        assert (option.metavar == "") == bool(option.is_flag), option.name
        assert "<" not in option.display_type_rich(context), option.name


def test_the_package_is_a_command_too():
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"accuacl {accuacl.__version__}\n")
    assert "Usage: accuacl project " in run("project", "--help").stdout


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("run --strategy uniform --out /proc/a/b", "the folder /proc/a/b cannot be made: no such file or directory"),
        ("run --strategy uniform --out file", "the folder file cannot be made: file exists"),
        ("run --config folder", "folder cannot be read: is a directory"),
        ("run --plugin folder", "folder is not a Python file"),
        ("sweep sweep.yaml --out file", "the folder file cannot be made: file exists"),
        ("sweep sweep.yaml --out a --results folder", "folder cannot be written"),
        ("sweep binary", "binary is not text; give a YAML file"),
        ("paper list --results folder", "folder cannot be read: is a directory"),
        ("paper list --results binary", "binary is not text; give a results.csv or a directory of runs"),
        ("paper efficiency --out file", "the folder file cannot be made: file exists"),
        ("report folder", "folder holds no finished run"),
        ("report binary", "binary is not text; give a results.csv or a directory of runs"),
        ("report nothing", "there is no file or folder nothing"),
        ("embed --data x.npy --run folder --out a", "folder is not the directory of a finished run or of a project"),
        ("embed --data binary.npy --run folder --out a", "folder is not the directory"),
        ("embed --data binary.npy --model net.py:build --out a", "binary.npy cannot be read: "),
        ("embed --data x.npy --model net.py:build --weights folder --out a", "as safetensors: is a directory"),
        ("embed --data x.npy --model net.py:build --out file", "file is a file; give a folder for the pool"),
        ("select --pool folder --budget 2 --out a.csv", "pool: folder holds no Parquet files"),
        ("select --pool binary --budget 2 --out a.csv", "binary is not a readable Parquet file"),
        ("select --pool binary --exclude folder --budget 2 --out a.csv", "folder cannot be read: is a directory"),
        ("project status folder", "folder is not a project"),
        ("project new a --vectors binary", "or give a table such as CSV with --table"),
        ("project new a --texts folder", "folder is a folder without files called task-1, task-2, ...; give a file."),
    ],
)
def test_a_wrong_place_is_told_in_one_sentence(command, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for name in ("binary", "binary.npy"):
        (tmp_path / name).write_bytes(bytes(range(256)))
    (tmp_path / "sweep.yaml").write_text("benchmark: split-digits\n")
    (tmp_path / "net.py").write_text("from torch import nn\n\ndef build():\n    return nn.Linear(3, 2)\n")
    np.save(tmp_path / "x.npy", np.ones((4, 3)))
    monkeypatch.setattr(sys, "argv", ["accuacl", *command.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    assert end.value.code == 2
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


PLUGIN = """import numpy as np
from accuacl.strategies import Selection, register

@register("mine")
def mine(query):
    return Selection(np.ones(3) + np.ones(4), {})
"""
SMALL = ("--tasks=1", "--labels=4", "--rounds=2", "--epochs=1", "--pool=20", "--strategy=mine")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (PLUGIN, 6, "ValueError: operands could not be broadcast together"),
        (PLUGIN.replace("import Selection", "import Choice"), 2, "ImportError: cannot import name 'Choice'"),
        (PLUGIN + "1 / 0\n", 7, "ZeroDivisionError: division by zero"),
        (PLUGIN + "raise OSError('gone')\n", 7, "OSError: gone"),
    ],
)
def test_a_bug_in_a_plugin_shows_its_file_and_line(tmp_path, text, line, says):
    (tmp_path / "mine.py").write_text(text)
    done = start_command("run", *SMALL, "--plugin", "mine.py", "--out", "out", cwd=tmp_path).wait()
    assert done.returncode == 1
    assert f'mine.py", line {line}, in' in done.stderr
    assert done.stderr.splitlines()[-1].startswith(says)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FILES[0].parent)))
def test_no_function_of_the_command_line_is_long(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = node.end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 40, f"{node.name} has {length} lines: what it does belongs into another package"


def test_runs_that_differ_go_to_directories_that_do():
    more = ({}, {"blur": 0.1}, {"blur": 0.1, "label_noise": 0.2}, {"epochs": 3}, {"seed": 1}, {"order": "classes"})
    more += ({"strategy": "coverage", "options": {"sample": 50}}, {"strategy": "coverage"})
    names = [run_name(make({"strategy": "uniform"} | settings), None) for settings in more]
    assert names[0] == "split-digits-er-uniform-m20-s0"
    assert names[1] == "split-digits-er-uniform-m20-s0-blur=0.1"
    assert names[-2] == "split-digits-er-coverage-m20-s0-sample=50"
    assert len(set(names)) == len(more)


WAITING = """
import sys, time

module = sys.argv.pop(1)

class Waiting:
    def find_spec(name, *more):
        if name == module:
            print("here", flush=True)
            for _ in range(30_000):  # a signal just before one long sleep would wait for its end
                time.sleep(0.01)

sys.meta_path.insert(0, Waiting)
from accuacl.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["accuacl.cli", "typer", "pydantic", "accuacl.experiments.config", "torch"])
def test_interrupted_while_it_loads_it_says_one_line(tmp_path, module):
    command = [sys.executable, "-c", WAITING, module, "run", "--strategy", "uniform", "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode in (130, -signal.SIGINT)  # the latter if it came through an `exec`; a shell says 130
    assert said.startswith("accuacl: interrupted")
    assert said.count("\n") == 1


def test_help_of_a_run_names_choices_and_defaults():
    run = load("accuacl.cli.run", "run")
    told = {each.name: getattr(each, "help", "") for each in run.get_params(typer.Context(run))}
    assert told["learner_variant"].endswith("(paper), or as first published (original). \\[default: paper]")
    assert told["scale"].endswith("Unset: smoke, or cpu with --model pretrained.")
    assert told["labels"] == "Labels per task."  # whose default depends on benchmark and scale
    assert not any("None" in text for text in told.values())


@pytest.mark.posix
@pytest.mark.parametrize("arguments", [("--version",), ("run", "--help"), ("run", *SMALL[:-1], "--strategy=uniform")])
def test_output_that_cannot_be_written_is_told_in_one_sentence(tmp_path, arguments):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "accuacl", *arguments], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2
    said = "accuacl: the output cannot be written: the disk is full; make room, or send it somewhere else.\n"
    assert ended.stderr == said


def test_names_that_the_output_has_no_letters_for_are_shown_all_the_same(tmp_path):
    (tmp_path / "g.csv").write_text("x,label\n" + "".join(f"{i},{'βγ'[i % 2]}\n" for i in range(40)))
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "accuacl", "run", "--benchmark=g.csv", "--classes-per-task=1"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert r"\u03b2: " in ended.stdout


@pytest.mark.parametrize(("out", "err"), [(True, True), (False, True), (False, False)])
def test_the_bar_is_drawn_on_the_terminal_that_there_is(monkeypatch, out, err):
    pages = {name: io.StringIO() for name in ("console", "errors")}
    for (name, page), terminal in zip(pages.items(), (out, err), strict=True):
        monkeypatch.setattr(screen, name, Console(file=page, force_terminal=terminal, width=80))
    with screen.drawn() as draw:
        draw(Progress(1, 2, "half"))
    drawn = {name for name, page in pages.items() if "half" in page.getvalue()}
    assert drawn == ({"console"} if out else {"errors"} if err else set())


def test_wide_tables_are_whole_in_80_columns(tmp_path):
    ended = command("run", "--classes-per-task=1", "--strategy=uniform", "--epochs=1", cwd=tmp_path, width=80)
    assert ended.returncode == 0, ended.stderr
    assert "…" not in ended.stdout
    assert "with plots: accuacl report runs/split-digits-er-uniform-" in ended.stdout

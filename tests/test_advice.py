"""What commands advise can be done: options that exist, names that were meant, notes that hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import accuacl
from accuacl import cli
from accuacl.base.names import near, no_such
from accuacl.cli import project
from accuacl.cli.lazy import load
from accuacl.experiment import advice, make
from commands import accuacl as command

SOURCE = Path(accuacl.__file__).parent
OTHERS = {"--faint", "--help", "--version"}  # a colour of a page, and options of every command


def options() -> set[str]:
    commands = [load("accuacl.cli", name) for name in cli.COMMANDS if name != "project"]
    commands += [load("accuacl.cli.project", name) for name in project.COMMANDS]
    return {
        option
        for each in commands
        for parameter in each.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }


def test_every_option_that_a_text_names_exists():
    known = options() | OTHERS
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", node.value):
                    assert option in known, f"{path.name} names {option}"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run --strategy entropie", "there is no strategy 'entropie'; did you mean entropy?"),
        ("run --strategy Least_Confidence", "did you mean least-confidence?"),
        ("run --learner der", "did you mean der++?"),
        ("run --benchmark split-cifar", "did you mean split-cifar10?"),
        ("run --model resnet-18", "did you mean resnet18?"),
        ("select --pool a --budget 1 --out b.csv --strategy margins", "did you mean margin?"),
        ("paper mian", "did you mean main?"),
        ("bench --strategy bages", "did you mean badge?"),
        ("run --memry 3", "--memory"),
    ],
)
def test_a_name_that_is_nearly_right_is_told(arguments, says, tmp_path):
    ended = command(*arguments.split(), cwd=tmp_path)
    assert ended.returncode == 2
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_nothing_is_meant_by_a_name_that_is_near_to_none():
    assert near("zzz", ["entropy", "margin"]) == ""
    assert str(no_such("stream", "zzz", ["classes"])) == "there is no stream 'zzz'; the streams are classes."


def test_names_of_settings_are_the_same_in_yaml_and_on_the_command_line(tmp_path):
    (tmp_path / "a.yaml").write_text("classes-per-task: 2\nbudget: 30\nlambda: 0.25\n")
    said = command("run", "--config", "a.yaml", "--print-config", cwd=tmp_path).stdout
    assert {"classes_per_task: 2", "labels: 30", "lam: 0.25"} <= {line.split("  #")[0] for line in said.splitlines()}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seeds: 3", "seeds is 3; write seeds: [0, 1, 2] for as many seeds, or seed: 3 for that one."),
        ("seeds: [0, 1]", "seed is [0, 1], but a run has one value; `accuacl sweep` does several runs."),
        ("labels: 3\nbudget: 4", "labels and budget are the same setting; give one of them."),
        ("memroy: 3", "there is no setting memroy; did you mean memory?"),
    ],
)
def test_settings_that_can_be_read_in_two_ways_are_refused(text, says, tmp_path):
    (tmp_path / "a.yaml").write_text(text)
    assert command("run", "--config", "a.yaml", cwd=tmp_path).stderr == f"accuacl: {says}\n"
    if "seeds: [" not in text:
        assert says in command("sweep", "a.yaml", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"strategy": "badge+memory", "memory": 0}, "it picks as badge does"),
        ({"strategy": "accuacl", "memory": 0}, "it sees no past"),
        ({"strategy": "entropy", "learner": "der++"}, "less accurate than uniform"),
        ({"memory": 500, "labels": 100}, "keeps all labels of 5 tasks"),
    ],
)
def test_settings_that_do_badly_together_are_told(settings, part):
    (sentence,) = advice(make(settings))
    assert part in sentence


@pytest.mark.parametrize(
    "settings", [{}, {"strategy": "entropy"}, {"memory": 499, "labels": 100}, {"strategy": "full"}]
)
def test_usual_settings_are_not_commented(settings):
    assert advice(make(settings)) == []


def test_the_doctor_says_what_is_there(tmp_path, monkeypatch):
    (tmp_path / "cifar10-abc").mkdir()
    (tmp_path / "cifar10-abc" / "train.npy").write_bytes(bytes(3 << 20))
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path))
    monkeypatch.setenv("ACCUACL_DATA", str(tmp_path / "none"))
    said = command("doctor", width=500)
    assert said.returncode == 0
    for part in (f"{accuacl.__version__}, in", "torch 2", "web (the labelling page)", "cores", "digits: embedded"):
        assert part in said.stdout
    assert "cifar100: not found" in said.stdout
    assert f"{tmp_path / 'cifar10-abc'}: 3.0 MiB" in said.stdout

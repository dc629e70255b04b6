"""A project from elsewhere runs no Python of its own until the user says so."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from accuacl.base.errors import InputError
from accuacl.cli import main
from accuacl.experiments import read_steps
from accuacl.labeling.project import NewItems, Project, check_trusted, make, trust_code
from commands import accuacl

MODEL = """
from pathlib import Path
from torch import nn
Path(__file__).with_name("it-ran").touch()
def build():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
"""


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A project that another user has made; this one has trusted nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "their state"))
    (tmp_path / "net.py").write_text(MODEL)
    settings = make({"kind": "vectors", "model": f"{tmp_path / 'net.py'}:build", "per_round": 4, "rounds": 1})
    with Project.create(tmp_path / "project", settings, ["a"]) as project:
        project.add(NewItems("vectors", "made up", list("abcdefgh"), vectors=np.ones((8, 4), np.float32)))
    (tmp_path / "it-ran").unlink()  # the maker's own
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "our state"))
    return tmp_path


@pytest.mark.parametrize("command", ["train", "serve"])
def test_its_code_is_refused_in_a_sentence_until_it_is_trusted(foreign, monkeypatch, capsys, command):
    monkeypatch.setattr(sys, "argv", ["accuacl", "project", command, str(foreign / "project")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "which you have not trusted" in " ".join(capsys.readouterr().err.split())
    assert not (foreign / "it-ran").exists()


def test_it_is_trusted_once_and_by_what_is_in_it(foreign, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["accuacl", "project", "train", str(foreign / "project"), "--trust-code"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 75
    assert (foreign / "it-ran").exists()
    with Project.open(foreign / "project") as project:
        check_trusted(project.settings)
        trust_code(project.settings)
        lines = (foreign / "our state" / "accuacl" / "trusted").read_text().splitlines()
        assert len(lines) == 1
        other = project.settings.model_copy(update={"digest": "0" * 64})
        with pytest.raises(InputError, match="have not trusted"):
            check_trusted(other)


PLUGIN = """
from pathlib import Path
from typing import Annotated
import numpy as np
from torch.nn.functional import cross_entropy
from accuacl.experiments import learners, memory
from accuacl.strategies import Option, Selection, register
Path(__file__).with_name("it-ran").touch()

@register("from-row")
def from_row(query, *, row: Annotated[int, Option("the first row", least=0)] = 0):
    return Selection((np.arange(query.count) + row) % len(query.pool), {})

@learners.register("plain")
class Plain(learners.Learner):
    def observe(self, rows):
        x, y = self.round.augmented(rows)
        return self.round.step(cross_entropy(self.round.logits(x), y))

    def remember(self):
        return self.keep(memory.reservoir)

@memory.register("oldest")
def oldest(kept, ids, labels, features, capacity, seed, logits=None):
    return memory.Memory(np.append(kept.ids, ids)[:capacity], np.append(kept.labels, labels)[:capacity])
"""
ITS_OPTIONS = ["--strategy", "from-row", "--option", "row=7", "--learner", "plain", "--memory-policy", "oldest"]


@pytest.fixture
def with_plugin(tmp_path, monkeypatch):
    """The folder of a project with a plugin, which another user has made by the command line."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "their state"))
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "rows.csv").write_text("id,a,b\n" + "".join(f"r{i},{i},{i % 5}\n" for i in range(40)))
    data = ["--table", tmp_path / "rows.csv", "--classes", "x,y", "--per-round", "4", "--rounds", "2", "--holdout", "0"]
    new = ["project", "new", tmp_path / "project", *data, *ITS_OPTIONS, "--plugin", tmp_path / "mine.py"]
    ended = accuacl(*new)
    assert ended.returncode == 0, ended.stderr
    (tmp_path / "it-ran").unlink()
    return tmp_path


def test_a_project_learns_with_a_plugin_and_remembers_it(with_plugin):
    rounds = []
    for round in (0, 1):
        assert accuacl("project", "train", with_plugin / "project").returncode == 75
        with Project.open(with_plugin / "project", view=True) as project:
            rounds.append([pick.item for pick in project.store.picks(0, round)])
        labels = with_plugin / "labels.csv"
        labels.write_text("id,label\n" + "".join(f"r{item},{'xy'[item % 2]}\n" for item in rounds[-1]))
        assert accuacl("project", "label", with_plugin / "project", "--from", labels).returncode == 0
    ended = accuacl("project", "train", with_plugin / "project")
    assert ended.returncode == 0, ended.stderr
    assert rounds[1] == np.setdiff1d(np.arange(40), rounds[0])[7:11].tolist()  # --option row=7
    (memory,) = read_steps(with_plugin / "project" / "journal.sqlite", "memory")
    assert sorted(memory.result["ids"]) == sorted(rounds[0] + rounds[1])


def test_a_plugin_of_a_project_is_run_only_if_it_is_trusted(with_plugin, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(with_plugin / "our state"))
    for command in ("train", "serve"):
        ended = accuacl("project", command, with_plugin / "project", *(["--no-open"] if command == "serve" else []))
        assert ended.returncode == 2
        assert f"runs the Python file {with_plugin / 'mine.py'}, which you have not trusted" in ended.stderr
    assert accuacl("project", "status", with_plugin / "project").returncode == 0  # nothing needs to be run for that
    assert not (with_plugin / "it-ran").exists()
    assert accuacl("project", "train", with_plugin / "project", "--trust-code").returncode == 75
    assert (with_plugin / "it-ran").exists()
    assert accuacl("project", "train", with_plugin / "project").returncode == 75  # once is enough


@pytest.mark.parametrize("command", ["train", "serve"])
def test_a_plugin_that_has_changed_is_named(with_plugin, command):
    (with_plugin / "mine.py").write_text(PLUGIN + "# another line\n")
    ended = accuacl("project", command, with_plugin / "project", *(["--no-open"] if command == "serve" else []))
    assert ended.returncode == 2
    assert f"{with_plugin / 'mine.py'} has changed since this project began; restore it" in ended.stderr
    assert not (with_plugin / "it-ran").exists()


def test_a_wrong_option_of_a_plugin_is_named_before_the_project_is_there(with_plugin):
    new = ["project", "new", with_plugin / "other", "--table", with_plugin / "rows.csv", "--strategy", "from-row"]
    ended = accuacl(*new, "--option", "row=-1", "--plugin", with_plugin / "mine.py")
    assert (ended.returncode, "row is -1" in ended.stderr) == (2, True)
    ended = accuacl(*new, "--plugin", with_plugin / "rows.csv")
    assert (ended.returncode, "rows.csv" in ended.stderr) == (2, True)
    assert not (with_plugin / "other").exists()

"""A project from elsewhere runs no Python of its own until the user says so."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from accuacl.base.errors import InputError
from accuacl.cli import main
from accuacl.labeling.project import NewItems, Project, check_trusted, make, trust_code

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
        project.settings = other
        with pytest.raises(InputError, match="have not trusted"):
            check_trusted(project.settings)

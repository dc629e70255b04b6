"""Wrong uses end with exit code 2 and one sentence that names what is wrong, and leave nothing behind."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path

import pytest

from commands import accuacl as command
from wrong_uses import FURTHER, LINES, MORE, USES, culprits, place


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uses")
    place(folder)
    return folder


def content(folder):
    """All that is in it, but for what Python leaves beside every file that it imports."""
    paths = [path for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in paths}


def test_there_are_enough_of_them():
    assert len(USES) == len(LINES) >= 300


def test_the_page_shows_those_of_the_list():
    """Its sentences are not compared: some quote a library, whose words depend on its version."""
    page = Path(__file__).parents[1] / "docs" / "results" / "wrong-uses.md"
    shown = [line.split("`")[1] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert shown == [line.partition("  # ")[0] for line in MORE + FURTHER]


@pytest.mark.parametrize("use", USES)
def test_a_wrong_use(use, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ACCUACL_DATA", raising=False)
    before = content(folder)
    with warnings.catch_warnings(action="ignore"):
        ended = command(*shlex.split(use), cwd=folder, width=100)
    said = ended.stderr.strip()
    assert ended.returncode == 2, (said, ended.stdout)
    assert "Traceback" not in said
    assert "[Errno" not in said
    if said or "Usage" not in ended.stdout:  # a command without arguments may show its help instead
        assert said.startswith("accuacl: "), said
        assert said.endswith((".", "?")), said
        assert "\n" not in said, said
        assert any(culprit in said.lower() for culprit in culprits(use)), said
    assert content(folder) == before
    assert all(any(folder.iterdir()) for folder in (tmp_path / "cache").glob("*"))

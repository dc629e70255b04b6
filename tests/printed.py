"""What the README and the pages print for readers to run: code blocks, found in the Markdown and run as printed.

A block with a title is a file. Python blocks of a page share one session, commands one folder, and a block of text
right after a block is its output: numbers may differ, and a line of three dots stands for any lines. Invisible
comments before a block say what is special about it:

    <!-- run: long -->                    only in long tests, and by the newcomer
    <!-- run: never, REASON -->           not at all
    <!-- run: with photos, model -->      things that the reader is assumed to have: see printed_things.py
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from accuacl import engines
from commands import accuacl, forgetting, get_inline

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs/start.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))]
PAGES += [ROOT / "docs/scikit-learn.md", ROOT / "docs/scikit-activeml.md", ROOT / "docs/avalanche.md"]
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?$")
MARK = re.compile(r"^<!-- run: (long|never|with)(?:,? (.+?))? -->$")
NUMBER = re.compile(r"\d+(\.\d+)?")
RUN = ("python", "sh")


@dataclass(frozen=True)
class Block:
    """A code block: its language, the file it is meant for, its text, where it stands, and what is said of it."""

    language: str
    title: str
    text: str
    line: int
    marks: dict[str, str]  # long, never (and why), with (what must be there before it is run)
    output: str = ""

    @property
    def things(self) -> list[str]:
        """What must be there before it is run."""
        return re.split(r",\s*", self.marks["with"]) if "with" in self.marks else []

    @property
    def commands(self) -> list[str]:
        """The commands of a block of the shell; one that ends in a backslash goes on in the next line."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("#")]


def blocks_of(text: str) -> list[Block]:
    """All code blocks of a page in their order; blocks of text are the output of the one before."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    adjacent = False
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        if marked := MARK.match(lines[i]):
            marks[marked[1]] = marked[2] or ""
        elif fence := FENCE.match(lines[i]):
            end = lines.index("```", i + 1)
            body = "\n".join(lines[i + 1 : end]) + "\n"
            if fence[1] == "text" and adjacent and found:
                found[-1] = replace(found[-1], output=body)
            else:
                found.append(Block(fence[1], fence[2] or "", body, i + 1, marks))
            marks, adjacent, i = {}, True, end
        elif lines[i].strip():
            adjacent = False
        i += 1
    return found


def agrees(printed: str, given: str) -> bool:
    """Whether the output is as printed, but for numbers, blanks, and what three dots stand for.

    >>> agrees("task 1: 93 %\\n...\\ndone", "task 1: 94.5 %\\ntask 2: 7 %\\nDONE".lower())
    True
    >>> agrees("task 1", "task one")
    False
    """
    wanted = [_vague(line) for line in printed.strip().splitlines()]
    parts = "\n".join(wanted).split("\n...\n")
    pattern = r"\n(?:.*\n)*?".join(re.escape(part) for part in parts)
    return re.fullmatch(pattern, "\n".join(_vague(line) for line in given.strip().splitlines())) is not None


def _vague(line: str) -> str:
    return NUMBER.sub("#", " ".join(line.split()))


class Reader:
    """Runs the blocks of a page in a folder, as somebody would who types all of it, in one process."""

    def __init__(self, folder: Path, label: Callable[[Path], None]) -> None:
        self.folder, self.label = folder, label  # label: what people do on the page that `serve` opens
        self.session: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> None:
        """Run a block, or write it to its file; what it prints must be what the page shows."""
        if block.title:
            (self.folder / block.title).write_text(block.text)
        elif block.language == "python":
            self._check(block, self._python(block.text))
        elif block.language == "sh":
            self._check(block, "".join(self._command(command) for command in block.commands))

    def _check(self, block: Block, given: str) -> None:
        assert not block.output or agrees(block.output, given), f"line {block.line} printed\n{given}"

    def _python(self, text: str) -> str:
        out = io.StringIO()
        with self._here(), contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
            patch.setattr(engines, "get", get_inline)
            exec(compile(text, "a printed block", "exec"), self.session)
        return out.getvalue()

    def _command(self, command: str) -> str:
        words = shlex.split(command, comments=True)
        if words[0] == "accuacl" and not set(words) & set("|;>"):
            if words[1:3] == ["project", "serve"]:
                self.label(self.folder / words[3])
                return ""
            ended = accuacl(*words[1:], cwd=self.folder)
            assert ended.returncode == 0, f"{command}\n{ended.stderr}"
            return ended.stdout
        if words[0] == "python" and words[1].endswith(".py"):
            return self._file(words[1:])
        done = subprocess.run(["bash", "-euc", command], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout

    def _file(self, words: list[str]) -> str:
        out = io.StringIO()
        with self._here(), contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words)
            runpy.run_path(words[0], run_name="__main__")
        return out.getvalue()

    @contextlib.contextmanager
    def _here(self):
        """In the folder, from which modules are imported and afterwards forgotten."""
        before, known = os.getcwd(), set(sys.modules)
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        try:
            with forgetting():
                yield
        finally:
            sys.path[:] = [place for place in sys.path if not place or Path(place) != self.folder]
            os.chdir(before)
            for name in set(sys.modules) - known:
                file = getattr(sys.modules[name], "__file__", None) or ""
                if file.startswith(str(self.folder)):
                    del sys.modules[name]

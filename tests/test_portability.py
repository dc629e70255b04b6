"""What only some systems have is in `base/machine.py`, and files are read and written in a named encoding.

Neither macOS nor Windows is at hand where these tests are usually run, so the sources are read instead.
"""

from __future__ import annotations

import ast
import os
import signal
import sys
from pathlib import Path

import pytest

import accuacl
from accuacl.base import machine

ROOT = Path(accuacl.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "base" / "machine.py")
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "signal", "ctypes", "crypt", "syslog", "posix"}
FUNCTIONS = {  # of os: those that Windows or macOS lack
    *("fork", "forkpty", "kill", "killpg", "setsid", "getpgid", "getuid", "geteuid", "getgid", "chown", "mkfifo"),
    *("sysconf", "sched_getaffinity", "sched_setaffinity", "nice", "wait", "waitpid", "uname", "getloadavg", "unshare"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "RTLD_NOW", "RTLD_GLOBAL", "posix_fadvise", "sync"),
}
PLACES = ("/tmp", "/proc", "/sys/", "/dev/", "/etc", "/usr", "/var")
TEXT = {"read_text", "write_text", "open"}
OURS = {"write_text"}  # of base.files: UTF-8


def nodes(path):
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_used_that_only_some_systems_have(path):
    for node in nodes(path):
        where = f"{path}, line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            assert not MODULES & {alias.name.partition(".")[0] for alias in node.names}, where
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in MODULES, where
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            assert node.attr not in FUNCTIONS, where
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not node.value.startswith(PLACES), where


@pytest.mark.parametrize(
    "path", [*FILES, ROOT / "base" / "machine.py"], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_text_is_read_and_written_in_a_named_encoding(path):
    for node in nodes(path):
        if not isinstance(node, ast.Call):
            continue
        function, named = node.func, {keyword.arg for keyword in node.keywords}
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        plain = isinstance(function, ast.Name)
        if name == "read_text" or (name == "write_text" and not plain):
            inside = [
                each for each in node.args if isinstance(each, ast.Constant) and str(each.value).startswith("utf-8")
            ]
            assert "encoding" in named or inside, f"{path}, line {node.lineno}"
        elif name == "open" and (plain or _is_path(function)):
            mode = _mode(node, 1 if plain else 0)
            assert mode is None or "b" in mode or "encoding" in named, f"{path}, line {node.lineno}"


def _is_path(function: ast.Attribute) -> bool:
    """Whether `x.open(...)` may be pathlib's: by its name x is a path, a file or a table."""
    owner = function.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", getattr(owner, "func", ""))
    return str(name).lower() in ("path", "file", "table", "aside", "listed", "place") or isinstance(owner, ast.Call)


def _mode(call: ast.Call, position: int) -> str | None:
    """The mode in which a call opens a file; None if it is no mode at all."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] + call.args[position : position + 1]
    if not given:
        return "r"
    return str(given[0].value) if isinstance(given[0], ast.Constant) and len(str(given[0].value)) <= 4 else None


def test_without_what_windows_lacks_everything_has_a_fallback(tmp_path, monkeypatch):  # undone before the folder goes
    for name in ("sysconf", "sched_getaffinity", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
        monkeypatch.delattr(os, name, raising=False)
    for name in ("pthread_sigmask", "SIGKILL"):
        monkeypatch.delattr(signal, name, raising=False)
    for name in ("CPU_INFO", "STATUS", "CLEAR_REFS", "MEMORY", "CGROUP"):
        monkeypatch.setattr(machine, name, tmp_path / "nothing")
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(machine, "_gnu", lambda: None)
    assert machine.cores() == os.cpu_count()
    assert machine.available_memory() == machine.UNKNOWN_MEMORY
    assert machine.reset_peak_memory() == machine.peak_memory() == 0
    machine.raise_file_limit(10**6)
    machine.sync_folder(tmp_path / "nothing")
    machine.one_heap()
    with machine.interrupts_held(), machine.memory_kept():
        (tmp_path / "a").write_bytes(b"\r\n")
    with os.fdopen(machine.open_unlinked(tmp_path / "a"), "rb") as file:
        assert file.read() == b"\r\n"
    assert machine.how_it_ended(-1000) == "killed by signal 1000"


TESTS = sorted(path for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
SIGNALS = {"SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP", "SIGALRM", "pthread_sigmask", "symlink", "chmod"}


def needs_posix(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        system = isinstance(node.value, ast.Name) and node.value.id in ("os", "signal")
        return node.attr == "symlink_to" or (system and node.attr in FUNCTIONS | SIGNALS)
    if isinstance(node, ast.Import):
        return bool((MODULES - {"signal", "ctypes"}) & {alias.name for alias in node.names})
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(("/proc", "/dev/"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_a_test_that_needs_posix_says_so(path):
    lines = sorted({node.lineno for node in nodes(path) if needs_posix(node)})
    assert not lines or "mark.posix" in path.read_text(encoding="utf-8"), (
        f"{path}, lines {lines}: add pytest.mark.posix"
    )

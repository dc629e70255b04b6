"""Commands and functions in processes of their own, to be killed and interrupted.

They are forked from one process that has imported what is slow to import, which takes two seconds and happens once.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from effort import PATIENCE

SLOW = [
    "accuacl.experiments.runner",
    "accuacl.experiments.learners.er",
    "accuacl.experiments.sweeps.running",
    "accuacl.labeling.project.project",
]
SLOW += ["accuacl.experiments.heads.ridge", "pyarrow.dataset", "pyarrow.parquet", "sklearn.datasets"]
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(SLOW)


RUNNING: set[Running] = set()


@atexit.register
def _kill_all() -> None:
    """Those that failing tests have left, for which Python would wait."""
    for process in RUNNING:
        process.kill()


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class Running:
    """A process that calls a function, in this folder and environment or in others; its output goes to files."""

    def __init__(self, function: Callable[..., object], *arguments: object, cwd: Path | None = None, **more: str):
        self._folder = tempfile.TemporaryDirectory(prefix="accuacl-process-")
        self._written = [Path(self._folder.name) / name for name in ("stdout", "stderr")]
        for path in self._written:
            path.touch()
        given = (self._written, cwd or Path.cwd(), dict(os.environ) | more, function, arguments)
        self._process = SERVER.Process(target=_begin, args=given)
        self._process.start()
        RUNNING.add(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code, negative if a signal killed it; None: it has not ended."""
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def interrupt(self) -> None:
        """Interrupt it and the processes that it has started, as Ctrl-C in a terminal does."""
        os.killpg(self.pid, signal.SIGINT)

    def wait(self) -> Ended:
        """How it ended."""
        self._process.join(PATIENCE)
        code = self.poll()
        assert code is not None, f"it did not end within {PATIENCE} seconds"
        RUNNING.discard(self)
        self._process.close()
        with self._folder:
            return Ended(code, *(path.read_text() for path in self._written))


def start_command(*arguments: object, cwd: Path | None = None, **more: str) -> Running:
    """The command `accuacl`, just started."""
    return Running(_command, list(map(str, arguments)), cwd=cwd, **more)


def run_alone(code: str, *arguments: object, cwd: Path | None = None, without: tuple[str, ...] = ("accuacl",)) -> Ended:
    """Run Python's code, as `python -c` does, where these packages are not installed."""
    return Running(_run_alone, code, list(map(str, arguments)), without, cwd=cwd).wait()


def _run_alone(code: str, arguments: list[str], without: tuple[str, ...]) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in without:
            del sys.modules[name]
    sys.modules.update(dict.fromkeys(without))  # to import one of them is an error
    sys.argv = ["-c", *arguments]
    sys.path.insert(0, "")
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def _begin(written: list[Path], cwd: Path, environment: dict[str, str], function, arguments) -> None:
    os.setpgrp()
    for descriptor, path in enumerate(written, 1):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    try:
        function(*arguments)
    except Exception:
        sys.excepthook(*sys.exc_info())  # as the interpreter does it
        sys.exit(1)


def _command(arguments: list[str]) -> None:
    sys.argv = ["accuacl", *arguments]
    from accuacl.__main__ import main

    main()

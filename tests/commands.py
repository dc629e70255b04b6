"""The command line in this process, and small sweeps, for tests of commands."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import pytest
import yaml

from accuacl import engines
from accuacl.base.userfile import PREFIX
from accuacl.cli import main
from accuacl.cli.screen import console
from accuacl.experiments import data, learners, memory
from accuacl.strategies import REGISTRY
from pool_files import Inline
from processes import Ended

GET = engines.get
SMALL = {"benchmark": "split-digits", "tasks": 2, "labels": 8, "rounds": 2, "epochs": 1, "pool": 40}
PLUGIN = """
import numpy as np
from accuacl.strategies import Query, Selection, register

@register("last")
def last(query: Query) -> Selection:
    '''The last rows of the pool.'''
    return Selection(np.arange(len(query.pool))[::-1][: query.count], {})
"""


def accuacl(*arguments, cwd: Path | None = None, width: int = 80, workers: bool = False) -> Ended:
    """Run a command; plugins that it loads are forgotten afterwards, as if it had had a process of its own.

    workers: with processes that share its runs; otherwise they are done here too.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        forgetting(),
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["accuacl", *map(str, arguments)])
        patch.setattr(console, "_width", width)
        if not workers:
            patch.setattr(engines, "get", get_inline)
        if cwd:
            patch.chdir(cwd)
        with pytest.raises(SystemExit) as end:
            main()
    for name in [name for name in list(sys.modules) if name.startswith(PREFIX)]:
        del sys.modules[name]
    return Ended(end.value.code or 0, out.getvalue(), err.getvalue())


def get_inline(name: str, *more: object) -> object:
    """An engine; the local one works in this process."""
    return Inline() if name == "local" else GET(name, *more)


@contextlib.contextmanager
def forgetting():
    """What is registered in this block is forgotten when it ends."""
    registries = (REGISTRY, learners.REGISTRY, memory.POLICIES, data.OWN_STREAMS)
    before = [set(registry) for registry in registries]
    try:
        yield
    finally:
        for registry, names in zip(registries, before, strict=True):
            for name in set(registry) - names:
                del registry[name]


def sweep_file(folder: Path, **settings) -> Path:
    """A sweep of small runs."""
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(SMALL | settings))
    return path

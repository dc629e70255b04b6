"""Runs and projects that are killed at a chosen step or write: called in processes of their own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import accuacl.labeling.project.task_inputs
import accuacl.labeling.project.tasks
from accuacl.base import files
from accuacl.experiments import Config, Journal, run
from accuacl.labeling.project import Project
from accuacl.labeling.store.database import Transaction
from scripted import answer, blobs


def dying_at(count: int) -> Callable[[], None]:
    """Kills its process the `count`-th time that it is called."""
    left = count

    def die() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def run_until(out: Path, settings: Config, where: str = "", count: int = 0) -> None:
    """A run, killed the `count`-th time that it comes to a kind of step, or to a file; without `where` never."""
    _die_at(where, count)
    run(settings, out)


def _die_at(where: str, count: int) -> None:
    """Kill this process the `count`-th time that it comes to a kind of step, or to a file."""
    die, once, replace = dying_at(count), Journal.once, os.replace

    def meant(kind, task=None, round=None):
        return where.split()[1] in (kind, f"{task}/{round}/{kind}")

    def before(self, kind, step, *arguments, **at):
        def dies(*given):
            if meant(kind, **at):
                die()
            return step(*given)

        return once(self, kind, dies, *arguments, **at)

    def after(self, kind, step, *arguments, **at):
        new = not self.has(kind, **at)
        result = once(self, kind, step, *arguments, **at)
        if new and meant(kind, **at):
            die()
        return result

    def renames_then_dies(old, new):
        replace(old, new)
        die()

    def dies_then_renames(old, new):
        die()
        replace(old, new)

    if where.startswith("before "):
        Journal.once = before
    elif where.startswith("after "):
        Journal.once = after
    elif where == "between file and record":
        os.replace = renames_then_dies
    elif where == "file not yet in place":
        os.replace = dies_then_renames


def project_until(folder: Path, writes: int = 0, seconds: float = 0.0, where: str = "") -> None:
    """A project of two tasks, labelled and learned; killed after so many durable writes, so many seconds, or at a step
    as in `run_until`.
    """
    _die_at(where, 1)
    die = dying_at(writes)

    def counted(function):
        def wrapped(*arguments, **more):
            result = function(*arguments, **more)
            die()
            return result

        return wrapped

    if writes:
        Transaction.event = counted(Transaction.event)
        for module in (files, accuacl.labeling.project.task_inputs, accuacl.labeling.project.tasks):
            for name in ("write_bytes", "write_text", "save_arrays", "_write"):
                if hasattr(module, name):
                    setattr(module, name, counted(getattr(module, name)))
        Journal._ask = counted(Journal._ask)
    elif seconds:
        kill = lambda: (time.sleep(seconds), os.kill(os.getpid(), signal.SIGKILL))  # noqa: E731
        threading.Thread(target=kill, daemon=True).start()
    with Project.open(folder) as project:
        while True:
            if len(project.tasks.all()) < 2:
                project.add(blobs(len(project.tasks.all()))[0])
                continue
            if project.advance().finished:
                break
            if (project.state().task, project.state().round) == (0, 1):
                item = project.store.picks(0, 0)[0].item
                project.store.correct(project.store.people()[0], item, 0, "the correction")
            answer(project)

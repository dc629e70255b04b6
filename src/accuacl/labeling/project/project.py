"""A project: data that arrive as tasks, people who label them, a model that learns without forgetting.

    project = Project.create(Path("flowers"), make({"kind": "images"}), classes=["rose", "tulip"])
    project.add(read_images(Path("photos"), ignore))
    project.advance()          # choose what to label
    ...                        # people label, through project.store
    project.advance()          # learn from the labels and choose again

All of it is in one directory: `config.json` (settings), `labels.sqlite` (what people did), `tasks/` (the items and
their embeddings), `journal.sqlite` and `weights/` (what was done and learned).
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic

from accuacl.base.errors import InputError, LabelsPending, wrong_setting
from accuacl.base.files import CannotWrite, Lock, make_folder, reading, writing
from accuacl.base.progress import OnProgress
from accuacl.experiments import Journal, read_config, read_steps
from accuacl.labeling.project.erasing import FORGET_PLAN, erase_finished
from accuacl.labeling.project.estimates import Estimates, estimate
from accuacl.labeling.project.finding import find_item
from accuacl.labeling.project.images import image_type, read_inside
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.plan import PLAN, add_round, change_plan, read_plan
from accuacl.labeling.project.settings import STATISTICS, ProjectSettings
from accuacl.labeling.project.state import ProjectState, state_of
from accuacl.labeling.project.tasks import Item, NothingNew, TaskInfo, Tasks
from accuacl.labeling.project.trust import load_project_plugins, trust_code
from accuacl.labeling.store import Person, Store, clean_name

if TYPE_CHECKING:
    from accuacl.labeling.project.forgetting import ForgetReport
    from accuacl.labeling.project.people_steps import PeopleSteps
    from accuacl.labeling.project.rounds import Ahead

LABELS = "labels.sqlite"
PATIENCE = 600.0  # how many seconds a backup waits for a training to end


class Project:
    """One project's directory. Any number of processes may have it open; one at a time trains."""

    def __init__(self, directory: Path, settings: ProjectSettings, view: bool = False) -> None:
        self.directory, self._begun_with = directory, settings
        self.journal = directory / "journal.sqlite"  # the record of what was done
        self.weights = directory / "weights"  # the folder of what was learned
        self._planned = (-1, settings)  # the time of `plan.json`, and the settings with that plan
        self._copy = _copied_labels(directory) if view and not os.access(directory, os.W_OK) else None
        self.store = Store((Path(self._copy.name) if self._copy else directory) / LABELS)
        self.tasks = Tasks(directory)
        self._overlap: float | None = None  # the overlap that this process was given, which replaces the settings'
        self._begun: set[int] = set()  # tasks whose first round is known to be chosen
        self._ahead: Ahead | None = None
        self._steps: PeopleSteps | None = None  # the steps of the last `advance`

    @classmethod
    def create(cls, directory: Path, settings: ProjectSettings, classes: Sequence[str] = ()) -> Project:
        """Create a project in an empty or new directory."""
        check_free(directory)
        names = [clean_name(name, "a class") for name in classes]
        if len(set(names)) != len(names):
            raise InputError(f"the classes {', '.join(names)} are not all different; name each once.")
        trust_code(settings)  # the user has just named the file, so it is trusted
        from accuacl.labeling.project.encoders import check_model  # loads torch

        check_model(settings)
        load_project_plugins(settings)
        Journal(directory, settings).close()
        project = cls(directory, settings)
        make_folder(project.tasks.folder)
        for name in names:
            project.store.add_class(name)
        return project

    @classmethod
    def begin(
        cls, directory: Path, settings: ProjectSettings, classes: Sequence[str], *tasks: NewItems
    ) -> list[TaskInfo]:
        """Create a project with its first tasks, completely or not at all."""
        with _whole_or_not_at_all(directory) as aside, cls.create(aside, settings, classes) as project:
            return [project.add(items) for items in tasks]

    @classmethod
    def open(cls, directory: Path, view: bool = False) -> Project:
        """Open the project in a directory. view: write nothing; the directory may then be read-only."""
        path = Path(directory) / "config.json"
        if not path.exists():
            raise InputError(f"{directory} is not a project; create one with `accuacl project new`.")
        config = read_config(path, ProjectSettings)
        # If the file is lost, do not create an empty one: it would look as if nobody had labelled anything.
        if not any(file.stat().st_size for file in Path(directory).glob(f"{LABELS}*")):
            raise InputError(f"{path.with_name(LABELS)} is missing or empty; restore it from a copy.")
        try:
            project = cls(Path(directory), ProjectSettings(**config), view)
        except pydantic.ValidationError as error:
            raise InputError(f"{path} cannot be used: {wrong_setting(error)}") from None
        try:
            _check_tasks(project.tasks, project.store)
        except BaseException:
            project.close()
            raise
        return project

    def close(self) -> None:
        self.store.close()
        if self._copy:
            self._copy.cleanup()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def settings(self) -> ProjectSettings:
        """The settings that the project began with, with the changes that leads have made since."""
        path = self.directory / PLAN
        stamp = path.stat().st_mtime_ns if path.exists() else 0
        if self._planned[0] != stamp:
            self._planned = (stamp, read_plan(self.directory).applied_to(self._begun_with))
        return self._planned[1]

    @property
    def overlap(self) -> float:
        """The share of each round opened from now on that two people label."""
        return self.settings.overlap if self._overlap is None else self._overlap

    @overlap.setter
    def overlap(self, share: float) -> None:
        self._overlap = share

    def add(self, items: NewItems) -> TaskInfo:
        """Add the next task, at any time; it begins when the ones before are done."""
        if items.kind != self.settings.kind:
            raise InputError(f"this project labels {self.settings.kind}, not {items.kind}; start another for those.")
        return self.tasks.add(items)

    def add_each(self, several: Sequence[NewItems]) -> list[tuple[TaskInfo, NewItems]]:
        """Add a task for each of these, unless nothing in it is new; raise InputError if nothing in any is new."""
        added: list[tuple[TaskInfo, NewItems]] = []
        for items in several:
            try:
                added.append((self.add(items), items))
            except NothingNew:
                if items is several[-1] and not added:
                    raise
        return added

    def item(self, id: int) -> Item:
        """Return what people see of an item."""
        return self.tasks.item(id)

    def image_bytes(self, id: int) -> tuple[bytes, str]:
        """Return an image's bytes and MIME type; refuse files outside the task's folder and decompression bombs."""
        data = self._read(id, "image")
        return data, image_type(data)

    def file_bytes(self, id: int) -> bytes:
        """Return the bytes of an item's file, in a project of files; refuse files outside the task's folder."""
        return self._read(id, "file")

    def _read(self, id: int, kind: str) -> bytes:
        task, item = self.tasks.find(id), self.tasks.item(id)
        if item.kind != kind:
            raise InputError(f"item {id} is a {item.kind}, not {'an image' if kind == 'image' else 'a file'}.")
        return read_inside(Path(task.place), item.name)

    def image_stamp(self, id: int) -> tuple[int, ...]:
        """Return a value that changes when an image's file does."""
        path = Path(self.tasks.find(id).place) / self.tasks.item(id).name
        with reading(path):
            state = path.stat()
        return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)

    def advance(self, progress: OnProgress | None = None, ahead: bool = False) -> ProjectState:
        """Do what can be done now: close a complete round, train, choose a batch. Raise Busy if another process trains.

        ahead: then choose the batch after that one, while people label, for the next call in this process.
        """
        self._steps = None
        self.give_out_first()
        import torch  # slow to load, and needed only here

        from accuacl.experiments import all_tasks
        from accuacl.labeling.project.forgetting import finish_forgetting
        from accuacl.labeling.project.people_steps import PeopleSteps
        from accuacl.labeling.project.rounds import Ahead

        with self.open_journal() as journal:
            if other := journal.environment_change:
                warnings.warn(
                    f"this project was begun with {other}: what it learns may differ in the last bits.", stacklevel=2
                )
            torch.set_num_threads(self.settings.threads)
            finish_forgetting(self, journal)
            if ahead:
                self._ahead = self._ahead or Ahead()
            steps = PeopleSteps(self, journal, progress, self._ahead)
            with contextlib.suppress(LabelsPending):
                all_tasks(steps, journal)
            steps.finish_preparing()  # people already label the first round meanwhile
            steps.choose_ahead()
            self._steps = steps if self._ahead else None
            if self.settings.keep == STATISTICS:
                erase_finished(self.tasks, self.journal)
        return self.state()

    def choose_ahead(self) -> None:
        """After `advance(ahead=True)`, choose ahead again if people have skipped something since; record nothing."""
        if self._steps is not None:
            self._steps.choose_ahead()

    def give_out_first(self) -> None:
        """If a task begins now, let people have its first items before anything slow is done."""
        status, tasks = self.store.status(), self.tasks.all()
        begins = 0 if status is None else status.task + 1
        if begins == len(tasks) or (self.directory / FORGET_PLAN).exists():
            return
        if status is None or (not status.open and self.finished(status.task)):
            from accuacl.labeling.project.rounds import give_out_first

            give_out_first(self.settings, self.tasks, self.store, tasks[begins], self.overlap)

    def forget(self, given: Sequence[str], column: str = "text", progress: OnProgress | None = None) -> ForgetReport:
        """Remove items, given as for `find_item`, their labels and what was learned from them; return a report.

        column: the column of texts, needed if an item must be read again from the file that it came from.
        """
        from accuacl.labeling.project.forgetting import finish_forgetting, plan_forgetting, report_forgetting

        ids = sorted({find_item(self.tasks, name) for name in given})
        items = [self.item(id) for id in ids]
        with self.open_journal() as journal:
            finish_forgetting(self, journal)  # an earlier call may have been killed
            off, as_before = plan_forgetting(self, ids, column)
            finish_forgetting(self, journal)
        self.advance(progress)
        return report_forgetting(self, items, off, as_before)

    def state(self) -> ProjectState:
        """Return the project's state, without waiting for a process that trains."""
        return state_of(self)

    def rounds(self, task: int) -> int:
        """Return how many rounds a task has; where that is not fixed, how many it has had so far."""
        return self.settings.rounds_of(task) or self.store.rounds(task)

    def chosen(self, task: int, round: int) -> bool:
        """Return whether all picks of a round are chosen; people get the first ones of a task before that."""
        if round == 0 and task not in self._begun and read_steps(self.journal, "query", task=task):
            self._begun.add(task)
        return round > 0 or task in self._begun

    def enough(self, person: Person) -> None:
        """Let the open round be closed with the answers that it has."""
        status = self.store.status()
        if status is not None and status.open and not self.chosen(status.task, status.round):
            raise InputError("the rest of this round is still being chosen; close it when it is complete.")
        self.store.enough(person)

    def end_task(self, person: Person, task: int) -> None:
        """End the task that is being labelled with the labels that it has, so that the next one can begin."""
        state = self.state()
        if state.finished or state.task != task:
            raise InputError(f"task {task + 1} is not the one that is being labelled; reload the page.")
        self.store.end_task(person, task)

    def change(self, **given: float | None) -> None:
        """Change the plan for what comes: the overlap of the next rounds, the holdout of the next tasks, and so on."""
        with self._adding():
            change_plan(self, given)
        self._overlap = self._overlap if given.get("overlap") is None else None

    def one_more_round(self, task: int) -> None:
        """Add one more round to the latest task, even if it is finished."""
        with self._adding():
            add_round(self, task)

    @contextlib.contextmanager
    def _adding(self) -> Iterator[None]:
        """Hold a lock, so that within the block nobody else adds data or changes the plan."""
        make_folder(self.tasks.folder)
        with Lock(self.tasks.folder / "lock", wait=True):
            yield

    def open_journal(self) -> Journal:
        """Open the journal for writing; raise Busy if another process has it open."""
        load_project_plugins(self._begun_with)
        return Journal(self.directory, self._begun_with)

    def backup(self, to: Path) -> None:
        """Copy the project to a new directory while people continue to label; waits for a training process."""
        if self.directory.resolve() in to.resolve().parents:
            raise InputError(f"{to} is inside the project; copy it to another place.")
        busy = f"another process (id {{holder}}) is training {self.directory}; try again when it is done."
        left_out = shutil.ignore_patterns("lock", f"{LABELS}*", ".new-*", ".adding-*", "*.part")
        training = Lock(self.directory / "lock", busy, patience=PATIENCE)
        with _whole_or_not_at_all(to) as aside, training, self._adding(), writing(to):
            shutil.copytree(self.directory, aside, ignore=left_out)
            self.store.backup(aside / LABELS)

    def finished(self, task: int) -> bool:
        """Return whether a task has been learned to its end."""
        return bool(read_steps(self.journal, "evaluate", task=task))

    def estimates(self) -> Estimates:
        """Return accuracy and forgetting by held-out labels, the confusion matrix, and counts by class and person."""
        return estimate(self.store, self.journal, self.tasks)


# A project's directory: created completely or not at all, and checked for missing files


def check_free(directory: Path) -> None:
    """Raise InputError if the directory holds anything."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; choose a directory for the project.")
    with reading(directory):
        empty = not directory.exists() or not any(directory.iterdir())
    if all((directory / name).exists() for name in ("config.json", LABELS)):
        typed = shlex.quote(str(directory))
        raise InputError(
            f"{directory} is already a project; add data with `accuacl project add {typed}`, label with "
            f"`accuacl project serve {typed}`, or choose another directory."
        )
    if not empty:
        raise InputError(f"{directory} is not empty; choose another directory for the project.")


@contextlib.contextmanager
def _whole_or_not_at_all(directory: Path) -> Iterator[Path]:
    """Make a directory beside this one; if nothing fails, it replaces this one, otherwise it is removed."""
    check_free(directory)
    directory = directory.resolve()
    make_folder(directory.parent)
    aside = directory.parent / f".{directory.name}.new-{secrets.token_hex(4)}"
    try:
        yield aside
        check_free(directory)
        with writing(directory):
            os.rename(aside, directory)
    except CannotWrite as error:
        raise error.at(directory) if error.path.is_relative_to(aside) else error from error.__cause__
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _check_tasks(tasks: Tasks, store: Store) -> None:
    """Refuse a project that has lost tasks, or their whole folder."""
    status, count = store.status(), len(tasks.all())
    if not tasks.folder.is_dir() and (status or not store.people()):  # projects of accuacl 0.2 may lack it
        raise InputError(f"{tasks.folder} is missing; restore it from a copy.")
    if status and status.task >= count:
        raise InputError(f"{tasks.folder_of(count) / 'task.json'} is missing; restore it from a copy.")


def _copied_labels(directory: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a copy of the label store, because SQLite needs to write next to a file even to read it."""
    folder = tempfile.TemporaryDirectory()
    with reading(directory / LABELS):
        for path in directory.glob(f"{LABELS}*"):
            shutil.copyfile(path, Path(folder.name) / path.name)
    return folder


def load_learning() -> None:
    """Import torch and everything else that learning needs, which takes a second or two the first time.

    The garbage collector would stop all threads again and again meanwhile, a tenth of a second each time, to search the
    loaded modules. These are never freed, so the collector ignores them from now on.
    """
    if "torch" in sys.modules and "accuacl.labeling.project.people_steps" in sys.modules:
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        import accuacl.labeling.project.people_steps  # noqa: F401
    finally:
        if collects:
            gc.enable()
    gc.freeze()

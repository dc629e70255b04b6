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
import os
import secrets
import shlex
import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic

from accuacl.base.errors import InputError, LabelsPending, wrong_setting
from accuacl.base.files import CannotWrite, make_folder, reading, writing
from accuacl.base.progress import OnProgress
from accuacl.experiments import Journal, read_config, read_steps, settings_before
from accuacl.labeling.project import settings as trust
from accuacl.labeling.project.budget import tell
from accuacl.labeling.project.erasing import erase_finished, find_item
from accuacl.labeling.project.estimates import Estimates, estimate, last_predictions, learning_curve
from accuacl.labeling.project.forgetting import PLAN
from accuacl.labeling.project.images import image_type, read_inside
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.settings import STATISTICS, ProjectSettings
from accuacl.labeling.project.state import ProjectState, state_of
from accuacl.labeling.project.stopping import Measured
from accuacl.labeling.project.tasks import Item, NothingNew, TaskInfo, Tasks
from accuacl.labeling.store import Person, Store, clean_name

if TYPE_CHECKING:
    from accuacl.labeling.project.forgetting import Forgetting, Forgot
    from accuacl.labeling.project.pool_map import PoolMap
    from accuacl.labeling.project.uploads import Uploads


class Project:
    """One project's directory. Any number of processes may have it open; one at a time trains."""

    def __init__(self, directory: Path, settings: ProjectSettings) -> None:
        self.directory, self.settings = directory, settings
        self.store = Store(directory / "labels.sqlite")
        self.tasks = Tasks(directory)
        self.overlap = settings.overlap  # of the rounds that are opened from now on
        self._begun: set[int] = set()  # tasks whose first round is known to be chosen

    @classmethod
    def create(cls, directory: Path, settings: ProjectSettings, classes: Sequence[str] = ()) -> Project:
        """A new project in an empty or new directory."""
        check_empty(directory)
        names = [clean_name(name, "a class") for name in classes]
        if len(set(names)) != len(names):
            raise InputError(f"the classes {', '.join(names)} are not all different; name each once.")
        trust.trust(settings)  # the user has named the file just now
        from accuacl.labeling.project.backbones import check_model  # loads torch

        check_model(settings)
        _journal(directory, settings).close()
        project = cls(directory, settings)
        for name in names:
            project.store.add_class(name)
        return project

    @classmethod
    def begin(
        cls, directory: Path, settings: ProjectSettings, classes: Sequence[str], *tasks: NewItems
    ) -> list[TaskInfo]:
        """A new project with its first tasks; the directory has it as a whole or not at all."""
        with whole_or_not_at_all(directory) as aside, cls.create(aside, settings, classes) as project:
            return [project.add(items) for items in tasks]

    @classmethod
    def open(cls, directory: Path) -> Project:
        """The project in a directory."""
        path = Path(directory) / "config.json"
        if not path.exists():
            raise InputError(f"{directory} holds no project; make one with `accuacl project new`.")
        config = read_config(path, ProjectSettings.model_fields, settings_before(ProjectSettings))
        try:
            return cls(Path(directory), ProjectSettings(**config))
        except pydantic.ValidationError as error:
            raise InputError(f"{path} cannot be used: {wrong_setting(error)}") from None

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def journal(self) -> Path:
        """The record of what was done."""
        return self.directory / "journal.sqlite"

    def add(self, items: NewItems) -> TaskInfo:
        """Add the next task, at any time; it begins when the ones before are done."""
        if items.kind != self.settings.kind:
            raise InputError(f"this project labels {self.settings.kind}, not {items.kind}; start another for those.")
        return self.tasks.add(items)

    def add_each(self, several: Sequence[NewItems]) -> list[tuple[TaskInfo, NewItems]]:
        """Add a task for each of these, without those in which nothing is new; InputError if that is all of them."""
        added: list[tuple[TaskInfo, NewItems]] = []
        for i, items in enumerate(several):
            try:
                added.append((self.add(items), items))
            except NothingNew:
                if i + 1 == len(several) and not added:
                    raise
        return added

    def end_task(self, person: Person, task: int) -> None:
        """End the task that is being labelled with the labels that it has, so that the next one can begin."""
        state = self.state()
        if state.finished or state.task != task:
            raise InputError(f"task {task + 1} is not the one that is being labelled; load the page again.")
        self.store.end_task(person, task)

    def trust_code(self) -> None:
        """Let the Python file of the project's own model run, now and later."""
        trust.trust(self.settings)

    def check_code(self) -> None:
        """InputError: the project's own model is a Python file that the user has not trusted."""
        trust.check(self.settings)

    def item(self, id: int) -> Item:
        """What people see of an item."""
        return self.tasks.item(id)

    def image_bytes(self, id: int) -> tuple[bytes, str]:
        """An image's file and its MIME type. Files outside the task's folder and decompression bombs are refused."""
        task, item = self.tasks.find(id), self.tasks.item(id)
        if item.kind != "image":
            raise InputError(f"item {id} is a {item.kind}, not an image.")
        data = read_inside(Path(task.place), item.name)
        return data, image_type(data)

    def image_stamp(self, id: int) -> tuple[int, ...]:
        """What changes when an image's file does."""
        path = self.tasks.item(id).path
        if path is None:
            raise InputError(f"item {id} is not an image.")
        with reading(path):
            state = path.stat()
        return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)

    def advance(self, progress: OnProgress | None = None) -> ProjectState:
        """Do what can be done now: close a complete round, train, choose the next batch. Busy: another process does."""
        self.give_out_first()
        import torch  # slow to load, and needed only here

        from accuacl.experiments import all_tasks, difference, environment
        from accuacl.labeling.project.people_steps import PeopleSteps

        config = self.settings.as_config()
        with _journal(self.directory, self.settings) as journal:
            if other := difference(journal.environment, environment(config)):
                warnings.warn(
                    f"this project was begun with {other}: what it learns may differ in the last bits.",
                    stacklevel=2,
                )
            torch.set_num_threads(self.settings.threads)
            self._forgetting().finish(journal)
            weights = self.directory / "weights"
            steps = PeopleSteps(self.settings, weights, self.tasks, self.store, journal, self.overlap, progress)
            with contextlib.suppress(LabelsPending):
                all_tasks(steps, journal)
            if self.settings.keep == STATISTICS:
                erase_finished(self.tasks, self.journal)
        return self.state()

    def give_out_first(self) -> None:
        """If a task begins now, let people have its first items before anything slow is done."""
        status, tasks = self.store.status(), self.tasks.all()
        begins = 0 if status is None else status.task + 1
        if begins == len(tasks) or (self.directory / PLAN).exists():
            return
        if begins == 0 or (status is not None and not status.open and self._finished(status.task)):
            from accuacl.labeling.project.first_round import give_out_first

            give_out_first(self.settings, self.tasks, self.store, tasks[begins], self.overlap)

    def forget(self, given: Sequence[str], column: str = "text", progress: OnProgress | None = None) -> Forgot:
        """Remove items, by name or number (`find_item`), with their labels and what was learned from them; the proof.

        column: that of texts, where an item must be read again from the file that it came from.
        """
        items, work = sorted({find_item(self.tasks, name) for name in given}), self._forgetting(column)
        gone = [self.item(item) for item in items]
        with _journal(self.directory, self.settings) as journal:
            work.finish(journal)  # what an earlier call may have left
            planned = work.plan(items)
            work.finish(journal)
        self.advance(progress)
        return work.proof(gone, planned)

    def _forgetting(self, column: str = "text") -> Forgetting:
        from accuacl.labeling.project.forgetting import Forgetting  # loads torch

        return Forgetting(self.directory, self.settings, self.tasks, self.store, column)

    def state(self) -> ProjectState:
        """What the project is waiting for; never waits for a process that is training."""
        return state_of(self.settings, self.tasks.all(), self.store, self.chosen, self._finished)

    def rounds(self, task: int) -> int:
        """How many rounds a task has, or has had so far where that is not fixed."""
        return self.store.rounds(task) if self.settings.budget_total else self.settings.rounds

    def sample_text(self) -> str:
        """What is said of the latest choice, if it looked at a sample of a large pool."""
        for step in reversed(read_steps(self.journal, "query")):
            if "sample" in step.result:
                seen, whole = step.result["sample"], step.result["pool"]
                assert step.task is not None  # every query has a task and a round
                assert step.round is not None
                where = f"task {step.task + 1}, round {step.round + 1}"
                return f"{where}: chosen from {seen} of the {whole} items left, drawn at random (--sample)."
            if step.result["ids"]:
                break
        return ""

    def budget_text(self, state: ProjectState) -> list[str]:
        """How much of the budget of the whole project is used, and where the next labels help most; [] without one."""
        if not self.settings.budget_total:
            return []
        counts = [task.count for task in self.tasks.all()]
        return tell(self.settings, self.store, self.journal, counts, state.finished)

    def chosen(self, task: int, round: int) -> bool:
        """Whether all picks of a round are there: people get the first of a task before the others are chosen."""
        if round == 0 and task not in self._begun and read_steps(self.journal, "query", task=task):
            self._begun.add(task)
        return round > 0 or task in self._begun

    def enough(self, person: Person) -> None:
        """Let the open round be closed with the answers that it has."""
        status = self.store.status()
        if status is not None and status.open and not self.chosen(status.task, status.round):
            raise InputError("the rest of this round is still being chosen; close it when it is there.")
        self.store.enough(person)

    def _finished(self, task: int) -> bool:
        return bool(read_steps(self.journal, "evaluate", task=task))

    def estimates(self) -> Estimates:
        """Accuracy and forgetting from held-out labels, the confusion matrix, and labels by class and person."""
        return estimate(self.store, self.journal)

    def learning_curve(self, estimates: Estimates) -> list[Measured]:
        """Labels of the latest task that was tested, and how many of its held-out items were right, by round."""
        return learning_curve(self.journal, estimates.history[-1].task, estimates.history) if estimates.history else []

    def pool_map(self) -> PoolMap:
        """Where items lie in two dimensions."""
        from accuacl.labeling.project.pool_map import PoolMap

        return PoolMap(self.tasks, self.settings)

    def uploads(self) -> Uploads:
        """Where files go that are sent through the page."""
        from accuacl.labeling.project.uploads import Uploads

        return Uploads(self)

    def held_out_predictions(self) -> dict[int, int]:
        """What the model says of each held-out item after its last training: a class."""
        return last_predictions(self.journal)


def _journal(directory: Path, settings: ProjectSettings) -> Journal:
    from accuacl.experiments import environment  # loads torch

    config, now = settings.model_dump(mode="json"), environment(settings.as_config())
    return Journal(directory, config, now, before=settings_before(type(settings)))


def check_empty(directory: Path) -> None:
    """InputError: something is there already."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; choose a directory for the project.")
    with reading(directory):
        empty = not directory.exists() or not any(directory.iterdir())
    if all((directory / name).exists() for name in ("config.json", "labels.sqlite")):
        typed = shlex.quote(str(directory))
        raise InputError(
            f"{directory} is a project already; add data with `accuacl project add {typed}`, label with "
            f"`accuacl project serve {typed}`, or choose another directory."
        )
    if not empty:
        raise InputError(f"{directory} is not empty; choose another directory for the project.")


@contextlib.contextmanager
def whole_or_not_at_all(directory: Path) -> Iterator[Path]:
    """A directory beside this one, which takes its place if nothing fails and vanishes otherwise."""
    check_empty(directory)
    directory = directory.resolve()
    make_folder(directory.parent)
    aside = directory.parent / f".{directory.name}.new-{secrets.token_hex(4)}"
    try:
        yield aside
        check_empty(directory)
        with writing(directory):
            os.rename(aside, directory)
    except CannotWrite as error:
        raise error.at(directory) if error.path.is_relative_to(aside) else error from error.__cause__
    finally:
        shutil.rmtree(aside, ignore_errors=True)

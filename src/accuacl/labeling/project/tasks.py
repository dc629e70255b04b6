"""The tasks of a project: what there is to label, in order of arrival. A task is written once and never changed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, sync_folder, write_bytes, write_text
from accuacl.labeling.project.new_items import NewItems

KINDS = {"images": "image", "texts": "text", "vectors": "vector"}


@dataclass(frozen=True)
class TaskInfo:
    """A task's items are numbered from `first`, over all tasks. bad: files that were left out, and why."""

    index: int
    kind: str
    place: str
    first: int
    count: int
    bad: dict[str, str]
    sha256: str  # of the list of items
    columns: list[str] | None = None  # that vectors were taken from; unset: from one column of them

    @property
    def ids(self) -> NDArray[np.int64]:
        return np.arange(self.first, self.first + self.count)


@dataclass(frozen=True)
class Item:
    """Something to label. kind: image, text or vector; path is that of an image; fields are what a vector shows."""

    id: int
    task: int
    kind: str
    name: str
    path: Path | None = None
    text: str | None = None
    fields: tuple[tuple[str, Any], ...] = ()


class Tasks:
    """What is in the project's folder `tasks`."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "tasks"
        self._known: list[TaskInfo] = []  # they never change, so what was read once is known

    def all(self) -> list[TaskInfo]:
        """All tasks so far."""
        known = list(self._known)
        while (path := self.folder_of(len(known)) / "task.json").exists():
            known.append(TaskInfo(**json.loads(path.read_text(encoding="utf-8"))))
        self._known = known
        return known

    def folder_of(self, index: int) -> Path:
        """The folder of a task."""
        return self.folder / f"{index:03}"

    def add(self, source: NewItems) -> TaskInfo:
        """Make a task of the source: it is there as a whole or not at all, and to stay. Known images are left out."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            for left in self.folder.glob(".adding-*"):  # by someone who was killed
                shutil.rmtree(left)
            before = self.all()
            if source.kind == "images":
                known = {name for t in before if t.place == source.place for name in self.table(t.index)["name"]}
                source = source.only([i for i, name in enumerate(source.names) if name not in known])
            if source.vectors is not None and before:
                source = self.as_first(source)
            if not source.names:
                left_out = f"; {len(source.bad)} could not be read" if source.bad else ""
                raise InputError(f"{source.place} has nothing new to label{left_out}; give other data.")
            aside = self.folder / f".adding-{secrets.token_hex(4)}"
            aside.mkdir()
            try:
                task = _write(aside, source, len(before), before[-1].first + before[-1].count if before else 0)
                os.rename(aside, self.folder_of(task.index))
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            sync_folder(self.folder)
        return task

    def as_first(self, source: NewItems) -> NewItems:
        """Vectors as the first task's: the same columns in the same order."""
        width = np.load(self.folder_of(0) / "vectors.npy", mmap_mode="r", allow_pickle=False).shape[1]
        return source.like(self.all()[0].columns, width)

    def find(self, id: int) -> TaskInfo:
        """The task that an item belongs to."""
        for task in self.all():
            if task.first <= id < task.first + task.count:
                return task
        raise InputError(f"there is no item {id}.")

    def item(self, id: int) -> Item:
        """One item, with what people see of it."""
        task = self.find(id)
        table, row = self.table(task.index), id - task.first
        name = table["name"][row]
        item = functools.partial(Item, id, task.index, KINDS[task.kind], name)
        if task.kind == "images":
            return item(path=Path(task.place) / name)
        if task.kind == "texts":
            return item(text=table["text"][row])
        return item(fields=(("id", name), *json.loads(table["shown"][row] or "{}").items()))

    @functools.lru_cache(maxsize=256)  # noqa: B019 - one such object a process
    def table(self, index: int) -> dict[str, list[Any]]:
        """The columns of a task's list of items."""
        import pyarrow.parquet as pq

        task = self.all()[index]
        data = (self.folder_of(index) / "items.parquet").read_bytes()
        if hashlib.sha256(data).hexdigest() != task.sha256:
            raise InputError(f"{self.folder_of(index) / 'items.parquet'} is damaged; restore it from a copy.")
        return dict(pq.read_table(io.BytesIO(data)).to_pydict())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes that add at once come one after the other; training meanwhile goes on."""
        with Lock(self.folder / "lock", wait=True):
            yield


def _write(folder: Path, source: NewItems, index: int, first: int) -> TaskInfo:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = {"name": source.names}
    if source.texts is not None:
        columns["text"] = source.texts
    if source.kind == "vectors":
        columns["shown"] = [json.dumps(row, default=str) for row in source.shown or [{}] * len(source.names)]
    if source.vectors is not None:
        buffer = io.BytesIO()
        np.save(buffer, source.vectors)
        write_bytes(folder / "vectors.npy", buffer.getvalue())
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    write_bytes(folder / "items.parquet", sink.getvalue())
    digest = hashlib.sha256(sink.getvalue()).hexdigest()
    task = TaskInfo(index, source.kind, source.place, first, len(source.names), source.bad, digest, source.columns)
    write_text(folder / "task.json", json.dumps(asdict(task), indent=1) + "\n")
    return task

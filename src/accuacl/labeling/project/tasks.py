"""Items that a project was asked to forget are not taken in again: it knows them by salted hashes alone."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import secrets
import shutil
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, make_folder, reading, sync_folder, write_bytes, write_text, writing
from accuacl.labeling.project import places
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.table_encoder import TableSchema

FILE = "forgotten.json"  # in the folder `tasks`


def suppress(folder: Path, items: Iterable[str]) -> None:
    """Remember the hashes of these items, as `images` or `texts` call them. folder: the project's `tasks`."""
    known = _read(folder) or {"salt": secrets.token_hex(16), "hashes": []}
    hashes = sorted(set(known["hashes"]) | {_hash(known["salt"], item) for item in items})
    if hashes != known["hashes"]:
        write_text(folder / FILE, json.dumps(known | {"hashes": hashes}) + "\n")


def suppressed(folder: Path, items: list[str]) -> list[bool]:
    """Which of these were forgotten."""
    known = _read(folder)
    if known is None:
        return [False] * len(items)
    hashes = set(known["hashes"])
    return [_hash(known["salt"], item) in hashes for item in items]


def identities(kind: str, place: str, names: list[str], texts: list[str] | None) -> list[str]:
    """What an item is known by when it is added again: an image by its path, a text by its name and itself."""
    if kind == "texts":
        return [json.dumps(pair) for pair in zip(names, texts or (), strict=True)]
    return [os.path.join(place, name) for name in names]


def _hash(salt: str, item: str) -> str:
    return hashlib.sha256(f"{salt}\0{item}".encode("utf-8", "surrogatepass")).hexdigest()


def _read(folder: Path) -> dict[str, Any] | None:
    path = folder / FILE
    if not path.exists():
        return None
    with reading(path):
        return dict(json.loads(path.read_text()))


ERASED = "erased.json"  # which rows of a task have been erased, and what the list of items is since then
KINDS = {"images": "image", "texts": "text", "vectors": "vector", "tables": "record"}


class NothingNew(InputError):
    """The project has all of the data already, or nothing of them can be read."""


@dataclass(frozen=True)
class TaskInfo:
    """A task. Items are numbered over all tasks, this one's from `first`. bad: files that were left out, and why."""

    index: int
    kind: str
    place: str  # the folder or file that its items come from
    first: int
    count: int
    bad: dict[str, str]
    sha256: str  # of the list of items
    columns: list[str] | None = None  # the columns of numbers that make up a vector; None: one column of lists

    @property
    def ids(self) -> NDArray[np.int64]:
        return np.arange(self.first, self.first + self.count)


@dataclass(frozen=True)
class Item:
    """Something to label. kind: image (at `path`), text, or vector or record, of which people see the `fields`."""

    id: int
    task: int
    kind: str
    name: str
    path: Path | None = None
    text: str | None = None
    fields: tuple[tuple[str, Any], ...] = ()


class Tasks:
    """The project's folder `tasks`."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "tasks"
        self._known: tuple[int, list[TaskInfo]] = (0, [])  # tasks never change, so each is read once for each stamp

    def all(self) -> list[TaskInfo]:
        """All tasks so far."""
        stamp = _stamp(self.folder / places.FILE)
        known = list(self._known[1]) if self._known[0] == stamp else []
        while (path := self.folder_of(len(known)) / "task.json").exists():
            with reading(path):
                task = TaskInfo(**json.loads(path.read_text(encoding="utf-8")))
            place = places.moved_places(self.folder).get(task.index, task.place)
            known.append(replace(task, place=places.find(place, self.folder.parent)))
        self._known = (stamp, known)
        return known

    def folder_of(self, index: int) -> Path:
        """The folder of a task."""
        return self.folder / f"{index:03}"

    def add(self, items: NewItems) -> TaskInfo:
        """Make the items the next task, as a whole or not at all. Images and texts of earlier tasks are left out."""
        make_folder(self.folder)
        with Lock(self.folder / "lock", wait=True), writing(self.folder):  # one process adds at a time
            for leftover in self.folder.glob(".adding-*"):  # of a process that was killed
                shutil.rmtree(leftover)
            before = self.all()
            if items.kind == "images" and not items.names and not items.bad:
                raise NothingNew(items.none_to_label())
            if items.kind == "images":
                known = {os.path.join(t.place, name) for t in before for name in self.table(t.index)["name"]}
                new = [i for i, name in enumerate(items.names) if os.path.join(items.place, name) not in known]
                items = items.only(new)
            if items.kind == "texts":
                tables = [self.table(task.index) for task in before]
                old = {pair for table in tables for pair in zip(table["name"], table["text"], strict=True)}
                pairs = zip(items.names, items.texts or (), strict=True)
                items = items.only([i for i, pair in enumerate(pairs) if pair not in old])
            items, gone = self._not_forgotten(items)
            if items.kind in ("vectors", "tables") and before:
                items = self.as_first(items)
            if not items.names:
                left_out = f"; {len(items.bad)} could not be read" if items.bad else ""
                left_out += f"; {gone} were forgotten, and are not taken in again" if gone else ""
                raise NothingNew(f"{items.place} has nothing new to label{left_out}; give other data.")
            aside = self.folder / f".adding-{secrets.token_hex(4)}"
            aside.mkdir()
            try:
                kept = replace(items, place=places.to_write(items.place, self.folder.parent))
                _write(aside, kept, len(before), before[-1].first + before[-1].count if before else 0)
                os.rename(aside, self.folder_of(len(before)))
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            sync_folder(self.folder)
        return self.all()[len(before)]

    def _not_forgotten(self, items: NewItems) -> tuple[NewItems, int]:
        """The items without those that the project was asked to forget, and how many these are."""
        if items.kind not in ("images", "texts"):  # of which others that the project has are not left out either
            return items, 0
        gone = suppressed(self.folder, identities(items.kind, items.place, items.names, items.texts))
        kept = items.only([i for i, forgotten in enumerate(gone) if not forgotten])
        if any(gone) and kept.names:
            warnings.warn(f"left out, since this project was asked to forget them: {sum(gone)}", stacklevel=3)
        return kept, sum(gone)

    def as_first(self, items: NewItems) -> NewItems:
        """Vectors or records with the columns of the first task, in the same order."""
        if items.kind == "tables":
            return self.schema().like(items)
        return items.like(self.all()[0].columns, self.width())

    def width(self) -> int:
        """How many numbers a vector of the project has."""
        path = self.folder_of(0) / "vectors.npy"
        with reading(path):
            return int(np.load(path, mmap_mode="r", allow_pickle=False).shape[1])

    @functools.lru_cache(maxsize=1)  # noqa: B019 - one such object a process
    def schema(self) -> TableSchema:
        """What the columns of a project's tables are."""
        return TableSchema.load(self.folder_of(0))

    def rows(self, index: int, part: slice) -> list[dict[str, Any]]:
        """Rows of a task's table; {} where they have been erased."""
        return [json.loads(row) for row in self.table(index)["shown"][part]]

    def find(self, id: int) -> TaskInfo:
        """The task that an item belongs to."""
        for task in self.all():
            if task.first <= id < task.first + task.count:
                return task
        raise InputError(f"there is no item {id}; give one of a task.")

    def item(self, id: int) -> Item:
        """An item, with what people see of it."""
        task = self.find(id)
        table, row = self.table(task.index), id - task.first
        name = table["name"][row]
        item = functools.partial(Item, id, task.index, KINDS[task.kind], name)
        if task.kind == "images":
            return item(path=Path(task.place) / name)
        if task.kind == "texts":
            return item(text=table["text"][row] or "(erased)")
        title = (self.schema().options.id or "row") if task.kind == "tables" else "id"
        return item(fields=((title, name), *json.loads(table["shown"][row] or "{}").items()))

    @functools.lru_cache(maxsize=256)  # noqa: B019 - one such object a process
    def table(self, index: int) -> dict[str, list[Any]]:
        """The list of a task's items, as columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        task = self.all()[index]
        path = self.folder_of(index) / "items.parquet"
        with reading(path):
            data = path.read_bytes()
        erased = self.folder_of(index) / ERASED
        with reading(erased):
            now = json.loads(erased.read_text())["sha256"] if erased.exists() else task.sha256
        if hashlib.sha256(data).hexdigest() not in (task.sha256, now):
            raise InputError(f"{path} is damaged; restore it from a copy.")
        # Not pq.read_table: its threads may outlive it, and a process that ends meanwhile is aborted.
        return dict(pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pydict())


def _stamp(path: Path) -> int:
    """What changes when a file does; 0 if there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _write(folder: Path, items: NewItems, index: int, first: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = {"name": items.names}
    if items.texts is not None:
        columns["text"] = items.texts
    if items.kind in ("vectors", "tables"):
        columns["shown"] = [json.dumps(row, default=str) for row in items.shown or [{}] * len(items.names)]
    if items.labels is not None:
        columns["label"] = items.labels
    if items.kind == "tables" and index == 0:
        TableSchema.of(items).save(folder)
    if items.vectors is not None:
        buffer = io.BytesIO()
        np.save(buffer, items.vectors)
        write_bytes(folder / "vectors.npy", buffer.getvalue())
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    write_bytes(folder / "items.parquet", sink.getvalue())
    digest = hashlib.sha256(sink.getvalue()).hexdigest()
    task = TaskInfo(index, items.kind, items.place, first, len(items.names), items.bad, digest, items.columns)
    write_text(folder / "task.json", json.dumps(asdict(task), indent=1) + "\n")

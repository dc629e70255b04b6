"""What leads bring in: data for the next task, sent or from a folder of the server; files of labels and of gold.

A place on the server is written as the name of a folder that was named at its start and names below it, such as
`photos/spring`. No path from a request touches the disk before it has been checked, and links that lead out are not
followed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import anyio
import fastapi
from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field

from accuacl.base.errors import InputError
from accuacl.base.files import reading
from accuacl.labeling.project import (
    LARGEST_UPLOAD,
    UPLOADED,
    DataColumns,
    Preview,
    TableOptions,
    TaskInfo,
    add_data,
    add_gold,
    check_parquet,
    preview,
    take_label_file,
)
from accuacl.labeling.web.session import Lead
from accuacl.labeling.web.site import Here, Site, View

router = APIRouter()
UploadId = Annotated[str, fastapi.Path(pattern=r"^[0-9a-f]{32}$")]
ColumnName = Annotated[str, Field(max_length=200)]
FileName = Annotated[str, Query(min_length=1, max_length=300)]
Place = Annotated[str, Field(max_length=1000)]
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")  # files of labels
REFUSED_SHOWN = 20
LISTED = 500  # entries of a folder that are listed


class Places:
    """The folders that were named with --data."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._roots: dict[str, Path] = {}
        for folder in folders:
            with reading(folder):
                root = folder.resolve()
                if not root.is_dir():
                    raise InputError(f"--data {folder} is not a folder; give one that holds data for projects.")
            name = root.name or "data"
            self._roots[name if name not in self._roots else f"{name}-{len(self._roots) + 1}"] = root

    def __bool__(self) -> bool:
        return bool(self._roots)

    def resolve(self, place: str) -> Path:
        """The folder or file of a place; InputError if it is not there, or not inside one of the named folders.

        >>> Places().resolve("../etc")
        Traceback (most recent call last):
        accuacl.base.errors.InputError: this server has no such folder or file; choose one from the list.
        """
        missing = InputError("this server has no such folder or file; choose one from the list.")
        first, *rest = place.split("/")
        root = self._roots.get(first)
        if root is None or not all(map(_is_plain, rest)):
            raise missing
        try:
            path = root.joinpath(*rest).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):  # not there, a loop of links, or a strange character
            raise missing from None
        if not path.is_relative_to(root):
            raise missing
        return path

    def list(self, place: str, suffixes: Sequence[str]) -> View:
        """What is in a place; "": the folders that were named. suffixes: of the files that are of use."""
        if not place:
            return {"place": "", "folders": sorted(self._roots), "files": [], "more": False}
        folder = self.resolve(place)
        if not folder.is_dir():
            raise InputError("this is a file, not a folder; choose a folder from the list.")
        folders, files = [], []
        with reading(folder), os.scandir(folder) as entries:
            for entry in entries:
                if not _is_plain(entry.name) or entry.is_symlink():
                    continue
                if entry.is_dir():
                    folders.append(f"{place}/{entry.name}")
                elif entry.name.lower().endswith(tuple(suffixes)):
                    files.append(f"{place}/{entry.name}")
        more = len(folders) > LISTED or len(files) > LISTED
        return {"place": place, "folders": sorted(folders)[:LISTED], "files": sorted(files)[:LISTED], "more": more}


def _is_plain(name: str) -> bool:
    """Whether it names an entry of a folder that is not hidden."""
    return bool(name) and not name.startswith(".") and not any(c in name for c in "/\\\0")


class DataRequest(BaseModel):
    """What the columns of the data are for; task None: the column `task`, if there is one."""

    column: Annotated[str, Field(min_length=1, max_length=200)] = "text"
    task: ColumnName | None = None
    label: ColumnName = ""
    id: ColumnName = ""
    ignored: Annotated[list[ColumnName], Field(max_length=1000)] = []

    def columns(self) -> DataColumns:
        return DataColumns(self.column, TableOptions(self.id, self.label, tuple(self.ignored), self.task))


class PlaceRequest(BaseModel):
    place: Place


class PlaceDataRequest(DataRequest):
    place: Place


@router.post("/api/uploads")
def begin(site: Here, person: Lead) -> View:
    """Begin an upload; the answer has the id under which its files are sent."""
    return {"upload": site.uploads.begin()}


@router.post("/api/uploads/{upload}/files")
async def take(upload: UploadId, request: Request, site: Here, person: Lead, name: FileName) -> View:
    """Receive a file: the body of the request is the file itself."""
    async with site.receiving:
        data = await _body(request)
        await anyio.to_thread.run_sync(site.uploads.take, upload, name, data)
    return {}


@router.post("/api/uploads/{upload}/preview")
def preview_upload(upload: UploadId, site: Here, person: Lead) -> View:
    """The columns of a table that was sent, with their first values."""
    return _preview(preview(site.uploads.sent(upload)))


@router.post("/api/uploads/{upload}/discard")
def discard(upload: UploadId, site: Here, person: Lead) -> View:
    """Remove what was sent."""
    site.uploads.discard(upload)
    return {}


@router.post("/api/uploads/{upload}/finish")
def finish(upload: UploadId, body: DataRequest, site: Here, person: Lead) -> View:
    """Make the next task of the files, or several tasks, if a column names them."""
    return _added(site, site.uploads.finish(upload, body.columns()))


@router.get("/api/places")
def places(site: Here, person: Lead, under: Annotated[str, Query(max_length=1000)] = "") -> View:
    """Folders and files on the server from which data can be added; `under`: the folder to list."""
    return site.places.list(under, UPLOADED[site.project.settings.kind])


@router.post("/api/places/preview")
def preview_place(body: PlaceRequest, site: Here, person: Lead) -> View:
    """The columns of a table on the server, with their first values."""
    path = site.places.resolve(body.place)
    if not path.is_file() or path.suffix.lower() not in UPLOADED[site.project.settings.kind]:
        raise InputError("this is not a table of the project's kind; choose a file from the list.")
    return _preview(preview(path))


@router.post("/api/places/add")
def add_place(body: PlaceDataRequest, site: Here, person: Lead) -> View:
    """Make the next task, or several, of a folder of images or a file on the server, which stay where they are."""
    return _added(site, add_data(site.project, site.places.resolve(body.place), body.columns()))


@router.post("/api/labels/file")
async def labels(
    request: Request,
    site: Here,
    person: Lead,
    name: FileName,
    new_classes: bool = False,
    label_column: Annotated[str, Query(max_length=200)] = "",
) -> View:
    """Import the labels of a table, which is the body: one column names the item, another one the class.

    They count as labels of the person who sends them, unless a column `person` says otherwise. Rows that cannot be
    imported are refused, each with a sentence. Sending the same file again changes nothing.
    """

    def take_labels(path: Path) -> View:
        taken = take_label_file(site.project, path, person.name, new_classes or None, label_column)
        refused = [sentence.partition(": ")[2] or sentence for sentence in taken.refused[:REFUSED_SHOWN]]
        counts = {"labels": taken.labels, "waiting": taken.waiting, "known": taken.known}
        return counts | {"refused": refused, "refusals": len(taken.refused)}

    view = await _with_table(request, site, name, take_labels)
    site.trainer.poke()
    return view


@router.post("/api/gold/file")
async def gold(request: Request, site: Here, person: Lead, name: FileName) -> View:
    """Import known answers from a table, which is the body: all of its rows, or none."""

    def take_gold(path: Path) -> View:
        count, labelled = add_gold(site.project, path)
        return {"gold": count, "labelled": labelled, "total": len(site.store.gold())}

    return await _with_table(request, site, name, take_gold)


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_UPLOAD:
            raise HTTPException(413, f"The file is too large; the limit is {LARGEST_UPLOAD // 2**20} MB.")
    return bytes(data)


async def _with_table(request: Request, site: Site, name: str, act: Callable[[Path], View]) -> View:
    """Act on the table that is the body, in a thread."""
    async with site.receiving:
        data = await _body(request)

    def act_on_file() -> View:
        with _as_file(name, data) as path:
            return act(path)

    return await anyio.to_thread.run_sync(act_on_file)


@contextlib.contextmanager
def _as_file(name: str, data: bytes) -> Iterator[Path]:
    """The table on the disk, under a name that has nothing of the one that was sent but its ending."""
    suffix = next((suffix for suffix in TABLES if name.lower().endswith(suffix)), "")
    if not suffix:
        raise InputError(f"{name[:100]!r} is not one of {', '.join(TABLES)}; give such a file.")
    with tempfile.TemporaryDirectory(prefix="accuacl-labels-") as folder:
        path = Path(folder) / f"labels{suffix}"
        path.write_bytes(data)
        if suffix == ".parquet":
            check_parquet(path)
        yield path


def _preview(shown: Preview) -> View:
    return {"columns": [{"name": name, "values": values} for name, values in shown.columns], "rows": shown.rows}


def _added(site: Site, added: list[TaskInfo]) -> View:
    site.trainer.poke()
    count, bad = sum(task.count for task in added), sum(len(task.bad) for task in added)
    return {"task": added[0].index + 1, "tasks": len(added), "count": count, "bad": bad}

"""Files that are sent through the page: stored in the project's folder `uploads`, and made tasks."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from accuacl.base.errors import InputError, one_line
from accuacl.base.files import make_folder, write_bytes, writing
from accuacl.experiments import data
from accuacl.labeling.project.images import image_type
from accuacl.labeling.project.new_items import NewItems, TableOptions, split_by_task, task_paths
from accuacl.labeling.project.tasks import FOLDERS, TaskInfo, read_like

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project


LARGEST_UPLOAD = 32 * 2**20  # the most bytes that an uploaded file may have
MOST_FILES = 20_000
MOST_BYTES = 4 * 2**30  # the most bytes that all files of a task may have
MOST_ROWS = 2_000_000  # the most rows that a Parquet file may have
MOST_DECODED = 512 * 2**20  # the most bytes that a Parquet file may take in memory
WIDEST = 8  # the bytes of the widest number
LONGEST_STEM = 80
IMAGES = {  # types of images that are taken, and how their files are called
    **{f"image/{name}": f".{name}" for name in ("png", "webp", "bmp", "gif")},
    "image/jpeg": ".jpg",
    "image/tiff": ".tif",
}
UPLOADED = {
    "images": (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    "texts": (".txt", ".csv", ".tsv", ".json", ".jsonl", ".parquet"),
    "vectors": (".parquet",),
    "tables": (".csv", ".tsv", ".parquet"),
    "files": (),
}
UNFINISHED = ".new-"
PREVIEWED = 5  # how many rows of a table are shown before it is added
SNIP = 80  # how many characters of a value are shown


@dataclass(frozen=True)
class DataColumns:
    """The roles of a file's columns: the column of texts, and the roles that `TableOptions` has."""

    text: str = "text"
    table: TableOptions = field(default_factory=TableOptions)


USUAL = DataColumns()


def add_data(project: Project, path: Path, columns: DataColumns) -> list[TaskInfo]:
    """Add the data at a path as the next task, or as several, as `task_paths` and a column of tasks say."""
    kind, first = project.settings.kind, project.tasks if project.tasks.all() else None
    pools: list[NewItems] = []
    for part in task_paths(path, images=kind in FOLDERS):
        pools += split_by_task(read_like(first, kind, part, columns.text, columns.table))
    return [task for task, _ in project.add_each(pools)]


@dataclass(frozen=True)
class Preview:
    """The columns of a table with their first values, as texts, and how many rows it has."""

    columns: list[tuple[str, list[str]]]
    rows: int


def preview(path: Path) -> Preview:
    """Return the preview of a table."""
    table = data.read_table(path)
    first = table.columns.slice(0, PREVIEWED)
    values = {name: first.column(name).to_pylist() for name in table.names}
    columns = [(name, ["" if each is None else str(each)[:SNIP] for each in column]) for name, column in values.items()]
    return Preview(columns, len(table))


class Uploads:
    """The uploads of a project: `begin`, `take` each file, `finish`. All threads of a server use one object."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._folder = project.directory / "uploads"
        self._turn = threading.Lock()
        self._begun: dict[str, list[int]] = {}  # {upload: [number of files, number of bytes]}

    def begin(self) -> str:
        """Begin an upload; return the id with which its files are sent."""
        upload = secrets.token_hex(16)
        with self._turn, writing(self._folder):
            make_folder(self._folder)
            for left in self._folder.glob(f"{UNFINISHED}*"):
                if left.name.removeprefix(UNFINISHED) not in self._begun:
                    shutil.rmtree(left)
            self._unfinished(upload).mkdir()
            self._begun[upload] = [0, 0]
        return upload

    def take(self, upload: str, name: str, data: bytes) -> None:
        """Store a file; refuse one that is not of the project's kind."""
        kind = self._project.settings.kind
        stem, suffix = _split(name)
        if kind == "files":
            raise InputError("files are added with `accuacl project add --files FOLDER`, not from the page.")
        if suffix not in UPLOADED[kind]:
            raise InputError(f"{name[:100]!r} is not one of {', '.join(UPLOADED[kind])}; give such a file.")
        if len(data) > LARGEST_UPLOAD:
            raise InputError(f"{name[:100]!r} has {len(data)} bytes; a file may have at most {LARGEST_UPLOAD}.")
        if kind == "images":
            suffix = IMAGES.get(image_type(data), "")
            if not suffix:
                raise InputError(f"{name[:100]!r} is not an image of a known type; give {', '.join(UPLOADED[kind])}.")
        with self._turn, writing(self._folder):
            counts = self._begun.get(upload)
            if counts is None:
                raise InputError("this upload is unknown or has ended; begin again.")
            if kind != "images" and counts[0]:
                raise InputError(f"a task of {kind} is one file; send each on its own.")
            if counts[0] >= MOST_FILES or counts[1] + len(data) > MOST_BYTES:
                raise InputError(f"a task may have {MOST_FILES} files with {MOST_BYTES} bytes; send fewer.")
            path = self._unfinished(upload) / f"{stem}{suffix}"
            if path.exists():
                path = self._unfinished(upload) / f"{stem}-{counts[0]}{suffix}"
            write_bytes(path, data)
            counts[0], counts[1] = counts[0] + 1, counts[1] + len(data)

    def sent(self, upload: str) -> Path:
        """Return the folder of images, or the file, that has been sent so far."""
        self._check_sent(upload)
        return self._data(self._unfinished(upload))

    def discard(self, upload: str) -> None:
        """Remove the files of an upload."""
        with self._turn, writing(self._folder):
            if self._begun.pop(upload, None) is not None:
                shutil.rmtree(self._unfinished(upload), ignore_errors=True)

    def finish(self, upload: str, columns: DataColumns = USUAL) -> list[TaskInfo]:
        """Add the files as the next task, or as several by a column of tasks; remove them if they are refused."""
        with self._turn, writing(self._folder):
            self._check_sent(upload)
            self._begun.pop(upload)
            final = self._folder / upload
            os.rename(self._unfinished(upload), final)
        try:
            return add_data(self._project, self._data(final), columns)
        except BaseException:
            shutil.rmtree(final, ignore_errors=True)
            raise

    def _check_sent(self, upload: str) -> None:
        if not self._begun.get(upload, [0])[0]:
            raise InputError("nothing has been sent under this number; drop some files first.")

    def _data(self, folder: Path) -> Path:
        path = folder if self._project.settings.kind == "images" else next(folder.iterdir())
        if path.suffix == ".parquet":
            check_parquet(path)
        return path

    def _unfinished(self, upload: str) -> Path:
        return self._folder / f"{UNFINISHED}{upload}"


def check_parquet(path: Path) -> None:
    """Refuse a Parquet file that would take too much memory: a few bytes can stand for many rows, or for long texts."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        meta = pq.read_metadata(path)
        chunks = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
        if meta.num_rows > MOST_ROWS:
            raise InputError(f"the file has {meta.num_rows:,} rows; a file that is sent may have {MOST_ROWS:,}.")
        if any("DELTA_BYTE_ARRAY" in chunk.encodings for chunk in chunks):
            raise InputError("the file encodes texts as DELTA_BYTE_ARRAY; write it with the default encodings.")
        size = sum(max(chunk.total_uncompressed_size, WIDEST * chunk.num_values) for chunk in chunks)
        _check_size(size)
        long = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())  # values of any length
        encoded = (
            (f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in pq.read_schema(path)
        )
        texts = [name for name, kind in encoded if kind in long]
        file = pq.ParquetFile(path, read_dictionary=texts)  # a text that occurs often is in memory only once
        for batch in file.iter_batches(columns=texts, use_threads=False) if texts else ():
            for column in batch.columns:
                lengths = pc.binary_length(column.dictionary).take(column.indices)
                size += pc.sum(lengths).as_py() or 0
                _check_size(size)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"the file cannot be read as Parquet ({one_line(error)}); give another.") from error


def _check_size(size: int) -> None:
    if size > MOST_DECODED:
        most = MOST_DECODED // 2**20
        raise InputError(
            f"the file takes more than {most} MB once it is read; send less, or use `accuacl project add`."
        )


def _split(name: str) -> tuple[str, str]:
    """Return a safe file name, without characters special to the file system, and the suffix.

    >>> _split("../../etc/passwd.PNG"), _split("C:\\\\photos\\\\a b.jpeg"), _split(".png")
    (('passwd', '.png'), ('a b', '.jpeg'), ('file', '.png'))
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    stem, dot, suffix = last.rpartition(".")
    stem = re.sub(r"[^\w -]+", "_", stem if dot else last, flags=re.ASCII).strip("_ -")[:LONGEST_STEM]
    return stem or "file", f".{suffix.lower()}" if dot else ""

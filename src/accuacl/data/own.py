"""Data of one's own: where they lie, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.names import near
from accuacl.data import arrays, folders, parquet, tables
from accuacl.data.dataset import ColumnNames
from accuacl.data.joined import task_parts
from accuacl.data.published import NAME_IT, PARQUET, PUBLISHED, data_folder
from accuacl.data.source import Source
from accuacl.data.splits import SplitFiles, find_tables
from accuacl.data.table import COLUMNAR, TEXTS, table_suffix
from accuacl.data.textfile import COMPRESSED

ARRAYS = (".npz", ".npy")


def own_data(name: str, data_dir: Path | None = None, what: str = "data set", known: Iterable[str] = PUBLISHED) -> Path:
    """The file or folder `name`, here or in data_dir. If there is none, the sentence says so and names the `known`."""
    data_dir = data_folder(data_dir)
    for place in (Path(name).expanduser(), *([data_dir / name] if data_dir else [])) if name else ():
        if place.is_dir() or (place.is_file() and (place.suffix.lower() in ARRAYS or table_suffix(place))):
            return place
        if place.is_file():
            raise InputError(
                f"{place} is no data set that can be read; give a folder, or a file {', '.join((*ARRAYS, *COLUMNAR))}, "
                f"{', '.join(TEXTS)} (these also with {', '.join(COMPRESSED)})."
            )
    where = f"here or in {data_dir}" if data_dir else f"here, and no data folder is named {NAME_IT}"
    meant = near(name, known)
    hint = f"did you mean {meant}? The" if meant else "the"
    raise InputError(f"there is no {what} or folder {name!r} {where}; {hint} {what}s are {', '.join(known)}.")


def holds_vectors(place: Path) -> bool:
    """Whether data of one's own are vectors and not images; only a header is read."""
    first = next(iter(task_parts(place)), place)
    fields = arrays.find(first)
    if fields is not None:
        return arrays.are_vectors(fields)
    files = find_tables(first)
    return files is not None and not names_images(files)


def holds_tasks(place: Path) -> bool:
    """Whether data of one's own say which task an example is of, by a column or by a folder or file each."""
    if task_parts(place):
        return True
    fields = arrays.find(place)
    if fields is not None:
        return "train_task" in fields
    files = find_tables(place)
    return files is not None and tables.has_column(files, "task")


def names_images(files: SplitFiles) -> bool:
    """Whether tables hold images, or name files of images."""
    return tables.holds_encoded_images(files) or bool(tables.path_column(files))


def find_images(place: Path, files: SplitFiles | None, named: ColumnNames) -> Source:
    """The images in a folder, or in these tables of it."""
    if files:
        if tables.holds_encoded_images(files):
            return parquet.find_own(files, named)
        return tables.find_images(files, named)
    source = folders.find_tiny(place) or folders.find(place)
    if source is None:
        raise InputError(
            f"{place} holds no data set; put train/<class>/ and test/<class>/ with images there, {PARQUET}, train.csv "
            "and test.csv, or the arrays x_train, y_train, x_test and y_test as .npy or .npz."
        )
    return source

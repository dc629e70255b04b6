"""The inputs of a project's model, computed once for each task and kept: embeddings, pixels, or vectors as they are.

`inputs.npy` in a task's folder is made from parts, so that work resumes after a kill. An image that
can no longer be read by then gets a row of zeros and is left out of the pool. The images of a large pool that the first
round looks at may be embedded before the others.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, reading, replacing, write_text
from accuacl.base.machine import cores, memory_kept
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.threads import ordered_thread_map
from accuacl.experiments import checkpoints, device_of
from accuacl.experiments.networks import TORCH, open_runtime
from accuacl.labeling.project.encoders import file_encoder, frozen_network, image_runtime, text_encoder
from accuacl.labeling.project.erasing import erased_rows
from accuacl.labeling.project.images import check_image, read_inside
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.tasks import FOLDERS, TaskInfo, Tasks

PART = 256  # rows
SCALE = "scale.safetensors"  # in the first task's folder
NORM = 8.0  # the vectors that are trained on are scaled to lengths whose root mean square is this
LIMIT = 10.0  # standard deviations at which entries are clipped

BATCH = 32  # rows that are embedded together
FIRST = "first.safetensors"  # in a task's folder, until all are there: rows that its first round looks at
Encode = Callable[[slice], tuple[NDArray[Any], list[int]]]  # rows of a task to (inputs, which of them are bad)
EncodeImages = Callable[[Sequence[int]], tuple[NDArray[Any], list[int]]]


def prepare(tasks: Tasks, task: TaskInfo, settings: ProjectSettings, on_progress: OnProgress) -> dict[str, Any]:
    """Make the task's inputs, or finish making them; their shape, and the rows that are bad."""
    task_folder = tasks.folder_of(task.index)
    target, made, folder = task_folder / "inputs.npy", task_folder / "inputs.json", task_folder / "parts"
    if made.exists():  # it is written last
        shutil.rmtree(folder, ignore_errors=True)
        with reading(made):
            return dict(json.loads(made.read_text(encoding="utf-8")))
    if task.kind in FOLDERS and not Path(task.place).is_dir():
        raise InputError(
            f"the folder {task.place} is missing; bring it back, or say where it is (`accuacl project relocate`)."
        )
    make_folder(folder)

    def report(done: int) -> None:
        on_progress(Progress(min(done, task.count), task.count, "preparing", "preparing"))

    starts = range(0, task.count, PART)
    todo = [start for start in starts if not (folder / f"{start:09}.safetensors").exists()]
    report(PART * (len(starts) - len(todo)))  # what an earlier process has made
    with memory_kept():
        _write_parts(folder, task, todo, encoder(tasks, task, settings), settings, report)
    parts = [folder / f"{start:09}.safetensors" for start in starts]
    wrong = {row for start, part in zip(starts, parts, strict=True) for row in (_load(part)["bad"] + start).tolist()}
    bad = sorted(wrong | erased_rows(tasks, task))
    shape = [task.count, *_load(parts[0])["rows"].shape[1:]]
    _join(target, parts, shape)
    write_text(made, json.dumps({"items": task.sha256, "shape": shape, "bad": bad}) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    (task_folder / FIRST).unlink(missing_ok=True)
    return dict(json.loads(made.read_text(encoding="utf-8")))


def prepare_first(
    tasks: Tasks,
    task: TaskInfo,
    settings: ProjectSettings,
    order: Sequence[int],
    count: int,
    also: Sequence[int],
    on_progress: OnProgress,
) -> dict[str, Any]:
    """Embed images of a task before all others: the first `count` in this order that can be read, and `also` these.

    What is returned describes them as `prepare` does all; `bad` are the rows known to be so by then.
    """
    path = tasks.folder_of(task.index) / FIRST
    if not path.exists():
        chosen: dict[int, NDArray[np.float32]] = {}
        bad: list[int] = []
        encode = _image_encoder(tasks, task, settings)
        batches = [list(order[start : start + BATCH]) for start in range(0, len(order), BATCH)]
        with memory_kept():
            for rows, (embeddings, wrong) in _encoded(encode, batches, settings):
                bad += [rows[i] for i in wrong]
                chosen |= {row: embeddings[i] for i, row in enumerate(rows) if i not in set(wrong)}
                on_progress(Progress(min(len(chosen), count), count, "preparing", "preparing"))
                if len(chosen) >= count:
                    break
            rows = [row for row in also if row not in chosen]
            if rows:
                chosen |= dict(zip(rows, encode(rows)[0], strict=True))
        numbers = np.array(sorted(chosen), np.int64)
        embeddings = np.stack([chosen[row] for row in numbers.tolist()])
        kept = {"numbers": numbers, "rows": embeddings, "bad": np.array(sorted(bad), np.int64)}
        checkpoints.save_arrays(path, kept)
    first = _load(path)
    known = sorted({*first["bad"].tolist(), *erased_rows(tasks, task)})
    return {"items": task.sha256, "shape": [task.count, first["rows"].shape[1]], "bad": known, "first": True}


def _encoded(
    encode: EncodeImages, batches: list[list[int]], settings: ProjectSettings
) -> Iterator[tuple[list[int], tuple[NDArray[Any], list[int]]]]:
    """Batches of images and what they become, on all cores."""
    threads = partial(torch.set_num_threads, settings.threads)  # of each worker: the last bits depend on their number
    return zip(batches, ordered_thread_map(encode, batches, cores(), threads), strict=True)


class FirstRows:
    """Some rows of an array as if all were there; any other row raises IndexError."""

    def __init__(self, path: Path, shape: Sequence[int]) -> None:
        first = _load(path)
        self.numbers, self.rows, self.bad, self.shape = first["numbers"], first["rows"], first["bad"], tuple(shape)
        self.dtype, self.ndim = self.rows.dtype, len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        where = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        if (self.numbers[where] != numbers).any():
            raise IndexError("a row was asked for that is not embedded yet")
        return self.rows[where]


def _write_parts(
    folder: Path,
    task: TaskInfo,
    todo: list[int],
    encode: Encode,
    settings: ProjectSettings,
    report: Callable[[int], None],
) -> None:
    """Encode the parts that begin at these rows, images on all cores, and write each when it is done."""
    step = BATCH if task.kind in FOLDERS else PART
    batches = [
        slice(first, min(first + step, start + PART, task.count))
        for start in todo
        for first in range(start, min(start + PART, task.count), step)
    ]
    done: list[tuple[NDArray[Any], list[int]]] = []
    workers = cores() if task.kind == "images" else 1
    threads = partial(torch.set_num_threads, settings.threads)  # of each worker: the last bits depend on their number
    for batch, result in zip(batches, ordered_thread_map(encode, batches, workers, threads), strict=True):
        done.append(result)
        report(batch.stop)
        start = batch.start - batch.start % PART
        if batch.stop in (start + PART, task.count):
            wrong = [i * step + row for i, (_, bad) in enumerate(done) for row in bad]
            rows = {"rows": np.concatenate([rows for rows, _ in done]), "bad": np.array(wrong, np.int64)}
            checkpoints.save_arrays(folder / f"{start:09}.safetensors", rows)
            done = []


class TaskInputs:
    """The inputs of all tasks as one array, indexed by item."""

    def __init__(self, arrays: Sequence[NDArray[Any] | FirstRows], scale: dict[str, NDArray[Any]] | None) -> None:
        self.arrays, self.scale = list(arrays), scale
        self.sums: NDArray[Any] | None = None  # rows in place of erased examples, with ids from -1 down
        self.ends = np.cumsum([len(array) for array in arrays])

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.ends[-1]), *self.arrays[0].shape[1:])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        rows = np.zeros((len(ids), *self.arrays[0].shape[1:]), self.arrays[0].dtype)
        task = np.where(ids < 0, -1, np.searchsorted(self.ends, ids, side="right"))
        for t in np.unique(task[task >= 0]):
            inside = task == t
            rows[inside] = self.arrays[t][ids[inside] - (self.ends[t] - len(self.arrays[t]))]
        rows = rows if self.scale is None else scaled(rows, self.scale)
        if (ids < 0).any():
            assert self.sums is not None
            rows[ids < 0] = self.sums[-1 - ids[ids < 0]]
        return rows


def open_task_inputs(tasks: Tasks, made: Sequence[dict[str, Any]], settings: ProjectSettings) -> TaskInputs:
    """The inputs of the tasks that `prepare` has made."""
    arrays: list[NDArray[Any] | FirstRows] = []
    for index, known in enumerate(made):
        if "first" in known:
            arrays.append(FirstRows(tasks.folder_of(index) / FIRST, known["shape"]))
            continue
        path = tasks.folder_of(index) / "inputs.npy"
        with reading(path):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        if list(array.shape) != known["shape"] or tasks.all()[index].sha256 != known["items"]:
            raise InputError(f"{path} is damaged: its content is not what was written; restore it from a copy.")
        arrays.append(array)
    if arrays[0].ndim != 2 or not settings.frozen:  # a network that is trained as a whole takes them unscaled
        return TaskInputs(arrays, None)
    path = tasks.folder_of(0) / SCALE
    if not path.exists():
        own = settings.own or settings.sentence_model
        centred = settings.kind not in ("texts", "tables") or own  # rows of tables are scaled already
        fitted = arrays[0]
        if isinstance(fitted, FirstRows):  # a sample of the pool
            scale = fit_scale(fitted.rows, (), centred)
        else:
            scale = fit_scale(fitted, made[0]["bad"], centred)
        checkpoints.save_arrays(path, scale)
    return TaskInputs(arrays, load_scale(tasks))


def load_scale(tasks: Tasks) -> dict[str, NDArray[Any]]:
    """How vectors are scaled, as the first task has settled it."""
    return _load(tasks.folder_of(0) / SCALE)


def fit_scale(rows: NDArray[np.float32], bad: Sequence[int], centred: bool) -> dict[str, NDArray[Any]]:
    """How vectors are scaled: by the first task's means and deviations if `centred`, else by its mean length."""
    good = np.delete(np.arange(len(rows)), bad)
    total, squares = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for start in range(0, len(good), 4096):
        block = rows[good[start : start + 4096]].astype(np.float64)
        total, squares = total + block.sum(axis=0), squares + (block**2).sum(axis=0)
    count = max(1, len(good))
    if not centred:
        length = max(float(np.sqrt(squares.sum() / count)), 1e-12)
        mean, std, each = np.zeros_like(total), np.ones_like(total), NORM / length
    else:
        mean = total / count
        std = np.sqrt(np.maximum(squares / count - mean**2, 0))
        std[std < 1e-6 * np.maximum(1, np.abs(mean))] = 1.0  # constant columns
        each = NORM / np.sqrt(rows.shape[1])
    return {"mean": mean.astype(np.float32), "std": std.astype(np.float32), "each": np.array([each], np.float32)}


def scaled(rows: NDArray[Any], scale: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    """The vectors as they are trained on: centred, scaled, clipped."""
    vectors: NDArray[np.float32] = np.subtract(rows, scale["mean"])  # the one array of this size that is made
    vectors /= scale["std"]
    np.clip(vectors, -LIMIT, LIMIT, out=vectors)
    vectors *= scale["each"]
    return vectors


def encoder(tasks: Tasks, task: TaskInfo, settings: ProjectSettings) -> Encode:
    """How rows of the task become inputs; for images any number of threads may call it."""
    if task.kind == "images":
        encode_images = _image_encoder(tasks, task, settings)
        path = tasks.folder_of(task.index) / FIRST
        if path.exists():
            encode_images = _with_first(encode_images, FirstRows(path, (task.count,)))
        return lambda part: encode_images(range(task.count)[part])
    if task.kind == "files":
        return _file_encoder(tasks, task, settings)
    if task.kind == "texts":
        texts, encode = tasks.table(task.index)["text"], text_encoder(settings, tasks)
        return lambda part: (encode(texts[part]), [])
    if task.kind == "tables":
        schema = tasks.schema()
        return lambda part: (schema.encode(tasks.rows(task.index, part)), [])
    path = tasks.folder_of(task.index) / "vectors.npy"
    with reading(path):
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    return lambda part: (embedded(settings, np.array(vectors[part])), [])


def _file_encoder(tasks: Tasks, task: TaskInfo, settings: ProjectSettings) -> Encode:
    names, root, encode = tasks.table(task.index)["name"], Path(task.place), file_encoder(settings)
    paths, erased = [root / name for name in names], erased_rows(tasks, task)
    tried = (row for i, path in enumerate(paths) if i not in erased and (row := encode(path)) is not None)
    first = next(tried, None)  # tells how long vectors are
    if first is None:
        raise InputError(f"{settings.model} could read none of the {len(paths)} files in {root}; fix one of the two.")
    width = len(first)

    def encode_rows(part: slice) -> tuple[NDArray[Any], list[int]]:
        rows, bad = np.zeros((len(paths[part]), width), np.float32), []
        for i, path in enumerate(paths[part]):
            row = None if part.start + i in erased else encode(path)
            if row is None:
                bad.append(i)
            elif len(row) != width:
                raise InputError(
                    f"{settings.model} gave {len(row)} numbers for {path.name} and {width} for others; give vectors of "
                    "one length."
                )
            else:
                rows[i] = row
        return rows, bad

    return encode_rows


def embedded(settings: ProjectSettings, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors embedded by the project's network, if it has a frozen one."""
    if not settings.has_network or not settings.frozen:
        return vectors
    return open_runtime(TORCH, frozen_network(settings), (), device=device_of(settings.device)).run(vectors)


def _with_first(encode: EncodeImages, first: FirstRows) -> EncodeImages:
    """The encoder, which does not embed again what was embedded first."""
    known = {int(row): i for i, row in enumerate(first.numbers)}
    known_bad = set(first.bad.tolist())

    def encode_rest(batch: Sequence[int]) -> tuple[NDArray[Any], list[int]]:
        rows = np.zeros((len(batch), first.rows.shape[1]), first.rows.dtype)
        bad = [i for i, row in enumerate(batch) if row in known_bad]
        rest = [i for i, row in enumerate(batch) if row not in known and row not in known_bad]
        for i, row in enumerate(batch):
            if row in known:
                rows[i] = first.rows[known[row]]
        if rest:
            embeddings, wrong = encode([batch[i] for i in rest])
            rows[rest] = embeddings
            bad += [rest[i] for i in wrong]
        return rows, sorted(bad)

    return encode_rest


def _image_encoder(tasks: Tasks, task: TaskInfo, settings: ProjectSettings) -> EncodeImages:
    names, root = tasks.table(task.index)["name"], Path(task.place)

    def decode(batch: Sequence[int]) -> tuple[NDArray[np.uint8], list[int]]:
        pixels, bad = np.zeros((len(batch), settings.side, settings.side, 3), np.uint8), []
        for i, row in enumerate(batch):
            try:
                pixels[i] = check_image(read_inside(root, names[row]), settings.side)
            except InputError:
                bad.append(i)
        return pixels, bad

    def first() -> NDArray[np.uint8]:
        """The first images that can be read."""
        for row in range(0, task.count, BATCH):
            pixels, bad = decode(range(row, min(row + BATCH, task.count)))
            if len(bad) < len(pixels):
                return np.delete(pixels, bad, axis=0)
        return np.empty((0, settings.side, settings.side, 3), np.uint8)

    if not settings.frozen:
        return decode
    runtime = image_runtime(settings, tasks, first)
    own_code = settings.own and runtime.name == TORCH
    own_code_lock = threading.Lock() if own_code else contextlib.nullcontext()  # it may keep a state

    def encode(batch: Sequence[int]) -> tuple[NDArray[Any], list[int]]:
        pixels, bad = decode(batch)
        with own_code_lock:
            rows = runtime.run(pixels)
        rows[bad] = 0
        return rows, bad

    return encode


def _join(target: Path, files: list[Path], shape: list[int]) -> None:
    """Write all parts to one .npy file, with one of them in memory at a time."""
    kind = _load(files[0])["rows"].dtype
    with replacing(target) as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": tuple(shape)}
        np.lib.format.write_array_header_1_0(file, header)
        for part_file in files:
            file.write(np.ascontiguousarray(_load(part_file)["rows"]).tobytes())


def _load(path: Path) -> dict[str, NDArray[Any]]:
    import safetensors.numpy

    with reading(path):
        return dict(safetensors.numpy.load(path.read_bytes()))

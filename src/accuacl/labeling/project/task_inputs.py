"""The inputs of a project's model, computed once for each task and kept: embeddings, pixels, or vectors as they are.

`inputs.npy` in a task's folder is made from parts, so that work resumes after a kill. An image that can no longer be
read by then gets a row of zeros and is left out of the pool. The images of a large pool that the first round looks at
may be embedded before the others.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, reading, replacing, write_text
from accuacl.base.machine import cores, device_of, memory_kept
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.base.threads import ordered_thread_map
from accuacl.experiments import checkpoints
from accuacl.experiments.networks import TORCH, open_runtime
from accuacl.labeling.project.encoders import file_encoder, frozen_network, image_runtime, text_encoder
from accuacl.labeling.project.erasing import PARTS, erased_rows, remove_parts
from accuacl.labeling.project.images import check_image, read_inside
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.tasks import FOLDERS, TaskInfo, Tasks

PART = 256  # how many rows are written to a file together
BATCH = 32  # how many images or files are embedded together
SCALE = "scale.safetensors"  # a file in the first task's folder that says how vectors are scaled
NORM = 8.0  # the root mean square of the lengths of scaled vectors
LIMIT = 10.0  # entries are clipped at this many standard deviations

Encode = Callable[[Sequence[int]], tuple[NDArray[Any], list[int]]]  # rows of a task -> (inputs, bad rows)


def prepare(tasks: Tasks, task: TaskInfo, settings: ProjectSettings, on_progress: OnProgress) -> dict[str, Any]:
    """Make the task's inputs, or finish making them; return their shape and the rows that are bad."""
    folder = tasks.folder_of(task.index)
    if tasks.inputs(task.index) is None:
        if task.kind in FOLDERS and not Path(task.place).is_dir():
            where = "bring it back, or say where it is (`accuacl project relocate`)"
            raise InputError(f"the folder {task.place} is missing; {where}.")
        _encode_rows(tasks, task, settings, range(task.count), task.count, on_progress)
        erased = erased_rows(tasks, task)
        shape, _, bad = _join(folder / PARTS, folder / "inputs.npy", task.count, sorted(erased))
        made = {"items": task.sha256, "shape": shape, "bad": sorted(erased | bad)}
        write_text(folder / "inputs.json", json.dumps(made) + "\n")  # written last: a sign that everything is there
    remove_parts(folder)
    return tasks.inputs(task.index) or {}


def prepare_first(
    tasks: Tasks,
    task: TaskInfo,
    settings: ProjectSettings,
    order: Sequence[int],
    count: int,
    also: Sequence[int],
    on_progress: OnProgress,
) -> dict[str, Any]:
    """Embed some images of a task first: the first `count` readable ones in this order, and those in `also`.

    Return a description as `prepare` does. Its `bad` are the rows known to be bad by then, its `first` those that are
    embedded; all other rows are zeros.
    """
    folder = tasks.folder_of(task.index)
    _encode_rows(tasks, task, settings, order, count, on_progress)
    _encode_rows(tasks, task, settings, also, len(also), ignore)
    erased = erased_rows(tasks, task)
    shape, done, bad = _join(folder / PARTS, folder / "inputs.npy", task.count, sorted(erased))
    return {"items": task.sha256, "shape": shape, "bad": sorted(erased | bad), "first": sorted(done - bad)}


def _encode_rows(
    tasks: Tasks, task: TaskInfo, settings: ProjectSettings, order: Sequence[int], count: int, on_progress: OnProgress
) -> None:
    """Encode rows in this order until `count` of them can be used, images on all cores, and write them part by part."""
    folder = tasks.folder_of(task.index) / PARTS
    make_folder(folder)
    written, done, bad = len(_parts(folder)), set[int](), set[int]()
    for path in _parts(folder):  # parts that an earlier process has written
        part = _load(path)
        done.update(part["numbers"].tolist())
        bad.update(part["bad"].tolist())
    todo = [row for row in order if row not in done]
    step = min(BATCH, PART) if task.kind in FOLDERS else PART
    batches = [todo[start : start + step] for start in range(0, len(todo), step)]
    seen, usable = len(order) - len(todo), len(done.difference(bad).intersection(order))
    parts: list[dict[str, NDArray[Any]]] = []
    workers = cores() if task.kind == "images" else 1
    threads = partial(torch.set_num_threads, settings.threads)  # results depend on it in their last bits

    def report() -> None:
        on_progress(Progress(min(seen, count), count, "preparing", "preparing"))

    report()
    if usable >= count or not batches:
        return
    with memory_kept():
        encoded = ordered_thread_map(encoder(tasks, task, settings), batches, workers, threads)
        for batch, (rows, wrong) in zip(batches, encoded, strict=True):
            numbers = np.array(batch, np.int64)
            parts.append({"numbers": numbers, "rows": rows, "bad": numbers[wrong]})
            seen, usable = seen + len(batch), usable + len(batch) - len(wrong)
            report()
            if len(parts) * step >= PART or usable >= count or batch is batches[-1]:
                joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
                checkpoints.save_arrays(folder / f"{written:09}.safetensors", joined)
                parts, written = [], written + 1
            if usable >= count:
                break


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _join(folder: Path, target: Path, count: int, erased: Sequence[int]) -> tuple[list[int], set[int], set[int]]:
    """Write all parts to one .npy file, with zeros for missing and erased rows; return its shape, rows and bad rows."""
    files, done, bad = _parts(folder), set[int](), set[int]()
    example = _load(files[0])["rows"]
    shape, size = [count, *example.shape[1:]], example[0].nbytes
    header = {"descr": np.lib.format.dtype_to_descr(example.dtype), "fortran_order": False, "shape": tuple(shape)}
    with replacing(target) as file:
        np.lib.format.write_array_header_1_0(file, header)
        begin = file.tell()
        for path in files:
            part = _load(path)
            numbers, rows = part["numbers"].tolist(), part["rows"].copy()
            rows[np.isin(numbers, erased)] = 0
            done.update(numbers)
            bad.update(part["bad"].tolist())
            for number, row in zip(numbers, rows, strict=True):
                file.seek(begin + number * size)
                file.write(row.tobytes())
        file.truncate(begin + count * size)
    return shape, done, bad


class TaskInputs:
    """The inputs of all tasks as one array, indexed by item."""

    def __init__(self, arrays: Sequence[NDArray[Any]], scale: dict[str, NDArray[Any]] | None) -> None:
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
    """Return the inputs of the tasks that `prepare` has made, or `prepare_first`."""
    arrays: list[NDArray[Any]] = []
    for index, known in enumerate(made):
        path, array = tasks.folder_of(index) / "inputs.npy", tasks.array(index, "inputs.npy")
        if list(array.shape) != known["shape"] or tasks.all()[index].sha256 != known["items"]:
            raise InputError(f"{path} is damaged: its content is not what was written; restore it from a copy.")
        arrays.append(array)
    if arrays[0].ndim != 2 or not settings.frozen:  # a network that is trained as a whole takes inputs unscaled
        return TaskInputs(arrays, None)
    path = tasks.folder_of(0) / SCALE
    if not path.exists():
        own = settings.own or settings.sentence_model
        centred = settings.kind not in ("texts", "tables") or own  # rows of tables are scaled already
        first, bad = made[0].get("first"), made[0]["bad"]
        unknown = bad if first is None else np.setdiff1d(np.arange(len(arrays[0])), first).tolist()
        checkpoints.save_arrays(path, fit_scale(arrays[0], unknown, centred))
    return TaskInputs(arrays, load_scale(tasks))


def load_scale(tasks: Tasks) -> dict[str, NDArray[Any]]:
    """Return the means and scales of vectors that the first task has fixed."""
    return _load(tasks.folder_of(0) / SCALE)


def fit_scale(rows: NDArray[np.float32], bad: Sequence[int], centred: bool) -> dict[str, NDArray[Any]]:
    """Compute how to scale vectors: by the first task's means and deviations if `centred`, else by its mean length."""
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
        std[std < 1e-6 * np.maximum(1, np.abs(mean))] = 1.0  # leaves constant columns unscaled
        each = NORM / np.sqrt(rows.shape[1])
    return {"mean": mean.astype(np.float32), "std": std.astype(np.float32), "each": np.array([each], np.float32)}


def scaled(rows: NDArray[Any], scale: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Return the vectors as the model is trained on them: centred, scaled, clipped."""
    vectors: NDArray[np.float32] = np.subtract(rows, scale["mean"])  # all that follows is in place
    vectors /= scale["std"]
    np.clip(vectors, -LIMIT, LIMIT, out=vectors)
    vectors *= scale["each"]
    return vectors


def encoder(tasks: Tasks, task: TaskInfo, settings: ProjectSettings) -> Encode:
    """Return a function that makes rows of the task inputs; for images, several threads may call it at once."""
    if task.kind == "images":
        return _image_encoder(tasks, task, settings)
    if task.kind == "files":
        return _file_encoder(tasks, task, settings)
    if task.kind == "texts":
        texts, encode = tasks.table(task.index)["text"], text_encoder(settings, tasks)
        return lambda rows: (encode([texts[row] for row in rows]), [])
    if task.kind == "tables":
        schema, cells = tasks.schema(), tasks.table(task.index)["shown"]
        return lambda rows: (schema.encode([json.loads(cells[row]) for row in rows]), [])
    vectors = tasks.array(task.index, "vectors.npy")
    return lambda rows: (embedded(settings, vectors[list(rows)]), [])


def _file_encoder(tasks: Tasks, task: TaskInfo, settings: ProjectSettings) -> Encode:
    names, root, encode = tasks.table(task.index)["name"], Path(task.place), file_encoder(settings)
    erased = erased_rows(tasks, task)
    tried = (encode(root / name) for row, name in enumerate(names) if row not in erased)
    first = next((vector for vector in tried if vector is not None), None)
    if first is None:
        raise InputError(f"{settings.model} could read none of the {len(names)} files in {root}; fix it or the files.")
    nothing = np.zeros_like(first)

    def encode_files(batch: Sequence[int]) -> tuple[NDArray[Any], list[int]]:
        vectors = [None if row in erased else encode(root / names[row]) for row in batch]
        bad = [i for i, vector in enumerate(vectors) if vector is None]
        return np.stack([nothing if vector is None else vector for vector in vectors]), bad

    return encode_files


def embedded(settings: ProjectSettings, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vectors embedded by the project's frozen network, or as they are if it has none."""
    if not settings.has_network or not settings.frozen:
        return vectors
    return open_runtime(TORCH, frozen_network(settings), (), device=device_of(settings.device)).run(vectors)


def _image_encoder(tasks: Tasks, task: TaskInfo, settings: ProjectSettings) -> Encode:
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
        """Return some readable images to choose the runtime with."""
        for row in range(0, task.count, BATCH):
            pixels, bad = decode(range(row, min(row + BATCH, task.count)))
            if len(bad) < len(pixels):
                return np.delete(pixels, bad, axis=0)
        return np.empty((0, settings.side, settings.side, 3), np.uint8)

    if not settings.frozen:
        return decode
    runtime = image_runtime(settings, tasks, first)
    own_code = settings.own and runtime.name == TORCH
    own_code_lock = threading.Lock() if own_code else contextlib.nullcontext()  # it may not be thread-safe

    def encode(batch: Sequence[int]) -> tuple[NDArray[Any], list[int]]:
        pixels, bad = decode(batch)
        with own_code_lock:
            rows = runtime.run(pixels)
        rows[bad] = 0
        return rows, bad

    return encode


def _load(path: Path) -> dict[str, NDArray[Any]]:
    import safetensors.numpy

    with reading(path):
        return dict(safetensors.numpy.load(path.read_bytes()))

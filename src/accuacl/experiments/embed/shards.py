"""From inputs and a model to a pool: Parquet shards of ids, embeddings and probabilities.

Each shard is a file. `manifest.json` names the finished shards, and the data, model, runtime and settings that made
them. Running the same command again continues with the first missing shard. The next inputs are read and
decoded while the model runs.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, making, write_text
from accuacl.base.machine import device_of
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.base.threads import ordered_thread_map
from accuacl.experiments import learners, models
from accuacl.experiments.embed.checkpoint import Checkpoint, misfit
from accuacl.experiments.embed.inputs import Inputs, fingerprint
from accuacl.experiments.embed.reading import LOCK, MANIFEST, Batch, check_out
from accuacl.experiments.networks import AUTO, BATCH, TORCH, Runtime, choose_runtime, open_runtime, run_on_all_cores
from accuacl.features import Features, RowError
from accuacl.pools import GROUP_ROWS, write_pool

FAILED = "failed"  # in the manifest: embedding ended with wrong input
PART_BYTES = 32 << 20  # of raw inputs that are read at a time; as many parts again are read ahead


def embed(
    inputs: Inputs,
    checkpoint: Checkpoint,
    out: Path,
    *,
    half: bool = False,
    device: str = "auto",
    batch: int = 256,
    shard_rows: int = GROUP_ROWS,
    fresh: bool = False,
    runtime: str = AUTO,
    progress: OnProgress = ignore,
) -> int:
    """Write the pool, or what is missing of it, to the folder `out`; returns its number of rows.

    inputs, checkpoint: from `open_for_run` or `open_for_module`. half: embeddings and probabilities as float16.
    runtime: what runs the model on images; auto: what the checkpoint says, or what the pool was begun with, or else the
    fastest that is installed and agrees with torch. torch runs models on vectors, and everything on a GPU.
    """
    if shard_rows < 1 or batch < 1:
        raise InputError(f"shard_rows is {shard_rows} and batch {batch}; give at least 1 of each.")
    device = _device(device)
    check_out(out)
    busy = f"another embed (process {{holder}}) is writing to {out}; wait for it or give another --out."
    with making(out, LOCK, MANIFEST), Lock(out / LOCK, busy):
        given = checkpoint.runtime if runtime == AUTO else runtime
        runner = _Runner(inputs, checkpoint, _runtime_name(out, fresh) if given == AUTO else given, batch, device)
        manifest = _begin(out, {
            "inputs": fingerprint(inputs), "reading": inputs.reading, "model": checkpoint.fingerprint, "half": half,
            "shard_rows": shard_rows, "runtime": runner.name,
        }, fresh)  # fmt: skip
        for number, start in enumerate(range(0, len(inputs), shard_rows)):
            name = f"{number:06}.parquet"
            stop = min(start + shard_rows, len(inputs))
            if not _whole(out / name, manifest["shards"].get(name)):
                with _marked(out, manifest):
                    ids, features = _embed_rows(inputs, runner, start, stop, half, progress)
                write_pool(out / name, ids, features.embeddings, features.probabilities)
                manifest["shards"][name] = {"rows": len(ids), "bytes": (out / name).stat().st_size}
                _write(out / MANIFEST, manifest)
            progress(Progress(stop, len(inputs), "embedding"))
    return sum(shard["rows"] for shard in manifest["shards"].values())


def _runtime_name(out: Path, fresh: bool) -> str:
    """What a pool was begun with."""
    written = {} if fresh or not (out / MANIFEST).exists() else _read(out / MANIFEST)
    return str(written["settings"].get("runtime", AUTO)) if written.get("shards") else AUTO


class _Runner:
    """The checkpoint's model in a runtime, which is chosen and opened when its first inputs are there."""

    def __init__(self, inputs: Inputs, checkpoint: Checkpoint, name: str, batch: int, device: str) -> None:
        self.checkpoint, self.batch, self.device = checkpoint, batch, device
        self.runtime: Runtime | None = None
        self.name = TORCH
        if device != "cpu" or name == TORCH:
            return
        first = next((raw for raw in _batches(inputs, BATCH) if len(raw)), np.empty((0, 0), np.float32))
        if first.dtype != np.uint8:  # vectors: torch takes microseconds for them
            return
        network, self.rest = checkpoint.parts()
        try:
            chosen = choose_runtime(network, first) if name == AUTO else open_runtime(name, network, first.shape[1:])
        except (RuntimeError, InputError) as error:  # torch raises the former when shapes do not fit
            raise InputError(misfit(error, first.shape[1:])) from None
        self.runtime, self.name = chosen, chosen.name

    def predict(self, raw: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Embeddings and probabilities."""
        model, transform, seen = self.checkpoint.model, self.checkpoint.transform, self.checkpoint.seen
        try:
            if self.name == TORCH or self.runtime is None:
                return models.predict(model, torch.from_numpy(raw), transform, seen, self.batch, self.device)
            rows = torch.from_numpy(run_on_all_cores(self.runtime, raw))
            return models.predict(self.rest, rows, learners.Transform(), seen, self.batch)
        except (RuntimeError, InputError) as error:  # torch raises the former when shapes do not fit
            raise InputError(misfit(error, raw.shape[1:])) from None


def _batches(inputs: Inputs, count: int) -> Iterator[NDArray[Any]]:
    return (inputs.read(start, start + count)[1] for start in range(0, len(inputs), count))


@contextlib.contextmanager
def _marked(out: Path, manifest: dict[str, Any]) -> Iterator[None]:
    """If what was given is wrong in this block, the pool is marked, so that other settings may start over here."""
    try:
        yield
    except InputError:
        with contextlib.suppress(InputError):
            _write(out / MANIFEST, manifest | {FAILED: True})
        raise


def _device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise InputError(f"device is {name!r}; give cpu, cuda, cuda:1 or auto.")
    return device_of(name)


def _embed_rows(
    inputs: Inputs, runner: _Runner, start: int, stop: int, half: bool, progress: OnProgress
) -> tuple[list[Any], Features]:
    """Ids and features of the rows from start to stop, computed a part at a time."""
    ids: list[Any] = []
    parts: list[Features] = []
    for begin, end, (names, raw) in _read_ahead(inputs, start, stop, runner.batch):
        if len(raw):
            h, p = runner.predict(raw)
            try:
                parts.append(_features(h, p, half))
            except RowError as error:
                if not np.isfinite(raw[error.row]).all():
                    where = inputs.where(begin + error.row)
                    raise InputError(
                        f"{where}: its vector has a number that is not finite; fix or drop the row."
                    ) from None
                how = "; float16 holds less than 65520, so leave out --half" if half else ""
                raise InputError(
                    f"the model's output for {names[error.row]!r} cannot go into a pool: {error.at('')[2:]}{how}"
                ) from None
        ids += names
        progress(Progress(end, len(inputs), "embedding"))
    if not parts:
        raise InputError("none of the images of a shard can be read; fix them or leave them out of the folder.")
    return ids, Features.concat(parts)


def _read_ahead(inputs: Inputs, start: int, stop: int, batch: int) -> Iterator[tuple[int, int, Batch]]:
    """(first row, end, what was read) a part at a time; a thread reads the next parts meanwhile.

    The first part has `batch` rows; it shows how large an input is, and so how many fit into a part.
    """
    end = min(start + batch, stop)
    first = inputs.read(start, end)
    yield start, end, first
    step = max(batch, PART_BYTES // first[1][0].nbytes // batch * batch) if len(first[1]) else batch
    ranges = [(begin, min(begin + step, stop)) for begin in range(end, stop, step)]
    parts = ordered_thread_map(lambda part: inputs.read(*part), ranges, workers=1)  # one: files are read in order
    for (begin, finish), read in zip(ranges, parts, strict=True):
        yield begin, finish, read


def _features(h: NDArray[Any], p: NDArray[Any], half: bool) -> Features:
    if half:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            h, p = h.astype(np.float16), p.astype(np.float16)
    return Features(h, p)


def _begin(out: Path, settings: dict[str, Any], fresh: bool) -> dict[str, Any]:
    """The manifest of an earlier start; refused if that used other data, another model or other settings."""
    path = out / MANIFEST
    nothing: dict[str, Any] = {"settings": settings, "shards": {}}
    if not path.exists():
        _write(path, nothing)
        return nothing
    written = _read(path)
    other = [name for name, value in settings.items() if written["settings"].get(name) != value]
    if other and written["shards"] and not fresh and not written[FAILED]:
        raise InputError(
            f"{out} was begun with other {other[0].replace('_', ' ')}; give another --out, or start over with --fresh."
        )
    if fresh or other:
        for shard in out.glob("[0-9][0-9][0-9][0-9][0-9][0-9].parquet*"):
            shard.unlink(missing_ok=True)
        _write(path, nothing)
        return nothing
    for unfinished in out.glob("*.parquet.*.part"):  # what a killed process left
        unfinished.unlink(missing_ok=True)
    return {"settings": settings, "shards": written["shards"]}


def _read(path: Path) -> dict[str, Any]:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        return {"settings": dict(written["settings"]), "shards": dict(written["shards"]), FAILED: written.get(FAILED)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is not the record of a pool; give another --out.") from None


def _write(path: Path, manifest: dict[str, Any]) -> None:
    write_text(path, json.dumps(manifest, indent=1) + "\n")


def _whole(path: Path, entry: dict[str, Any] | None) -> bool:
    """Whether a finished shard is still what was written."""
    try:
        return (
            entry is not None
            and path.stat().st_size == entry["bytes"]
            and pq.ParquetFile(path).metadata.num_rows == entry["rows"]
        )
    except (OSError, pa.ArrowInvalid):  # what pyarrow raises for incomplete files
        return False

"""From inputs and a model to a pool: Parquet shards of ids, embeddings and probabilities.

Each shard is a file. `manifest.json` names the finished shards, and the data, model and settings that made them. The
same command, given again, continues with the first shard that is missing.
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
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.experiments import DEVICE, models
from accuacl.experiments.embed.checkpoint import Checkpoint, misfit
from accuacl.experiments.embed.inputs import Inputs, fingerprint
from accuacl.experiments.embed.reading import LOCK, MANIFEST, check_out
from accuacl.features import Features, RowError
from accuacl.pools import GROUP_ROWS, write_pool

FAILED = "failed"  # in the manifest: embedding ended with wrong input
PART_BYTES = 64 << 20  # of raw inputs that are in memory at a time


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
    progress: OnProgress = ignore,
) -> int:
    """Write the pool, or what is missing of it, to the folder `out`; returns its number of rows.

    inputs, checkpoint: from `open_for_run` or `open_for_module`. half: embeddings and probabilities as float16.
    """
    if shard_rows < 1 or batch < 1:
        raise InputError(f"shard_rows is {shard_rows} and batch {batch}; give at least 1 of each.")
    device = _device(device)
    check_out(out)
    busy = f"another embed (process {{holder}}) is writing to {out}; wait for it or give another --out."
    with making(out, LOCK, MANIFEST), Lock(out / LOCK, busy):
        manifest = _begin(out, {
            "inputs": fingerprint(inputs), "reading": inputs.reading, "model": checkpoint.fingerprint, "half": half,
            "shard_rows": shard_rows,
        }, fresh)  # fmt: skip
        for number, start in enumerate(range(0, len(inputs), shard_rows)):
            name = f"{number:06}.parquet"
            stop = min(start + shard_rows, len(inputs))
            if not _whole(out / name, manifest["shards"].get(name)):
                with _marked(out, manifest):
                    ids, features = _embed_rows(inputs, checkpoint, start, stop, half, device, batch, progress)
                write_pool(out / name, ids, features.embeddings, features.probabilities)
                manifest["shards"][name] = {"rows": len(ids), "bytes": (out / name).stat().st_size}
                write_text(out / MANIFEST, json.dumps(manifest, indent=1) + "\n")
            progress(Progress(stop, len(inputs), "embedding"))
    return sum(shard["rows"] for shard in manifest["shards"].values())


@contextlib.contextmanager
def _marked(out: Path, manifest: dict[str, Any]) -> Iterator[None]:
    """If what was given is wrong in this block, the pool is marked, so that other settings may start over here."""
    try:
        yield
    except InputError:
        with contextlib.suppress(InputError):
            write_text(out / MANIFEST, json.dumps(manifest | {FAILED: True}, indent=1) + "\n")
        raise


def _device(name: str) -> str:
    if not re.fullmatch(DEVICE, name):
        raise InputError(f"device is {name!r}; give cpu, cuda, cuda:1 or auto.")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device is {name!r} but torch finds none; give --device cpu.")
    return name


def _embed_rows(
    inputs: Inputs,
    checkpoint: Checkpoint,
    start: int,
    stop: int,
    half: bool,
    device: str,
    batch: int,
    progress: OnProgress,
) -> tuple[list[Any], Features]:
    """Ids and features of the rows from start to stop, computed a part at a time."""
    ids: list[Any] = []
    parts: list[Features] = []
    step = batch  # until it is known how large an input is
    while start < stop:
        end = min(start + step, stop)
        names, raw = inputs.read(start, end)
        if len(raw):
            step = max(batch, PART_BYTES // raw[0].nbytes // batch * batch)
            h, p = _predict(checkpoint, raw, batch, device)
            try:
                parts.append(_features(h, p, half))
            except RowError as error:
                if not np.isfinite(raw[error.row]).all():
                    where = inputs.where(start + error.row)
                    raise InputError(
                        f"{where}: its vector has a number that is not finite; fix or drop the row."
                    ) from None
                how = "; float16 holds less than 65520, so leave out --half" if half else ""
                raise InputError(
                    f"what the model gives for {names[error.row]!r} is no pool: {error.at('')[2:]}{how}"
                ) from None
        ids += names
        start = end
        progress(Progress(start, len(inputs), "embedding"))
    if not parts:
        raise InputError("none of the images of a shard can be read; fix them or leave them out of the folder.")
    return ids, Features.trusted(
        np.concatenate([part.embeddings for part in parts]), np.concatenate([part.probabilities for part in parts])
    )


def _predict(checkpoint: Checkpoint, raw: NDArray[Any], batch: int, device: str) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        return models.predict(
            checkpoint.model, torch.from_numpy(raw), checkpoint.transform, checkpoint.seen, batch, device
        )
    except (RuntimeError, InputError) as error:  # torch raises the former when shapes do not fit
        raise InputError(misfit(error, raw.shape[1:])) from None


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
        write_text(path, json.dumps(nothing, indent=1) + "\n")
        return nothing
    try:
        written = json.loads(path.read_text())
        old, shards, failed = written["settings"], written["shards"], written.get(FAILED, False)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not the record of a pool; give another --out.") from None
    if fresh or old != settings:
        for key, value in settings.items():
            if shards and not fresh and not failed and old.get(key) != value:
                raise InputError(
                    f"{out} was begun with other {key.replace('_', ' ')}; give another --out, "
                    "or start over with --fresh."
                )
        for shard in out.glob("[0-9][0-9][0-9][0-9][0-9][0-9].parquet*"):
            shard.unlink(missing_ok=True)
        write_text(path, json.dumps(nothing, indent=1) + "\n")
        return nothing
    for unfinished in out.glob("*.parquet.*.part"):  # what a killed process left
        unfinished.unlink(missing_ok=True)
    return {"settings": settings, "shards": shards}


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

"""Data sets of images as a pretrained network sees them: embedded once, kept in the cache, scaled by the first task.

Runs with `--model pretrained` learn on these: the network is frozen, so nothing has to be embedded again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, replacing
from accuacl.base.machine import cores
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.base.threads import ordered_thread_map
from accuacl.experiments.data import Stream, cache_home, decode
from accuacl.experiments.networks.runtime import Runtime, choose_runtime, pretrained_network

NETWORK, SIDE = "efficientnet-lite0", 128  # pixels: minutes for a data set of 60,000 images
CHUNK = 64  # images per thread at a time
NORM, LIMIT = 8.0, 10.0  # as in projects: the root mean square of lengths, and the deviations at which entries are cut


def seen_through(stream: Stream, progress: OnProgress | None = None) -> Stream:
    """The stream with the network's output in place of each image; tasks and labels are unchanged.

    Columns have the mean 0 and the same deviation over the first task's pool, and are cut at ten of these.
    """
    data = stream.dataset
    if data.train.inputs.ndim != 4:
        raise InputError(f"--model pretrained takes images, but {data.name} has vectors; give --model linear.")
    splits = {"train": data.train, "test": data.test}
    rows = [_embedded(name, split.inputs, progress or ignore) for name, split in splits.items()]
    first = np.asarray(rows[0][np.sort(stream[0].train)], np.float64)
    mean, deviation = first.mean(axis=0), first.std(axis=0)
    deviation[deviation < 1e-6 * np.maximum(1, np.abs(mean))] = 1.0  # constant columns
    train, test = (_scaled(part, mean, deviation) for part in rows)
    seen = replace(data, train=replace(data.train, inputs=train), test=replace(data.test, inputs=test))
    return Stream(seen, stream.tasks, stream.answers)


def _scaled(rows: NDArray[Any], mean: NDArray[Any], deviation: NDArray[Any]) -> NDArray[np.float32]:
    scaled = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), 4096):
        part = slice(start, start + 4096)
        scaled[part] = np.clip((rows[part] - mean) / deviation, -LIMIT, LIMIT) * (NORM / np.sqrt(rows.shape[1]))
    return scaled


def _embedded(name: str, images: NDArray[Any], progress: OnProgress) -> NDArray[np.float32]:
    """The embeddings of all images, memory-mapped; from the cache if it has those of these very pixels."""
    folder = cache_home() / "embeddings"
    path = folder / f"{NETWORK}-{SIDE}-{_digest(images)}.npy"
    if not path.exists():
        make_folder(folder)
        network = pretrained_network(NETWORK)
        first = _pixels(images, slice(0, 4))
        runtime = choose_runtime(replace(network, bf16=False), first)  # others agree to four digits
        embedded: list[NDArray[np.float32]] = []
        for part in _run(runtime, images):
            embedded.append(part)
            progress(Progress(len(embedded) * CHUNK, len(images), f"embedding {name}", "decoding"))
        with replacing(path) as file:
            np.save(file, np.concatenate(embedded))
    rows: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    return rows


def _run(runtime: Runtime, images: NDArray[Any]) -> Iterator[NDArray[np.float32]]:
    parts = (slice(start, start + CHUNK) for start in range(0, len(images), CHUNK))
    return ordered_thread_map(lambda part: runtime.run(_pixels(images, part)), parts, min(cores(), 16))


def _pixels(images: NDArray[Any], part: slice) -> NDArray[np.uint8]:
    return np.stack([decode(image, SIDE) for image in images[part]])


def _digest(images: NDArray[Any]) -> str:
    """Of all pixels: other images must not be taken for these."""
    total = hashlib.sha256(str(images.shape).encode())
    for start in range(0, len(images), 4096):
        total.update(np.ascontiguousarray(images[start : start + 4096]).tobytes())
    return total.hexdigest()[:16]

"""Which network sees best: accuracy with few labels per class, by network, image size and runtime.

    python benchmarks/embedding_accuracy.py --data-dir DATA --out docs/results/eyes/accuracy.csv

DATA (or ACCUACL_DATA; several may be given) holds the published data sets named by --data. Each seed draws 30 of the
classes (all ten of CIFAR-10), of each class 30 training images and up to 50 test images. A ridge head learns from the
first 3, 10 and 30 images of each class, on embeddings that are centred and scaled by the training images, as in
a project. Rows that the file already has are not computed again. The table of means is printed at the end.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuacl.base.machine import cores
from accuacl.experiments.data import Dataset, Split, decode, load
from accuacl.experiments.heads import fit_ridge
from accuacl.experiments.networks import WHEELS, FrozenNetwork, open_runtime, pretrained_network

CLASSES, TRAIN, TEST, LABELS, CLIP = 30, 30, 50, (3, 10, 30), 10.0
COLUMNS = ("data", "network", "side", "runtime", "seed", "labels", "accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, nargs="+", default=[Path(os.environ.get("ACCUACL_DATA", "."))])
    parser.add_argument("--data", nargs="+", default=["tiny-imagenet", "cifar100", "cifar10"])
    parser.add_argument("--networks", nargs="+", default=list(WHEELS), choices=list(WHEELS))
    parser.add_argument("--sides", type=int, nargs="+", default=[128, 160, 224])
    parser.add_argument("--runtime", default="onnxruntime")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--out", type=Path, default=Path("docs/results/eyes/accuracy.csv"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    networks = {name: pretrained_network(name) for name in given.networks}
    for data in given.data:
        dataset = read(data, given.data_dir)
        for seed in range(given.seeds):
            for name, network in networks.items():
                for side in given.sides:
                    if not is_done(given.out, data, name, side, given.runtime, seed):
                        accuracy = measure(dataset, seed, network, side, given.runtime, given.threads)
                        add(given.out, [(data, name, side, given.runtime, seed, *each) for each in accuracy])
    print(table(given.out))


def read(name: str, folders: list[Path]) -> Dataset:
    """A data set from the first of the folders that has it."""
    for folder in folders[:-1]:
        if (folder / name).is_dir():
            return load(name, folder)
    return load(name, folders[-1])


def measure(
    dataset: Dataset, seed: int, network: FrozenNetwork, side: int, runtime: str, threads: int
) -> Iterator[tuple[int, str]]:
    """(labels of each class, accuracy in percent)."""
    rng = np.random.default_rng(seed)
    classes = np.sort(rng.permutation(len(dataset.classes))[:CLASSES])
    rows = {}
    for split, count in ((dataset.train, TRAIN), (dataset.test, TEST)):
        ids = [rng.permutation(np.flatnonzero(split.labels == c))[:count] for c in classes]
        rows[id(split)] = embed(split, np.concatenate(ids), network, side, runtime, threads), ids
    (x, train), (x_test, test) = rows[id(dataset.train)], rows[id(dataset.test)]
    mean, std = x.mean(axis=0), x.std(axis=0)
    std[std < 1e-6] = 1.0
    x, x_test = (np.clip((each - mean) / std, -CLIP, CLIP) / x.shape[1] ** 0.5 for each in (x, x_test))
    truth = np.repeat(np.arange(len(classes)), [len(ids) for ids in test])
    for labels in LABELS:
        starts = np.cumsum([0, *(len(ids) for ids in train[:-1])])
        used = np.concatenate([start + np.arange(labels) for start in starts])
        y = torch.arange(len(classes)).repeat_interleave(labels)
        head = fit_ridge(torch.from_numpy(x[used]), y, len(classes))
        guess = head.logits(torch.from_numpy(x_test)).argmax(1).numpy()
        yield labels, f"{100 * float((guess == truth).mean()):.2f}"


def embed(split: Split, ids: Any, network: FrozenNetwork, side: int, runtime: str, threads: int) -> Any:
    """Embeddings of images that are brought to this side as a project does it."""
    run = open_runtime(runtime, network, (side, side, 3)).run
    batches = np.array_split(ids, max(1, len(ids) // 32))

    def rows(batch: Any) -> Any:
        return run(np.stack([decode(np.asarray(split.inputs[i]), side) for i in batch]))

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(rows, batches))).astype(np.float64)


def is_done(path: Path, *key: Any) -> bool:
    return any(tuple(row[name] for name in COLUMNS[: len(key)]) == tuple(map(str, key)) for row in rows_of(path))


def rows_of(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, rows: list[tuple[Any, ...]]) -> None:
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows] if new else rows)
    print(*rows, sep="\n", flush=True)


def table(path: Path) -> str:
    """Means over seeds, one row for each network, size and runtime."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(path):
        cell = (row["network"], row["side"], row["runtime"])
        found[cell][f"{row['data']} {row['labels']}"].append(float(row["accuracy"]))
    names = {tuple(head.split()) for cells in found.values() for head in cells}
    heads = [f"{data} {labels}" for data, labels in sorted(names, key=lambda name: (name[0], int(name[1])))]
    lines = ["| network | side | runtime | " + " | ".join(heads) + " |", "|---|--:|---|" + "--:|" * len(heads)]
    for cell, cells in sorted(found.items()):
        means = (f"{np.mean(cells[head]):.1f}" if cells[head] else "" for head in heads)
        lines.append(f"| {' | '.join(cell)} | {' | '.join(means)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

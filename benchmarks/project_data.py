"""The data of benchmarks/projects.py: three tasks each, pools to label and test sets to know the truth by."""

from __future__ import annotations

import csv
import io
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from accuacl.base.progress import ignore
from accuacl.labeling.project import NewItems, read_images

TASKS = 3


@dataclass
class Data:
    """pools: what projects label. truth: class of every item. tests, answers: what only the judge sees.

    wrong: this share of the annotator's answers is another class. weights: what a test example counts for, where its
    class is more or less frequent in the pool than in the test set.
    """

    name: str
    kind: str
    place: Path
    settings: dict[str, Any]
    pools: list[NewItems]
    truth: list[str]
    tests: list[Any]
    answers: list[list[str]] = field(default_factory=list)
    wrong: float = 0.0
    weights: list[np.ndarray] | None = None


def clinc150(folder: Path, place: Path, first: int = 0, each: tuple[int, ...] = (20, 20, 20)) -> Data:
    """Sentences to a voice assistant; so many of the 150 intents come with each task, from the first on
    alphabetically.
    """
    with lzma.open(folder / "text" / "clinc150_data_full.json.xz") as file:
        content = json.load(file)
    intents = sorted({intent for _, intent in content["train"]})[first:]
    data = Data(place.name, "texts", place, {}, [], [], [])
    for t in range(TASKS):
        mine = set(intents[sum(each[:t]) : sum(each[: t + 1])])
        pool = [row for row in content["train"] if row[1] in mine]
        test = [row for row in content["val"] + content["test"] if row[1] in mine]
        names = [str(i) for i in range(len(pool))]
        data.pools.append(NewItems("texts", "clinc150", names, texts=[text for text, _ in pool]))
        data.truth += [intent for _, intent in pool]
        data.tests.append([text for text, _ in test])
        data.answers.append([intent for _, intent in test])
    return data


ATTACKS = (("neptune", "back"), ("satan", "ipsweep", "portsweep", "nmap"), ("smurf", "teardrop", "warezclient"))


def nslkdd(folder: Path, place: Path) -> Data:
    """Network connections: normal ones in every task, and new kinds of attacks in each, as fraud patterns come up."""
    with lzma.open(folder / "tabular" / "nslkdd_train20.csv.xz", "rt") as file:
        rows = list(csv.reader(file))
    return nslkdd_tasks(place, encoded_connections(rows), np.array([row[41] for row in rows]), ATTACKS)


def encoded_connections(rows: list[list[str]]) -> np.ndarray:
    """Connections as vectors: a column for each protocol, service and flag, and the logarithms of large numbers."""
    columns = list(zip(*(row[:41] for row in rows), strict=True))
    parts = []
    for number, column in enumerate(columns):
        if number in (1, 2, 3):  # protocol, service, flag
            parts += [[float(value == known) for value in column] for known in sorted(set(column))]
        else:
            values = np.array(column, float)
            parts.append(np.log1p(values) if values.max() > 1 else values)
    return np.stack([np.asarray(part, np.float32) for part in parts], axis=1)


def nslkdd_tasks(place: Path, vectors: np.ndarray, labels: np.ndarray, kinds: tuple[tuple[str, ...], ...]) -> Data:
    """Normal connections in every task, and the kinds of attacks that come with each."""
    draw = np.random.default_rng(0)
    turn, kept = draw.integers(TASKS, size=len(labels)), draw.random(len(labels)) < 0.6
    data = Data(place.name, "vectors", place, {"head": "mlp"}, [], [], [])
    for t, attacks in enumerate(kinds):
        mine = ((labels == "normal") & (turn == t)) | np.isin(labels, attacks)
        pool, test = np.flatnonzero(mine & kept), np.flatnonzero(mine & ~kept)
        data.pools.append(NewItems("vectors", "nslkdd", [str(i) for i in pool], vectors=vectors[pool]))
        data.truth += labels[pool].tolist()
        data.tests.append(vectors[test])
        data.answers.append(labels[test].tolist())
    return data


LITE0 = {"model": "efficientnet-lite0", "image_size": 128}
LITE2 = {"model": "efficientnet-lite2", "image_size": 224}  # what new projects of images see through


def cifar100(folder: Path, place: Path, first: int = 0, tested: int = 100, **options: Any) -> Data:
    """Photographs: ten classes a task from the first on, 200 images each, under EfficientNet-Lite0 at 128 pixels."""
    return photographs(folder / "cifar100", place, ("train", "test"), ("img", "fine_label"), first, tested, **options)


def tiny_imagenet(folder: Path, place: Path, **options: Any) -> Data:
    """Photographs of TinyImageNet; its validation images are the test."""
    return photographs(folder / "tiny-imagenet", place, ("train", "valid"), ("image", "label"), 0, tested=50, **options)


def photographs(
    folder: Path,
    place: Path,
    splits: tuple[str, str],
    columns: tuple[str, str],
    first: int,
    tested: int,
    classes: int = 10,
    each: int = 200,
    network: dict[str, Any] = LITE0,
) -> Data:
    """Images in Parquet as PNG files, one folder a task."""
    data = Data(place.name, "images", place, dict(network), [], [], [])
    for split, count in zip(splits, (each, tested), strict=True):
        table = pq.read_table(next(folder.glob(f"{split}-*.parquet")))
        labels = table.column(columns[1]).to_numpy()
        names = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"][columns[1]]["names"]
        for t in range(TASKS):
            target = place / "images" / split / str(t)
            target.mkdir(parents=True, exist_ok=True)
            for c in range(first + t * classes, first + (t + 1) * classes):
                for i in np.flatnonzero(labels == c)[:count]:
                    path = target / f"{i:05}-{c:02}.png"
                    if not path.exists():
                        encoded = table.column(columns[0])[int(i)].as_py()["bytes"]
                        Image.open(io.BytesIO(encoded)).save(path)
            source = read_images(target, ignore)
            answers = [names[int(name.rpartition("-")[2][:-4])] for name in source.names]
            if split == splits[0]:
                data.pools.append(source)
                data.truth += answers
            else:
                data.tests.append(source)
                data.answers.append(answers)
    return data


def long_tailed(made: Callable[[Path, Path], Data], folder: Path, place: Path) -> Data:
    """Data with pools in which the rarest class has a twentieth of the commonest, and tests weighted alike."""
    data = made(folder, place)
    truth, kept_truth, weights = iter(data.truth), [], []
    for t, pool in enumerate(list(data.pools)):
        classes = np.array([next(truth) for _ in pool.names])
        names, counts = np.unique(classes, return_counts=True)
        order = np.random.default_rng(t).permutation(len(names))
        kept = np.maximum(1, (counts * 0.05 ** (order / (len(names) - 1))).astype(int))
        rows = np.sort(np.concatenate([np.flatnonzero(classes == c)[:k] for c, k in zip(names, kept, strict=True)]))
        data.pools[t] = pool.only(rows.tolist())
        kept_truth += classes[rows].tolist()
        tested = np.array(data.answers[t])
        share = {c: k / max(1, np.count_nonzero(tested == c)) for c, k in zip(names, kept, strict=True)}
        weights.append(np.array([share[c] for c in data.answers[t]]))
    data.truth, data.weights = kept_truth, weights
    return data


def tenth_wrong(made: Callable[[Path, Path], Data], folder: Path, place: Path) -> Data:
    """Data with an annotator who is wrong one time in ten."""
    return replace(made(folder, place), wrong=0.1)


# The later classes are there to report on what was chosen on the first ones.
DATA: dict[str, Callable[[Path, Path], Data]] = {
    "clinc150": clinc150,
    "nslkdd": nslkdd,
    "cifar100": cifar100,
    "clinc150-later": partial(clinc150, first=60),
    "cifar100-later": partial(cifar100, first=30),
    "clinc150-uneven": partial(clinc150, first=60, each=(5, 50, 15)),  # an easy task, a hard one, and one between
    "tiny-imagenet": tiny_imagenet,
}
DATA |= {f"{name}-tail": partial(long_tailed, DATA[name]) for name in ("clinc150", "cifar100")}
DATA |= {f"{name}-wrong": partial(tenth_wrong, DATA[name]) for name in ("clinc150", "nslkdd", "cifar100")}

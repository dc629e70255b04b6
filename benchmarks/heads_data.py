"""Data sets of benchmarks/heads_study.py as arrays: what the heads of projects see, made once and kept in a cache.

Three tasks each, as in benchmarks/project_data.py. Names that end in `-choose` have other classes (of NSL-KDD: another
file with other attacks) than those that are reported. Names that end in `-lite2` have the reported images, seen
through the network of new projects. `+tail`, `+blurry` and `+wrong` are made from the arrays.
"""

from __future__ import annotations

import csv
import lzma
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from project_data import DATA, LITE2, TASKS, Data, clinc150, encoded_connections, nslkdd_tasks, photographs

from accuacl.base.progress import ignore
from accuacl.labeling.project import Tasks, encoders, make, task_inputs

BLURRED = 0.3  # share of a pool whose rows come with another task
KIND_OF_BLOCKS = {"texts": [(0, 256), (256, 4352)]}  # token vectors, TF-IDF


@dataclass
class Arrays:
    """pools, tests: rows of each task as a head sees them; truth, answers: their classes.

    weights: what a test row counts for, where pools have other shares of classes than tests. wrong: the share of an
    annotator's answers that are another class. blocks: ranges of columns that belong together.
    """

    name: str
    kind: str
    blocks: list[tuple[int, int]]
    pools: list[np.ndarray]
    truth: list[np.ndarray]
    tests: list[np.ndarray]
    answers: list[np.ndarray]
    weights: list[np.ndarray] | None = None
    wrong: float = 0.0

    @property
    def classes(self) -> int:
        return 1 + max(int(labels.max()) for labels in self.truth)


def load(name: str, data_dir: Path, cache: Path) -> Arrays:
    """The arrays called `name`; made now unless the cache has them."""
    base, _, variant = name.partition("+")
    path = cache / f"{base}.npz"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        data = BASES[base](data_dir, cache / base)
        part = path.with_suffix(".part.npz")
        np.savez(part, **encoded(data, cache / base))
        part.rename(path)
    with np.load(path, allow_pickle=False) as file:
        parts = {part: [file[f"{part}{t}"] for t in range(TASKS)] for part in ("pools", "truth", "tests", "answers")}
        kind = str(file["kind"])
    width = parts["pools"][0].shape[1]
    arrays = Arrays(name, kind, KIND_OF_BLOCKS.get(kind, [(0, width)]), **parts)
    return VARIANTS[variant](arrays) if variant else arrays


def encoded(data: Data, place: Path) -> dict[str, np.ndarray]:
    """Pools and tests as a project with these data sees them: embedded, and scaled by the first task."""
    settings = make({"kind": data.kind} | data.settings)
    tasks, tested = Tasks(place / "tasks"), Tasks(place / "tested")
    for source in data.pools[len(tasks.all()) :]:
        tasks.add(source)
    inputs = task_inputs.open_task_inputs(
        tasks, [task_inputs.prepare(tasks, task, settings, ignore) for task in tasks.all()], settings
    )
    classes = sorted(set(data.truth))
    found: dict[str, np.ndarray] = {"kind": np.array(data.kind)}
    for task in tasks.all():
        t = task.index
        found[f"pools{t}"] = inputs[task.ids]
        found[f"truth{t}"] = np.array([classes.index(data.truth[item]) for item in task.ids])
        if data.kind == "texts":
            raw = encoders.text_encoder(settings, tasks)(data.tests[t])
        elif data.kind == "vectors":
            raw = data.tests[t]
        else:
            if len(tested.all()) <= t:
                tested.add(data.tests[t])
            task_inputs.prepare(tested, tested.all()[t], settings, ignore)
            raw = np.load(tested.folder_of(t) / "inputs.npy")
        found[f"tests{t}"] = task_inputs.scaled(raw, inputs.scale)
        found[f"answers{t}"] = np.array([classes.index(name) for name in data.answers[t]])
    return found


OTHER_ATTACKS = (
    ("guess_passwd", "mscan", "back"),
    ("warezmaster", "apache2", "satan"),
    ("processtable", "snmpguess", "saint", "mailbomb"),
)


def other_connections(folder: Path, place: Path) -> Data:
    """NSL-KDD's test file, in which most attacks are others than in its training file."""
    with lzma.open(folder / "tabular" / "nslkdd_test.csv.xz", "rt") as file:
        rows = list(csv.reader(file))
    return nslkdd_tasks(place, encoded_connections(rows), np.array([row[41] for row in rows]), OTHER_ATTACKS)


def tailed(arrays: Arrays) -> Arrays:
    """The rarest class of each pool has a twentieth of the commonest, and tests are weighted alike."""
    pools, truth, weights = [], [], []
    for t, (pool, labels, answers) in enumerate(zip(arrays.pools, arrays.truth, arrays.answers, strict=True)):
        names, counts = np.unique(labels, return_counts=True)
        order = np.random.default_rng(t).permutation(len(names))
        kept = np.maximum(1, (counts * 0.05 ** (order / (len(names) - 1))).astype(int))
        rows = np.sort(np.concatenate([np.flatnonzero(labels == c)[:k] for c, k in zip(names, kept, strict=True)]))
        pools.append(pool[rows])
        truth.append(labels[rows])
        share = {c: k / max(1, np.count_nonzero(answers == c)) for c, k in zip(names, kept, strict=True)}
        weights.append(np.array([share.get(c, 0.0) for c in answers]))
    return replace(arrays, pools=pools, truth=truth, weights=weights)


def blurred(arrays: Arrays) -> Arrays:
    """Some rows of each pool come with another task: classes have no sharp beginning and do not end."""
    rng = np.random.default_rng(0)
    turns = [
        np.where(rng.random(len(pool)) < BLURRED, (t + rng.integers(1, TASKS, len(pool))) % TASKS, t)
        for t, pool in enumerate(arrays.pools)
    ]
    pools, truth = (
        [np.concatenate([rows[turn == t] for rows, turn in zip(parts, turns, strict=True)]) for t in range(TASKS)]
        for parts in (arrays.pools, arrays.truth)
    )
    return replace(arrays, pools=pools, truth=truth)


VARIANTS: dict[str, Callable[[Arrays], Arrays]] = {
    "tail": tailed,
    "blurry": blurred,
    "wrong": lambda arrays: replace(arrays, wrong=0.1),
}
SPLITS, COLUMNS = ("train", "valid"), ("image", "label")


def other_tiny_images(folder: Path, place: Path) -> Data:
    return photographs(folder / "tiny-imagenet", place, SPLITS, COLUMNS, first=100, tested=50)


BASES: dict[str, Callable[[Path, Path], Data]] = {
    "clinc150": DATA["clinc150-later"],
    "cifar100": DATA["cifar100-later"],
    "tiny-imagenet": DATA["tiny-imagenet"],
    "nslkdd": DATA["nslkdd"],
    "clinc150-choose": partial(clinc150, first=0),
    "cifar100-choose": DATA["cifar100"],
    "tiny-imagenet-choose": other_tiny_images,
    "nslkdd-choose": other_connections,
    "cifar100-lite2": partial(DATA["cifar100-later"], network=LITE2),
    "tiny-imagenet-lite2": partial(DATA["tiny-imagenet"], network=LITE2),
}

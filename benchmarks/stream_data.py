"""Data sets as vectors, in the folders that the study of streams runs on.

    python benchmarks/stream_data.py --data-dir DATA --out runs/stream-data

DATA (or ACCUACL_DATA) holds cifar100/ as Parquet, text/clinc150_data_full.json.xz, tabular/nslkdd_train20.csv.xz and
tabular/fraud_oracle.csv.xz. A folder that is there already is left alone. Made are

- cifar100-features: 100 training and 20 test images of each class under EfficientNet-Lite0 at 128 pixels (its weights
  are in the extra `label`)
- cifar100-looks: the same images under five corruptions, named by the column `domain`
- clinc150: sentences of 150 intents, TF-IDF brought to 256 columns by a truncated singular value decomposition
- clinc150-looks: the same sentences plain, with typing errors, and without their vowels
- nslkdd: connections of the 15 classes that have at least five; the column `domain` is the protocol
- fraud: insurance claims; the column `task` is the year
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from accuacl.base.randomness import rank
from accuacl.experiments.data import Dataset, Split, StreamOptions, load, make_stream
from accuacl.experiments.networks import MEAN, STD, load_pretrained

DOMAINS, SIDE, COLUMNS, SEED = 5, 128, 256, 0
Arrays = dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ACCUACL_DATA"))
    parser.add_argument("--out", type=Path, default=Path("runs/stream-data"))
    parser.add_argument("--only", nargs="+", choices=list(MADE), default=list(MADE))
    given = parser.parse_args()
    if given.data_dir is None:
        parser.error("give --data-dir or set ACCUACL_DATA")
    for name in given.only:
        folder = given.out / name
        if (folder / "data.npz").exists():
            continue
        arrays, classes = MADE[name](given.data_dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "classes.txt").write_text("\n".join(classes) + "\n")
        np.savez(folder / "part.npz", **arrays)
        (folder / "part.npz").rename(folder / "data.npz")
        print(name, {key: array.shape for key, array in arrays.items()}, flush=True)


def cifar100(data_dir: Path, corrupted: bool = False) -> tuple[Arrays, list[str]]:
    data = load("cifar100", data_dir)
    small = Dataset("cifar100", _some(data.train, 100), _some(data.test, 20), data.classes)
    columns = {}
    if corrupted:
        stream = make_stream(small, None, StreamOptions(domains=DOMAINS, seed=SEED))
        small = stream.dataset
        for split, rows in (("train", [t.train for t in stream]), ("test", [t.test for t in stream])):
            domain = np.empty(sum(map(len, rows)), np.int64)
            for i, some in enumerate(rows):
                domain[some] = i
            columns[f"domain_{split}"] = domain
    splits = {"train": small.train, "test": small.test}
    arrays = {f"x_{name}": _embedded(split) for name, split in splits.items()}
    labels = {f"y_{name}": split.labels for name, split in splits.items()}
    return arrays | labels | columns, list(data.classes)


def _some(split: Split, each: int) -> Split:
    """The first images of each class."""
    rows = np.sort(np.concatenate([np.flatnonzero(split.labels == c)[:each] for c in np.unique(split.labels)]))
    return Split(np.array(split.inputs[rows]), split.labels[rows])


def _embedded(split: Split) -> np.ndarray:
    network = load_pretrained("efficientnet-lite0")
    mean, std = (torch.tensor(part).view(3, 1, 1) for part in (MEAN, STD))
    parts = []
    with torch.no_grad():
        for start in range(0, len(split), 64):
            images = torch.from_numpy(np.array(split.inputs[start : start + 64])).permute(0, 3, 1, 2) / 255
            large = interpolate(images, SIDE, mode="bilinear", antialias=True)
            parts.append(network.extract_features((large - mean) / std).mean(dim=(2, 3)))
            print(f"\r{start}/{len(split)}", end="", flush=True)
    print()
    return torch.cat(parts).numpy()


def clinc150(data_dir: Path, corrupted: bool = False) -> tuple[Arrays, list[str]]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    with lzma.open(data_dir / "text" / "clinc150_data_full.json.xz") as file:
        content = json.load(file)
    intents = sorted({intent for _, intent in content["train"]})
    splits = {"train": content["train"], "test": content["val"] + content["test"]}
    vectorizer = TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(2, 4), max_features=20_000)
    plain = vectorizer.fit_transform([text for text, _ in splits["train"]])
    reduced = TruncatedSVD(COLUMNS, random_state=SEED).fit(plain)
    arrays: Arrays = {}
    for split, rows in splits.items():
        domain = np.array(
            [int.from_bytes(rank(f"look {split}", i)[:4]) % 3 if corrupted else 0 for i in range(len(rows))]
        )
        texts = [TEXT_CORRUPTIONS[k](text, i) for i, ((text, _), k) in enumerate(zip(rows, domain, strict=True))]
        arrays[f"x_{split}"] = reduced.transform(vectorizer.transform(texts)).astype(np.float32)
        arrays[f"y_{split}"] = np.array([intents.index(intent) for _, intent in rows])
        if corrupted:
            arrays[f"domain_{split}"] = np.array(["plain", "typing errors", "without vowels"])[domain]
    return arrays, intents


def _typed(text: str, number: int) -> str:
    """Two letters of every third word change places."""
    words = text.split()
    for i in range(number % 3, len(words), 3):
        if len(words[i]) > 3:
            words[i] = words[i][0] + words[i][2] + words[i][1] + words[i][3:]
    return " ".join(words)


TEXT_CORRUPTIONS: list[Callable[[str, int], str]] = [
    lambda text, _: text,
    _typed,
    lambda text, _: " ".join(word[0] + "".join(c for c in word[1:] if c not in "aeiou") for word in text.split()),
]


def nslkdd(data_dir: Path) -> tuple[Arrays, list[str]]:
    with lzma.open(data_dir / "tabular" / "nslkdd_train20.csv.xz", "rt") as file:
        rows = list(csv.reader(file))
    names, counts = np.unique([row[41] for row in rows], return_counts=True)
    classes = names[counts >= 5].tolist()
    rows = [row for row in rows if row[41] in classes]
    vectors = _numbers(list(zip(*(row[:41] for row in rows), strict=True)), texts={1, 2, 3})
    labels = np.array([classes.index(row[41]) for row in rows])
    return _split(vectors, labels, {"domain": np.array([row[1] for row in rows])}, SEED), classes


def fraud(data_dir: Path) -> tuple[Arrays, list[str]]:
    with lzma.open(data_dir / "tabular" / "fraud_oracle.csv.xz", "rt") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("FraudFound_P", "PolicyNumber", "Year")]
    columns = [[row[name] for row in rows] for name in names]
    texts = {i for i, column in enumerate(columns) if not all(value.isdigit() for value in column)}
    labels = np.array([int(row["FraudFound_P"]) for row in rows])
    years = {"task": np.array([row["Year"] for row in rows])}
    return _split(_numbers(columns, texts), labels, years, SEED), ["fine", "fraud"]


def _numbers(columns: list[Any], texts: set[int]) -> np.ndarray:
    """A column for each value of a text; other columns with mean 0 and deviation 1, large ones as logarithms."""
    parts = []
    for number, column in enumerate(columns):
        if number in texts:
            parts += [np.array([value == known for value in column], np.float32) for known in sorted(set(column))]
        else:
            values = np.array(column, float)
            values = np.log1p(values) if values.max() > 100 else values
            parts.append((values - values.mean()) / (values.std() or 1))
    return np.stack(parts, axis=1).astype(np.float32)


def _split(vectors: np.ndarray, labels: np.ndarray, columns: Arrays, seed: int) -> Arrays:
    """Two fifths of every class are the test, at least one."""
    rng, test = np.random.default_rng(seed), np.zeros(len(labels), bool)
    for c in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == c))
        test[rows[: max(1, 2 * len(rows) // 5)]] = True
    arrays = {}
    for name, inside in (("train", ~test), ("test", test)):
        arrays |= {f"x_{name}": vectors[inside], f"y_{name}": labels[inside]}
        arrays |= {f"{column}_{name}": values[inside] for column, values in columns.items()}
    return arrays


MADE: dict[str, Callable[[Path], tuple[Arrays, list[str]]]] = {
    "nslkdd": nslkdd,
    "fraud": fraud,
    "clinc150": clinc150,
    "clinc150-looks": lambda data_dir: clinc150(data_dir, corrupted=True),
    "cifar100-features": cifar100,
    "cifar100-looks": lambda data_dir: cifar100(data_dir, corrupted=True),
}

if __name__ == "__main__":
    main()

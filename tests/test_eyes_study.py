"""The benchmarks behind docs/embedding.md still give what the files of results say."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from accuacl.experiments.data import Dataset, Split
from effort import has_pretrained

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import embedding_accuracy  # noqa: E402
import text_scripts  # noqa: E402


def recorded(name):
    with (ROOT / "docs" / "results" / "eyes" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("language", ["chinese", "japanese", "thai", "english"])
def test_words_by_script(language):
    rows = [row for row in recorded("scripts") if row["language"] == language and row["seed"] == "0"]
    assert {(row["words"], row["labels"]) for row in rows} == {
        (w, n) for w in ("spaces", "scripts") for n in ("3", "10")
    }
    for row in rows:
        accuracy = text_scripts.accuracy(language, row["words"], int(row["labels"]), 0)
        assert accuracy == pytest.approx(float(row["accuracy"]), abs=1.0)  # a sentence or two, on another processor


def test_accuracy_is_recorded_for_all_networks_sides_data_and_seeds():
    rows = recorded("accuracy")
    cells = {tuple(row[name] for name in embedding_accuracy.COLUMNS[:-1]) for row in rows}
    assert len(cells) == len(rows)  # none twice
    assert cells >= {
        (data, f"efficientnet-lite{network}", str(side), "onnxruntime", str(seed), str(labels))
        for data in ("cifar10", "cifar100", "tiny-imagenet")
        for network in (0, 2)
        for side in (128, 160, 224)
        for seed in range(5)
        for labels in (3, 10, 30)
    }


@pytest.mark.skipif(not has_pretrained(), reason="the extra `label` is not installed")
def test_images_that_differ_are_told_apart():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    noise = rng.integers(0, 100, (60, 32, 32, 3))
    images = np.where(labels[:, None, None, None], noise, 255 - noise).astype(np.uint8)
    split = Split(images, labels)
    network = embedding_accuracy.pretrained_network("efficientnet-lite0")
    both = Dataset("dark or bright", split, Split(images[::-1].copy(), labels[::-1].copy()), ("bright", "dark"))
    measured = dict(embedding_accuracy.measure(both, 0, network, 32, "torch", 1))
    assert measured.keys() == {3, 10, 30}
    assert measured[30] == "100.00"  # all of the images that it is tested on
    assert float(measured[3]) > 75

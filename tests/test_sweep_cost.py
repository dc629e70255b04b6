"""What runs cost beside each other."""

from __future__ import annotations

import pytest

from accuacl.experiments import make
from accuacl.experiments.sweeps import cost

USUAL = {"benchmark": "split-cifar100", "scale": "cpu", "strategy": "accuacl"}


@pytest.mark.parametrize(
    "dearer",
    [
        {"strategy": "accuacl-full"},
        {"replay": "cycled"},
        {"evaluate": "round"},
        {"rounds": 10},
        {"learner": "der++"},
        {"memory": 1000},
    ],
)
def test_what_takes_longer_costs_more(dearer):
    assert cost.images(make(USUAL | dearer)) > 1.02 * cost.images(make(USUAL))


def test_all_published_images_are_counted():
    run = make({"benchmark": "split-tiny-imagenet", "scale": "cpu", "strategy": "full", "tasks": 1, "epochs": 1})
    assert cost.images(run) == pytest.approx(10_000 + 1_000 / 3, rel=0.01)


def test_a_part_of_the_tests_costs_less():
    assert cost.images(make(USUAL | {"test": 10})) < cost.images(make(USUAL))

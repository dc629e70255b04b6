"""Avalanche's Replay beside a bare PyTorch loop on the problem of benchmarks/training.py; prints JSON.

For benchmarks/peers.py --avalanche-python; needs nothing of accuacl. The same net, 1,000 new images after 500
remembered ones, two epochs, one thread, 32 new images and 32 remembered ones a step. Nothing is augmented.
"""

from __future__ import annotations

import copy
import itertools
import json
import time

import avalanche
import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.training import Replay
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

WIDTHS = (3, 24, 48, 96, 192)
NEW, MEMORY, BATCH, EPOCHS, REPEATS = 1000, 500, 32, 2, 5


def main() -> None:
    torch.set_num_threads(1)
    untrained = net()
    runs = {"bare": [bare(copy.deepcopy(untrained)) for _ in range(REPEATS)]}
    runs["replay"] = [replay(copy.deepcopy(untrained)) for _ in range(REPEATS)]
    rates = {name: max(results) for name, results in runs.items()}
    print(json.dumps({"version": avalanche.__version__, "torch": torch.__version__, "rates": rates}))


def net() -> nn.Module:
    """conv4 of `cpu` scale."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(WIDTHS):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after)]
        layers += [nn.MaxPool2d(2), nn.ReLU(inplace=True)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[-1], 10)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def images(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random images of ten classes."""
    draws = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, 32, 32, generator=draws).to(memory_format=torch.channels_last)
    return x, torch.randint(0, 10, (count,), generator=draws)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.8, weight_decay=1e-4)


def bare(model: nn.Module) -> float:
    """Images per second of CPU time of the least that training needs."""
    batches = [images(2 * BATCH, seed) for seed in range(-(-NEW // BATCH))] * EPOCHS
    optimiser = sgd(model)
    began = time.process_time()
    for x, y in batches:
        loss = cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return 2 * BATCH * len(batches) / (time.process_time() - began)


def replay(model: nn.Module) -> float:
    """Images per second of CPU time of Replay on the second experience, new and remembered ones together."""
    strategy = Replay(
        model=model,
        optimizer=sgd(model),
        criterion=nn.CrossEntropyLoss(),
        mem_size=MEMORY,
        train_mb_size=BATCH,
        train_epochs=EPOCHS,
        evaluator=None,
    )
    first, second = benchmark_from_datasets(train=[dataset(MEMORY, 0), dataset(NEW, 1)]).train_stream
    strategy.train(first)
    shown = 0

    def count(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        nonlocal shown
        shown += len(given[0])

    model.register_forward_pre_hook(count)
    began = time.process_time()
    strategy.train(second)
    return shown / (time.process_time() - began)


def dataset(count: int, seed: int) -> object:
    x, y = images(count, seed)
    data = TensorDataset(x, y)
    data.targets = y.tolist()  # where Avalanche looks for them
    return as_classification_dataset(data)


if __name__ == "__main__":
    main()

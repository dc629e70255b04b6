"""What a run will cost on this machine, from the measured speed of its network."""

from __future__ import annotations

import functools
import time

import torch
from torch.nn.functional import cross_entropy

from accuacl import models
from accuacl.experiment import Config

SHAPES = {"split-digits": (64,), "split-tiny-imagenet": (3, 64, 64)}  # the others are 3 x 32 x 32
EXAMPLES = {"split-digits": (1_437, 360), "split-tiny-imagenet": (40_000, 10_000)}  # the others 50,000 and 10,000
TASKS = {"split-digits": 5, "split-cifar10": 5}  # the others 10
REPLAY = {"der++": 1.0, "er-ace": 1.0, "gss": 1.3}  # examples replayed, or scored, for each new one


def core_seconds(config: Config) -> float:
    """About how long the run keeps one core busy."""
    train, test = EXAMPLES.get(config.benchmark, (50_000, 10_000))
    stream = TASKS.get(config.benchmark, 10)
    tasks = min(config.tasks or stream, stream)
    pool = min(config.pool or train, train // stream)
    looked_at = config.strategy not in ("uniform", "full") or config.evaluate == "round"
    learned = looked = 0.0
    for task in range(tasks):
        rounds = config.last_rounds if config.last_rounds and task == tasks - 1 else config.rounds
        rounds = 1 if config.strategy == "full" else rounds
        for r in range(rounds):
            labels = pool if config.strategy == "full" else min(pool, config.labels * (r + 1) // config.rounds)
            if looked_at or r == rounds - 1:
                replayed = min(config.memory, task * config.labels, labels)  # ER's, once an epoch
                learned += config.epochs * (labels + labels * REPLAY.get(config.learner, replayed / max(labels, 1)))
            looked += pool if looked_at and r and config.strategy != "uniform" else 0
        looked += test * (task + 1) / stream
    return (learned + looked / 3) / images_per_second(config.benchmark, config.model, config.width, config.batch)


@functools.cache
def images_per_second(benchmark: str, model: str, width: int, batch: int) -> float:
    """Training speed of a network on one thread, measured for about a second."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        shape = SHAPES.get(benchmark, (3, 32, 32))
        net = models.build(model, 100, seed=0, input_shape=shape, width=width or None)
        x, y = torch.zeros(batch, *shape), torch.zeros(batch, dtype=torch.int64)
        steps, seconds = -1, 0.0  # the first step is not counted
        while seconds < 1:
            start = time.perf_counter()
            cross_entropy(net(x), y).backward()  # type: ignore[no-untyped-call]
            steps += 1
            seconds += time.perf_counter() - start if steps else 0.0
        return steps * batch / seconds
    finally:
        torch.set_num_threads(before)

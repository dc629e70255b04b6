"""What a run costs: how many images it trains on, and on this machine how long, from its network's measured speed."""

from __future__ import annotations

import functools
import time

import torch
from torch.nn.functional import cross_entropy

from accuacl.experiments import Config, models
from accuacl.experiments.learners import REGISTRY as LEARNERS

SHAPES = {"split-digits": (64,), "split-tiny-imagenet": (3, 64, 64)}  # the others are 3 x 32 x 32
EXAMPLES = {"split-digits": (1_201, 596), "split-tiny-imagenet": (100_000, 10_000)}  # the others 50,000 and 10,000
TASKS = {"split-digits": 5, "split-cifar10": 5}  # the others 10


def core_seconds(config: Config) -> float:
    """About how long the run keeps one core busy."""
    return images(config) / images_per_second(config.benchmark, config.model, config.width, config.batch)


def images(config: Config) -> float:
    """How many images the run trains on; three that are only predicted count as one."""
    train, test = EXAMPLES.get(config.benchmark, (50_000, 10_000))
    stream = (config.domains or TASKS.get(config.benchmark, 10)) * (1 + config.recurring)
    tasks = min(config.tasks or stream, stream)
    pool = min(config.pool or train, train // stream)
    tested = min(config.test or test, test * (1 + config.recurring) // stream)
    asks = config.strategy not in ("uniform", "full")
    learned = looked = 0.0
    for task in range(tasks):
        rounds = config.last_rounds if config.last_rounds and task == tasks - 1 else config.rounds
        rounds = 1 if config.strategy == "full" else rounds
        memory = min(config.memory, task * config.labels)
        for r in range(rounds):
            labels = pool if config.strategy == "full" else min(pool, config.labels * (r + 1) // config.rounds)
            if asks and r:
                looked += pool + (task * pool if config.strategy == "accuacl-full" else memory)
            if not (asks or config.evaluate == "round" or r == rounds - 1):
                continue  # nothing looks at the weights of this round
            if LEARNERS[config.learner].exact:  # looks once at all labels there are
                looked += labels + task * config.labels
            else:
                learned += config.epochs * (labels + _replayed(config, labels, memory))
            looked += tested * (task + 1) if config.evaluate == "round" else 0
        looked += tested * (task + 1)
    return learned + looked / 3


def _replayed(config: Config, labels: int, memory: int) -> float:
    """Examples replayed, or scored, in an epoch with this many labels."""
    if "replay" not in LEARNERS[config.learner].settings:
        return labels * LEARNERS[config.learner].replayed
    if config.replay == "cycled" or config.learner_variant == "original":
        return labels * min(memory, config.batch) / config.batch
    return min(memory, labels)  # the whole memory once an epoch


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

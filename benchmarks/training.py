"""What the ER loop costs beside a bare PyTorch loop: same net, same batches, one thread.

The bare loop is given the very batches, as float tensors in memory, that the ER loop made by shuffling, replaying,
cropping, flipping and normalising; both must end with the same weights. Run: python benchmarks/training.py
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import accuacl.experiments.learners.round
from accuacl.experiments.learners import Round, TaskData, Training, Transform, start
from accuacl.experiments.learners.loop import learning_rate
from accuacl.experiments.memory import Memory
from accuacl.experiments.models import Classifier, build

LIMIT = 1.10
Batches = list[list[tuple[Tensor, Tensor]]]  # by epoch


def main() -> None:
    options = arguments().parse_args()
    times, batches = measured(options)
    steps, shown = sum(len(epoch) for epoch in batches), images(batches)
    print(
        f"{options.net}, {steps} steps of {options.batch} new examples, {shown} images, least of {options.repeats} runs"
    )
    print(f"{'loop':<6}{'CPU seconds':>12}{'images/s':>10}")
    for name, seconds in times.items():
        print(f"{name:<6}{min(seconds):>12.3f}{shown / min(seconds):>10.0f}")
    pairs = [er / bare for er, bare in zip(times["er"], times["bare"], strict=True)]
    ratio = float(np.median(pairs))  # of runs back to back: the least of each may come from a quiet and a busy minute
    print(
        f"ratio {ratio:.3f} ({'within' if ratio <= LIMIT else 'ABOVE'} {LIMIT:.2f}), the median of {len(pairs)} pairs"
    )
    print(
        f"pairs from {min(pairs):.3f} to {max(pairs):.3f}; least by least {min(times['er']) / min(times['bare']):.3f}"
    )


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", default="conv4")
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--memory", type=int, default=500)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--cycled", action="store_true", help="replay at every step, not once through the memory")
    return parser


def measured(options: argparse.Namespace) -> tuple[dict[str, list[float]], Batches]:
    """CPU seconds of each loop, run in turns, and the batches that both were given."""
    torch.set_num_threads(1)

    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (options.labels + options.memory, 32, 32, 3), dtype=np.uint8))
    labels = rng.integers(0, 10, len(images))
    ids = np.arange(len(images))
    task = TaskData(ids[: options.labels], labels[: options.labels], images[: options.labels])
    memory = Memory(ids[options.labels :], labels[options.labels :])
    sizes = {"capacity": options.memory, "cycled": options.cycled}
    training = Training(options.epochs, options.batch, 0.03, 0.8, 1e-4, **sizes)
    transform = Transform((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), crop=4, flip=True)
    untrained = build(options.net, 10, seed=0, input_shape=(3, 32, 32))

    def er(model: Classifier) -> None:
        common = {"seed": (0, 1, 0), "last_round": True, "seen": np.arange(10)}
        start("er", Round(model, task, memory, lambda i: images[i], training, transform, **common)).train()

    batches = recorded(er, copy.deepcopy(untrained), training)
    times: dict[str, list[float]] = {"bare": [], "er": []}
    for _ in range(options.repeats):  # in turns, so that a busy machine slows both
        ends = {}
        for name, run in (("bare", lambda model: bare(model, batches, training)), ("er", er)):
            model = copy.deepcopy(untrained)
            began = time.process_time()
            run(model)
            times[name].append(time.process_time() - began)
            ends[name] = model.state_dict()
        assert all(torch.equal(ends["bare"][key], ends["er"][key]) for key in ends["er"]), "the loops differ"

    return times, batches


def images(batches: Batches) -> int:
    """How many images pass through the net, replayed ones too."""
    return sum(len(x) for epoch in batches for x, _ in epoch)


def bare(model: Classifier, batches: Batches, training: Training) -> None:
    """The least that training needs."""
    optimiser = torch.optim.SGD(
        model.parameters(), lr=training.lr, momentum=training.momentum, weight_decay=training.weight_decay
    )
    model.train()
    for epoch, pairs in enumerate(batches):
        optimiser.param_groups[0]["lr"] = learning_rate(training, epoch)
        for x, y in pairs:
            loss = cross_entropy(model(x), y)
            optimiser.zero_grad()  # here, as the ER loop has it: before the forward pass it costs a ResNet18 9 % more
            loss.backward()
            optimiser.step()


def recorded(er: Callable[[Classifier], None], model: Classifier, training: Training) -> Batches:
    """The batches of an ER run, caught on their way into the model and its loss."""
    xs: list[Tensor] = []
    ys: list[Tensor] = []

    def catch(z: Tensor, y: Tensor) -> Tensor:
        ys.append(y)
        return cross_entropy(z, y)

    hook = model.register_forward_pre_hook(lambda _, given: xs.append(given[0]))
    accuacl.experiments.learners.round.cross_entropy = catch
    er(model)
    accuacl.experiments.learners.round.cross_entropy = cross_entropy
    hook.remove()
    size = len(xs) // training.epochs
    pairs = list(zip(xs, ys, strict=True))
    return [pairs[i * size : (i + 1) * size] for i in range(training.epochs)]


if __name__ == "__main__":
    main()

"""Why does DER++ forget more at paper scale than in the paper? One suspect at a time, on split-cifar10 with uniform.

    ACCUACL_DATA=DIR python benchmarks/suspects.py run --out runs/suspects --csv docs/results/baseline/suspects.csv
    python benchmarks/suspects.py table --csv docs/results/baseline/suspects.csv --table REPRODUCIBILITY.md

`run` works through SUSPECTS in order, in one process with one thread, and adds a row to the table after each run; given
again, it resumes. `--only "learning rate 0.03, ER" --epochs 10 --seed 100` does only that one. The file is also a
plugin, for one run at a time:

    accuacl run --plugin benchmarks/suspects.py --learner der++-same-epochs --benchmark split-cifar10 --scale paper ...
    accuacl run --model benchmarks/suspects.py:torch_initialisation --learner der++ --benchmark split-cifar10 ...

The paper (memory 100, 1000 labels a task): DER++ A 39.2, F 49.0, LA 78.4; ER A 20.4, F 77.1, LA 82.1 (LA = A + 0.8 F).
"""

from __future__ import annotations

import argparse
import contextlib
import csv
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from accuacl.base.errors import InputError
from accuacl.base.files import write_text
from accuacl.base.randomness import torch_generator
from accuacl.experiments import make, run
from accuacl.experiments.learners import REGISTRY, Learner, Round, register
from accuacl.experiments.learners.derpp import DERpp, logit_error
from accuacl.experiments.learners.er import ER
from accuacl.experiments.learners.loop import learning_rate
from accuacl.experiments.learners.round import SGD, cycle, every
from accuacl.experiments.memory import Memory, class_balanced, reservoir
from accuacl.experiments.models import build

# --- Learners that differ from DER++ or ER in one thing


class SameEpochs(Learner):
    """Every epoch repeats the first: the same batches, and the same crop and flip of each new image.

    The authors' data loader sets torch's seed back whenever an epoch begins. An image that DER++ replays, about ten
    times an epoch, still has about ten different crops.
    """

    batches: Iterator[Tensor] | None

    def repeats(self) -> bool:
        return True

    def start_epoch(self, epoch: int) -> None:
        if not self.repeats():
            super().start_epoch(epoch)
            self.batches = None
            return
        super().start_epoch(0)
        self.round.draws = torch_generator(*self.round.seed, 0, "augment")
        order = torch_generator(*self.round.seed, 0, "order")
        self.batches = iter(every(self.round.new_rows, self.round.training.batch, order))

    def observe(self, rows: Tensor) -> Tensor:
        return super().observe(rows if self.batches is None else next(self.batches))


class SameOrder(SameEpochs):
    """Every epoch has the same batches, but new crops and flips."""

    def start_epoch(self, epoch: int) -> None:
        super().start_epoch(epoch)
        self.round.draws = torch_generator(*self.round.seed, epoch, "augment")


class NoAugmentation(Learner):
    """Images are only normalised."""

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        round.transform = replace(round.transform, crop=0, flip=False)


class SameEpochsDERpp(SameEpochs, DERpp): ...


class SameEpochsER(SameEpochs, ER):
    """The first task, where nothing is replayed, has another loader, whose epochs differ."""

    def repeats(self) -> bool:
        return len(self.buffer) > 0


class SameOrderDERpp(SameOrder, DERpp): ...


class NoAugmentationDERpp(NoAugmentation, DERpp): ...


class NoAugmentationER(NoAugmentation, ER): ...


class ConstantRate(DERpp):
    """No schedule: the learning rate stays as it is."""

    def start_epoch(self, epoch: int) -> None:
        super().start_epoch(epoch)
        self.round.lr = self.round.training.lr


class AnyBatches(DERpp):
    """A smaller last batch of the memory is used too."""

    def start_epoch(self, epoch: int) -> None:
        draws = torch_generator(*self.round.seed, epoch, "replay")
        self.replay = cycle(torch.arange(len(self.buffer)), self.round.training.batch, draws, full=False)


class Reservoir(DERpp):
    """The memory is a uniform sample of all labels, not the same number of each class."""

    def remember(self) -> Memory:
        return self.keep(reservoir, self.round.evaluated(self.round.model, self.round.new_rows))


class SeenOutputs(DERpp):
    """The squared error is over the outputs of classes that had been seen when the logits were stored, not over all."""

    def remember(self) -> Memory:
        logits = self.round.evaluated(self.round.model, self.round.new_rows)
        logits[:, np.setdiff1d(np.arange(logits.shape[1]), self.round.seen.cpu().numpy())] = np.nan  # not compared
        return self.keep(class_balanced, logits)


class TrainingLogits(DERpp):
    """The logits stored are those of augmented images in training mode."""

    def remember(self) -> Memory:
        self.round.draws = torch_generator(*self.round.seed, "stored")
        batches = torch.split(self.round.new_rows, self.round.training.batch)
        self.round.model.train()
        with torch.no_grad(), unchanged_statistics(self.round.model):
            logits = [self.round.logits(self.round.augmented(rows)[0]) for rows in batches]
        self.round.model.eval()
        return self.keep(class_balanced, torch.cat(logits).cpu().numpy())


class TwoPasses(DERpp):
    """New and replayed images pass through the network apart: BatchNorm normalises each by its own statistics."""

    def observe(self, rows: Tensor) -> Tensor:
        inside, training = next(self.replay, None), self.round.training
        x, y = self.round.augmented(rows)
        loss = cross_entropy(self.round.logits(x), y)
        if inside is not None:
            x, y = self.replayed(self.round.memory_rows[inside])
            z = self.replayed_logits(x)
            error = logit_error(z, self.stored[inside.to(z.device)])
            loss = loss + training.alpha * error + training.beta * cross_entropy(z, y)
        return self.round.step(loss)

    def replayed(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.round.augmented(rows)

    def replayed_logits(self, x: Tensor) -> Tensor:
        return self.round.logits(x)


class StatisticsOfNew(TwoPasses):
    """As two passes, and only the new images enter BatchNorm's running statistics, which testing uses."""

    def replayed_logits(self, x: Tensor) -> Tensor:
        with unchanged_statistics(self.round.model):
            return self.round.logits(x)


class DrawnApart(DERpp):
    """New and replayed images are prepared one after the other; one pass, as usual."""

    def observe(self, rows: Tensor) -> Tensor:
        training, n = self.round.training, len(rows)
        x, y = self.round.augmented(rows)
        inside = next(self.replay, None)
        if inside is None:
            return self.round.step(cross_entropy(self.round.logits(x), y))
        old_x, old_y = self.replayed(self.round.memory_rows[inside])
        z = self.round.logits(torch.cat([x, old_x]))
        error = logit_error(z[n:], self.stored[inside.to(z.device)])
        loss = cross_entropy(z[:n], y) + training.alpha * error + training.beta * cross_entropy(z[n:], old_y)
        return self.round.step(loss)

    def replayed(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.round.augmented(rows)


class PlainReplay(DrawnApart):
    """Replayed images are not augmented."""

    def replayed(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.round.plain(rows)


class FreshReplay(SameEpochs, DrawnApart):
    """New images repeat the first epoch; what is replayed, and with which crops and flips, is drawn afresh."""

    def start_epoch(self, epoch: int) -> None:
        super().start_epoch(epoch)
        DrawnApart.start_epoch(self, epoch)
        self.replay_draws = torch_generator(*self.round.seed, epoch, "augment-replayed")

    def replayed(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        x = self.round.inputs[rows]
        return self.round.transform.augmented(x, self.replay_draws), self.round.labels[rows]


class OneGenerator(SameEpochs, DrawnApart):
    """One generator, set back whenever an epoch begins, draws the new images' crops, then the memory's order and crops.

    So the authors' loader does it without worker processes, as their script runs it. Their memory is gone through in
    passes of six batches that do not stop where an epoch of 63 steps ends, so that odd epochs are alike, and even ones:
    about half of the new images have a second crop, and a replayed image has about twenty instead of ten.
    """

    def start_epoch(self, epoch: int) -> None:
        super().start_epoch(epoch)
        if epoch == 0:
            self.passes = self.go_on()
        self.replay = self.passes

    def go_on(self) -> Iterator[Tensor]:
        batch = self.round.training.batch
        while len(self.buffer) >= batch:
            order = torch.randperm(len(self.buffer), generator=self.round.draws)  # of the epoch that it is by then
            yield from (part for part in torch.split(order, batch) if len(part) == batch)


class WarmStart(DERpp):
    """Ten rounds of training, on 100, 200, ... labels, each from the weights of the round before."""

    def train(self, progress: object = None) -> None:
        round, training = self.round, self.round.training
        round.model.train()
        for r in range(1, 11):
            round.optimiser = SGD(round.model.parameters(), training.momentum, training.weight_decay)
            for epoch in range(training.epochs):
                seed = (*round.seed, r, epoch)
                round.lr, round.draws = learning_rate(training, epoch), torch_generator(*seed, "augment")
                self.start_epoch(r * training.epochs + epoch)
                rows = round.new_rows[: round.new * r // 10]  # labels are in the order in which they were asked for
                for part in every(rows, training.batch, torch_generator(*seed, "order")):
                    self.observe(part)
        round.optimiser.zero_grad()
        round.model.eval()


@contextlib.contextmanager
def unchanged_statistics(model: nn.Module) -> Iterator[None]:
    """Within, BatchNorm normalises by the batch and leaves its running statistics as they are."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 0.0
    yield
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


LEARNERS: dict[str, type[Learner]] = {
    "der++-same-epochs": SameEpochsDERpp,
    "er-same-epochs": SameEpochsER,
    "der++-one-generator": OneGenerator,
    "der++-fresh-replay": FreshReplay,
    "der++-same-order": SameOrderDERpp,
    "der++-no-augmentation": NoAugmentationDERpp,
    "er-no-augmentation": NoAugmentationER,
    "der++-plain-replay": PlainReplay,
    "der++-constant-rate": ConstantRate,
    "der++-any-batches": AnyBatches,
    "der++-reservoir": Reservoir,
    "der++-seen-outputs": SeenOutputs,
    "der++-training-logits": TrainingLogits,
    "der++-two-passes": TwoPasses,
    "der++-statistics-of-new": StatisticsOfNew,
    "der++-warm-start": WarmStart,
}
for _name, _learner in LEARNERS.items():
    if _name not in REGISTRY:  # the file is imported twice if it is both the plugin and the model of a run
        register(_name)(_learner)


# --- Networks


def torch_initialisation() -> nn.Module:
    """The usual network, its convolutions drawn as torch does: by fan-in, with a sixth of Kaiming's variance."""
    return _drawn_by_torch("resnet18")


def projections() -> nn.Module:
    """The usual network with a projection in every residual block, also where the shape stays the same."""
    model = build("resnet18", 10, seed=0, input_shape=(3, 32, 32))
    for block in model.modules():
        if isinstance(getattr(block, "shortcut", None), nn.Identity):
            channels = len(next(block.parameters()))
            projection = nn.Conv2d(channels, channels, 1, bias=False)
            nn.init.kaiming_normal_(projection.weight, mode="fan_out")
            block.shortcut = nn.Sequential(projection, nn.BatchNorm2d(channels))
    return nn.Sequential(model.embed, model.head)


def small_stem() -> nn.Module:
    """A 3x3 stem of stride 1 without pooling, as the authors' code imports it, initialised by torch."""
    return _drawn_by_torch("resnet18-3x3")


def _drawn_by_torch(name: str) -> nn.Module:
    model = build(name, 10, seed=0, input_shape=(3, 32, 32))
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            layer.reset_parameters()
    return nn.Sequential(model.embed, model.head)


# --- The runs


@dataclass(frozen=True)
class Suspect:
    """One run: what is different, by which learner and which settings; `minutes`: about how long on one core."""

    name: str
    minutes: int
    learner: str = "der++"
    epochs: int = 20
    settings: dict[str, Any] = field(default_factory=dict)
    network: str = ""  # a function of this file
    seed: int = 100

    @property
    def config(self) -> dict[str, Any]:
        network = {"model": f"{Path(__file__).resolve()}:{self.network}"} if self.network else {}
        usual = {"benchmark": "split-cifar10", "strategy": "uniform", "scale": "paper", "memory": 100, "threads": 1}
        usual |= {"sampling": "plain"}  # as the text has it: what the scale adds to it is the first of the suspects
        own = {"learner": self.learner, "epochs": self.epochs, "seed": self.seed, **self.settings}
        return usual | own | network

    @property
    def run(self) -> str:
        words = [self.learner, self.network, *(f"{key}-{value}" for key, value in self.settings.items())]
        return "-".join([*filter(None, words), f"epochs-{self.epochs}", f"seed-{self.seed}"])


RELEASED = {"weight_decay": 0.0}
# The most telling for its minutes first. A suspect is to be compared with the reference of the same epochs; ten epochs
# and fifty differ little (the reference and the same epochs below), so that most suspects are tried with ten.
SUSPECTS = [
    Suspect("reference", 5, epochs=10),
    Suspect("same epochs", 5, "der++-same-epochs", epochs=10),
    Suspect("no augmentation", 10, "der++-no-augmentation"),
    Suspect("same epochs", 10, "der++-same-epochs"),
    Suspect("reference", 10),
    Suspect("same epochs", 25, "der++-same-epochs", epochs=50),
    Suspect("reference, ER", 3, "er", epochs=10),
    Suspect("same epochs, ER", 3, "er-same-epochs", epochs=10),
    Suspect("3x3 stem, torch's initialisation, same epochs", 30, "der++-same-epochs", 10, network="small_stem"),
    Suspect("torch's initialisation", 5, epochs=10, network="torch_initialisation"),
    Suspect("no weight decay", 5, epochs=10, settings=RELEASED),
    Suspect("same order, fresh augmentation", 5, "der++-same-order", epochs=10),
    Suspect("replayed images not augmented", 5, "der++-plain-replay", epochs=10),
    Suspect("a projection in every block", 6, epochs=10, network="projections"),
    Suspect("two passes", 5, "der++-two-passes", epochs=10),
    Suspect("BatchNorm's statistics of new images only", 5, "der++-statistics-of-new", epochs=10),
    Suspect("no schedule", 5, "der++-constant-rate", epochs=10),
    Suspect("learning rate 0.003", 5, epochs=10, settings={"lr": 0.003}),
    Suspect("learning rate 0.03", 5, epochs=10, settings={"lr": 0.03}),
    Suspect("squared error over seen outputs", 5, "der++-seen-outputs", epochs=10),
    Suspect("logits stored in training mode", 5, "der++-training-logits", epochs=10),
    Suspect("memory batches of any size", 5, "der++-any-batches", epochs=10),
    Suspect("a reservoir as memory", 5, "der++-reservoir", epochs=10),
    Suspect("500 labels", 3, epochs=10, settings={"labels": 500}),
    Suspect("2000 labels", 9, epochs=10, settings={"labels": 2000}),
    Suspect("a round starts from the one before", 27, "der++-warm-start", epochs=10),
    Suspect("reference", 25, epochs=50),
    Suspect("reference, ER", 15, "er", epochs=50),
    Suspect("same epochs, ER", 15, "er-same-epochs", epochs=50),
    Suspect("3x3 stem, torch's initialisation", 30, epochs=10, network="small_stem"),
    Suspect("same epochs", 25, "der++-same-epochs", epochs=50, seed=101),
    Suspect("reference", 25, epochs=50, seed=101),
    Suspect("torch's initialisation, same epochs", 5, "der++-same-epochs", 10, network="torch_initialisation"),
    Suspect(
        "torch's initialisation, same epochs", 5, "der++-same-epochs", 10, network="torch_initialisation", seed=101
    ),
    Suspect("same epochs", 5, "der++-same-epochs", epochs=10, seed=101),
    Suspect("same epochs by one generator", 5, "der++-one-generator", epochs=10),
    Suspect("same epochs, replay drawn afresh", 5, "der++-fresh-replay", epochs=10),
    Suspect("same epochs by one generator", 5, "der++-one-generator", epochs=10, seed=101),
    Suspect("no weight decay, ER", 3, "er", epochs=10, settings=RELEASED),
    Suspect("torch's initialisation, ER", 3, "er", epochs=10, network="torch_initialisation"),
    Suspect("learning rate 0.03, ER", 3, "er", epochs=10, settings={"lr": 0.03}),
    Suspect("no augmentation, ER", 3, "er-no-augmentation", epochs=10),
    Suspect("learning rate 0.003, ER", 3, "er", epochs=10, settings={"lr": 0.003}),
    Suspect("100 epochs", 40, epochs=100),
    Suspect("same epochs, 100 of them", 40, "der++-same-epochs", epochs=100),
    Suspect("same epochs by one generator", 25, "der++-one-generator", epochs=50),
    Suspect("3x3 stem, torch's initialisation, one generator", 30, "der++-one-generator", 10, network="small_stem"),
    Suspect("as released", 140, "der++-one-generator", 50, RELEASED, "small_stem"),
    Suspect("as released, ER", 85, "er-same-epochs", 50, RELEASED, "small_stem"),
]
START, END = "<!-- benchmarks/suspects.py writes from here -->", "<!-- to here, benchmarks/suspects.py -->"
COLUMNS = ("suspect", "run", "epochs", "seed", "average_accuracy", "forgetting", "learning_accuracy", "minutes")


def work_through(suspects: list[Suspect], out: Path, path: Path) -> None:
    """Do the runs that the table does not have, in order."""
    for suspect in suspects:
        rows = read(path)
        if any(row["run"] == suspect.run for row in rows):
            continue
        print(f"{suspect.name}: {suspect.run}, about {suspect.minutes} minutes", flush=True)
        try:
            result = run(make(suspect.config), out / suspect.run)
        except InputError as error:  # such as training that diverged
            print(f"  left out: {error}", flush=True)
            continue
        measured = {key: f"{result[key]:.2f}" for key in COLUMNS[4:7]} | {"minutes": f"{cpu_minutes(result):.1f}"}
        row = {"suspect": suspect.name, "run": suspect.run, "epochs": suspect.epochs, "seed": suspect.seed} | measured
        write(path, [*read(path), row])
        print(f"  A {row['average_accuracy']}, F {row['forgetting']}, LA {row['learning_accuracy']}", flush=True)


def cpu_minutes(result: dict[str, Any]) -> float:
    return float(result["seconds"]["cpu"]) / 60


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = [",".join(COLUMNS)] + [",".join(quoted(str(row[column])) for column in COLUMNS) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n".join(lines) + "\n")  # all at once


def quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text


def table(rows: list[dict[str, Any]]) -> str:
    """What was measured, runs with few epochs first; then what is in the list and has not been measured."""
    lines = ["| suspect | epochs | seed | A % | F | LA % | minutes |", "|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: int(row["epochs"])):
        numbers = " | ".join(f"{float(row[column]):.1f}" for column in COLUMNS[4:])
        lines.append(f"| {row['suspect']} | {row['epochs']} | {row['seed']} | {numbers} |")
    known = {row["run"] for row in rows}
    left = [suspect for suspect in SUSPECTS if suspect.run not in known]
    if left:
        names = "; ".join(f"{suspect.name} ({suspect.epochs} epochs, seed {suspect.seed})" for suspect in left)
        hours = sum(suspect.minutes for suspect in left) / 60
        lines += ["", f"Not measured yet, about {hours:.0f} core-hours: {names}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mode", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=Path("runs/suspects"), help="where the runs' directories are")
    parser.add_argument("--csv", type=Path, default=Path("docs/results/baseline/suspects.csv"), help="the results")
    parser.add_argument("--table", type=Path, help="write the table into this Markdown file, between its two marks")
    names = list(dict.fromkeys(suspect.name for suspect in SUSPECTS))
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="run only these")
    parser.add_argument("--epochs", type=int, help="run only suspects with so many epochs")
    parser.add_argument("--seed", type=int, help="run only suspects with this seed")
    options = parser.parse_args()
    if options.mode == "table":
        from paired import show  # which a plugin would not find

        show(table(read(options.csv)), options.table, START, END)
    else:
        suspects = [suspect for suspect in SUSPECTS if suspect.name in options.only]
        suspects = [suspect for suspect in suspects if options.epochs in (None, suspect.epochs)]
        suspects = [suspect for suspect in suspects if options.seed in (None, suspect.seed)]
        if not suspects:
            parser.error("no suspect has this name, number of epochs and seed; the table of SUSPECTS has what there is")
        work_through(suspects, options.out, options.csv)


if __name__ == "__main__":
    main()

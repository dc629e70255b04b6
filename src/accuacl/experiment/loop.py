"""Algorithm 1 of the paper: tasks arrive, rounds of queries and training, then the memory is updated.

Every step goes through the journal, so that the same code starts a run, resumes one that was killed, and waits for
people.
"""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import accuacl
from accuacl import learners, models, strategies
from accuacl.data import BENCHMARKS, Stream, Task, class_incremental, load
from accuacl.experiment import metrics
from accuacl.experiment.config import Config
from accuacl.experiment.files import load_arrays, load_tensors, save_arrays, save_tensors, write_text
from accuacl.experiment.journal import Journal, weight_files
from accuacl.experiment.oracle import LabelsPending, Oracle, Simulated
from accuacl.features import Features
from accuacl.memory import Memory

Ids = NDArray[np.int64]
Handle = dict[str, Any]  # of a file: its name and SHA-256; of weights, that of the memory after them too
TRANSFORMS = {  # mean, standard deviation, crop
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 4),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), 4),
    "tiny-imagenet": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 0),
}


@dataclass(frozen=True)
class Event:
    """How far a run is: `done` of 1, and in words."""

    done: float
    text: str


def run(
    config: Config,
    out: Path,
    *,
    data_dir: Path | None = None,
    fresh: bool = False,
    skip_bad: bool = False,
    oracle: Oracle | None = None,
    progress: Callable[[Event], None] | None = None,
) -> dict[str, Any]:
    """Do the experiment, or go on with it, or return its result at once if it is finished."""

    def prepare() -> _Run:
        return _Run(config, data_dir, skip_bad, oracle, progress)

    # A new run is made ready before its directory is touched: what fails here leaves no trace.
    ready = prepare() if fresh or not (out / "config.json").exists() else None
    with Journal(out, config.model_dump(), environment(config), fresh) as journal:
        if journal.has("result"):
            result = journal.once("result", dict)
        else:
            if journal.environment != environment(config):
                warnings.warn(
                    f"this run was begun with {journal.environment}, now it is {environment(config)}: "
                    "its result may differ in the last bits from an undisturbed one.",
                    stacklevel=2,
                )
            torch.set_num_threads(config.threads)
            result = (ready or prepare()).all_tasks(journal)
        _publish(out / "result.json", result)
    return result


class _Run:
    """What the steps of one run share: data and settings. Nothing here changes once it is built."""

    journal: Journal

    def __init__(
        self,
        config: Config,
        data_dir: Path | None,
        skip_bad: bool,
        oracle: Oracle | None,
        progress: Callable[[Event], None] | None,
    ) -> None:
        self.config = config
        self.tell = progress or (lambda event: None)
        self.stream = open_stream(
            config, data_dir, skip_bad, lambda what, i, n: self.tell(Event(0.0, f"{what} {i}/{n}"))
        )
        self.data = self.stream.dataset
        self.oracle = oracle or Simulated(self.data.train.labels)
        self.tasks = list(self.stream)[: config.tasks or None]
        self.rounds = 1 if config.strategy == "full" else config.rounds
        self.device = device_of(config)
        self.transform = transform_of(self.data.name, self.data.train.inputs)
        self.settings = learners.Settings(
            epochs=config.epochs,
            batch=config.batch,
            lr=config.lr,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
            capacity=config.memory,
            classes=len(self.stream.order),
            device=self.device,
        )
        self.model(None)  # a network that does not fit the data is refused before anything is done

    def all_tasks(self, journal: Journal) -> dict[str, Any]:
        """Algorithm 1. Weights and memory are handles, loaded only by a step that has not been done yet."""
        self.journal, once = journal, journal.once
        self.check_data(once("data", self.fingerprint))
        memory: Handle | None = None
        weights: Handle | None = None
        past, seen = 0, _empty()
        matrix: list[list[float | None]] = []
        for task in self.tasks:
            pool, asked, known, labels, start = self.pool_of(task), _empty(), _empty(), _empty(), weights
            for r in range(self.rounds):
                key = f"{task.index:03}/{r:03}"
                picked = once(f"{key}/query", self.query, task, r, pool, asked, known, memory, past, weights, seen)
                asked = np.append(asked, np.array(picked["ids"], np.int64))
                answer = once(f"{key}/label", self.label, task, r, picked["ids"], len(known))
                pairs = np.array(answer["labels"], np.int64).reshape(-1, 2)
                known = np.append(known, pairs[:, 0])
                labels = np.append(labels, self.stream.to_model(pairs[:, 1]))
                seen = np.union1d(seen, labels)
                done = journal.has(f"{key}/train")
                weights = once(f"{key}/train", self.train, task, r, known, labels, memory, start, seen)
                if not done:
                    self.tidy(start, weights)
                if self.config.evaluate == "round":
                    once(f"{key}/test", self.evaluate, task, r, weights, seen)
            memory = once(f"{task.index:03}/memory", self.remember, weights)["file"]
            past += len(pool)
            row = once(f"{task.index:03}/evaluate", self.evaluate, task, self.rounds - 1, weights, seen)
            matrix.append(row["accuracy"] + [None] * (len(self.tasks) - len(row["accuracy"])))
        self.tidy(start, weights)
        return once("result", self.finish, matrix, row, weights)

    def fingerprint(self) -> dict[str, Any]:
        """What the data are known by: rows are numbers, and must mean the same examples when the run goes on."""
        parts: dict[str, Any] = {"classes": list(self.data.classes)}
        for name, split in (("train", self.data.train), ("test", self.data.test)):
            some = split.inputs[:: max(1, len(split.inputs) // 64)]
            digest = hashlib.sha256(split.labels.tobytes() + np.ascontiguousarray(some).tobytes()).hexdigest()
            parts[name] = {"shape": list(split.inputs.shape), "sha256": digest}
        return parts

    def check_data(self, recorded: dict[str, Any]) -> None:
        for part, value in self.fingerprint().items():
            if recorded[part] != value:
                raise ValueError(
                    f"the data ({part}) are not those that this run was begun with; give the same --data-dir, "
                    "or start over with --fresh."
                )

    def pool_of(self, task: Task) -> Ids:
        """The task's pool; a part of it drawn by the seed, if the config wants one."""
        if not self.config.pool or self.config.pool >= len(task.train):
            return task.train
        return np.sort(self.rng(task.index, 0, 1).choice(task.train, self.config.pool, replace=False))

    def query(
        self,
        task: Task,
        r: int,
        pool: Ids,
        asked: Ids,
        known: Ids,
        memory: Handle | None,
        past: int,
        weights: Handle | None,
        seen: Ids,
    ) -> dict[str, Any]:
        """Which of the unlabelled should be labelled: the first round is uniform, the others ask the strategy."""
        left = np.setdiff1d(pool, asked)
        c = self.config
        if c.strategy == "full":
            return {"ids": left.tolist(), "scores": {}}
        budget = c.labels * (r + 1) // self.rounds - c.labels * r // self.rounds
        seed = int(self.rng(task.index, r, 2).integers(2**62))
        self.say(task, r, 0, "choosing")
        if r == 0 or c.strategy == "uniform":
            nothing = np.ones((len(left), 1), np.float32)  # it looks at nothing
            picked = strategies.select("uniform", pool=Features(nothing, nothing), budget=budget, seed=seed)
        else:
            model = self.model(weights)
            earlier = np.concatenate([_empty(), *(self.pool_of(t) for t in self.tasks[: task.index])])
            replay = earlier if c.strategy == "accuacl-full" else self.memory(memory).ids
            parts = {"pool": left, "labelled": known, "memory": replay}
            options: dict[str, Any] = {name: self.features(model, ids, seen) for name, ids in parts.items()}
            if c.strategy.startswith("accuacl"):
                options |= {"variant": c.variant, "total_classes": len(self.stream.order)}
                options |= {"keep": c.keep} if c.keep else {}
                options |= {"lam": c.lam} if c.lam is not None else {}
            if c.strategy in ("accuacl", "accuacl-full", "bait"):
                options["oversample"] = c.oversample
            picked = strategies.select(c.strategy, budget=budget, past=past, seed=seed, **options)
        scores = {name: values.tolist() for name, values in picked.scores.items()}
        return {"ids": left[picked.indices].tolist(), "scores": scores}

    def label(self, task: Task, r: int, ids: list[int], known: int) -> dict[str, Any]:
        """What the oracle says, as (row, class) pairs; examples it skipped are left out."""
        rows = np.array(ids, np.int64)
        labels = np.asarray(self.oracle(task.index, r, rows), np.int64)
        kept = labels >= 0
        self.stream.to_model(labels[kept])  # an unknown class is refused before it is recorded
        if known + kept.sum() == 0:
            raise LabelsPending(f"none of the {len(rows)} examples of task {task.index + 1} has a label; it needs one.")
        return {"labels": np.stack([rows, labels], axis=1)[kept].tolist()}

    def train(
        self, task: Task, r: int, known: Ids, labels: Ids, memory: Handle | None, start: Handle | None, seen: Ids
    ) -> Handle:
        """Train from the last task's weights on all labels of this task; the new weights, and the memory after them."""
        model = self.model(start)
        done = learners.train(
            self.config.learner,
            model,
            learners.TaskData(known, labels, self.inputs(known)),
            self.memory(memory),
            self.inputs,
            self.settings,
            self.transform,
            seed=(self.config.seed, task.index, r),
            last_round=r == self.rounds - 1,
            seen=seen,
            variant=self.config.learner_variant,
            on_epoch=lambda epoch, loss: self.say(task, r, epoch + 1, f"epoch {epoch + 1} loss {loss:.3f}"),
        )
        name = f"{task.index:03}-{r:03}"
        handle: Handle = save_tensors(self.journal.weights / f"{name}.safetensors", model.state_dict())
        if r == self.rounds - 1:
            handle["memory"] = save_arrays(self.journal.weights / f"{name}-memory.safetensors", done.to_arrays())
        return handle

    def evaluate(self, task: Task, r: int, weights: Handle, seen: Ids) -> dict[str, Any]:
        """Accuracy on each task so far, recall of each class and calibration, predicting among the seen classes."""
        self.say(task, r, self.config.epochs, "testing")
        model = self.model(weights)
        accuracy, recall, confidences, hits = [], {}, [], []
        for earlier in self.tasks[: task.index + 1]:
            inputs = torch.from_numpy(np.array(self.data.test.inputs[earlier.test]))
            truth = self.stream.to_model(self.data.test.labels[earlier.test])
            _, p = models.predict(model, inputs, self.transform, seen, device=self.device)
            right = seen[p.argmax(axis=1)] == truth
            accuracy.append(100 * float(right.mean()))
            for c in np.unique(truth):
                recall[self.data.classes[self.stream.order[c]]] = 100 * float(right[truth == c].mean())
            confidences.append(p.max(axis=1).astype(np.float64))
            hits.append(right)
        error = metrics.calibration_error(np.concatenate(confidences), np.concatenate(hits))
        return {"accuracy": accuracy, "recall": recall, "calibration_error": error}

    def remember(self, weights: Handle) -> dict[str, Any]:
        """Record what the memory holds after the task."""
        memory = self.memory(weights["memory"])
        return {"ids": memory.ids.tolist(), "labels": memory.labels.tolist(), "file": weights["memory"]}

    def memory(self, handle: Handle | None) -> Memory:
        return Memory.from_arrays(load_arrays(self.journal.weights, handle)) if handle else Memory.empty()

    def finish(self, matrix: list[list[float | None]], last: dict[str, Any], weights: Handle) -> dict[str, Any]:
        """What result.json has."""
        spent = self.journal.seconds()
        spent["evaluate"] = spent.get("evaluate", 0.0) + spent.pop("test", 0.0)
        parts = {kind: spent.pop(kind, 0.0) for kind in ("query", "train", "evaluate")}
        return {
            **metrics.summary(matrix),
            "accuracy_matrix": matrix,
            "recall": last["recall"],
            "calibration_error": last["calibration_error"],
            "weights": weights["file"],
            "config": self.config.model_dump(),
            "seconds": parts | {"other": sum(spent.values())},
            "version": accuacl.__version__,
        }

    def model(self, weights: Handle | None) -> models.Classifier:
        """The network at the start, or with the weights of a handle."""
        shape = self.data.train.inputs.shape[1:]
        shape = (shape[2], shape[0], shape[1]) if len(shape) == 3 else shape
        c = self.config
        model = models.build(c.model, len(self.stream.order), seed=c.seed, input_shape=shape, width=c.width or None)
        if weights:
            model.load_state_dict(load_tensors(self.journal.weights, weights))
        return model.to(self.device)

    def features(self, model: models.Classifier, ids: Ids, seen: Ids) -> Features:
        return Features(*models.predict(model, self.inputs(ids), self.transform, seen, device=self.device))

    def inputs(self, ids: Ids) -> torch.Tensor:
        return torch.from_numpy(np.array(self.data.train.inputs[ids]))

    def rng(self, task: int, r: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, task, r, purpose])

    def say(self, task: Task, r: int, epoch: int, what: str) -> None:
        """Progress: a round costs as much as it has labels, so round r of R has done r (r + 1) / 2 of R (R + 1) / 2."""
        rounds = self.rounds
        within = (r * (r + 1) / 2 + (r + 1) * epoch / self.config.epochs) / (rounds * (rounds + 1) / 2)
        text = f"task {task.index + 1}/{len(self.tasks)} round {r + 1}/{rounds} {what}"
        self.tell(Event((task.index + within) / len(self.tasks), text))

    def tidy(self, *needed: Handle | None) -> None:
        """Delete weights that no later step can need."""
        keep = set()
        for handle in needed:
            if handle:
                keep |= {handle["file"], handle.get("memory", {}).get("file")}
        for path in weight_files(self.journal.weights):
            if path.name not in keep:
                path.unlink()


def open_stream(config: Config, data_dir: Path | None, skip_bad: bool, progress: Any = None) -> Stream:
    """The tasks of the config's benchmark or folder."""
    name, tasks, each = BENCHMARKS.get(config.benchmark, (config.benchmark, 0, config.classes_per_task))
    size = config.image_size or None
    dataset = load(name, data_dir, skip_bad=skip_bad, image_size=size, progress=progress)
    each = config.classes_per_task or each
    order: Any = config.order
    if order not in ("fixed", "tasks", "classes"):
        try:
            order = [int(part) for part in order.split(",")]
        except ValueError:
            raise ValueError(f"order is {order!r}; give fixed, tasks, classes or class ids like 3,1,2.") from None
    if config.classes_per_task or not tasks:
        tasks = len(dataset.classes) // each
    count = len(order) // each if isinstance(order, list) else tasks
    return class_incremental(dataset, count, each, order, config.order_seed)


def transform_of(name: str, inputs: NDArray[Any]) -> learners.Transform:
    """Normalisation and augmentation: crop and flip at 32x32, flip only on larger images, none on vectors."""
    if inputs.ndim == 2:
        return learners.Transform(None, None)
    mean, std, crop = TRANSFORMS.get(name, (*TRANSFORMS["cifar10"][:2], 4 if inputs.shape[1] <= 32 else 0))
    return learners.Transform(mean, std, crop, flip=True)


def device_of(config: Config) -> str:
    """Where to compute: the GPU if there is one, unless told otherwise."""
    if config.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if config.device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError("device is 'cuda' but torch finds none; give --device cpu.")
    return config.device


def environment(config: Config) -> dict[str, Any]:
    """What the last bits of a result depend on besides the config."""
    return {
        "accuacl": accuacl.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "device": device_of(config),
    }


def _publish(path: Path, result: dict[str, Any]) -> None:
    text = json.dumps(result, indent=1) + "\n"
    if not path.exists() or path.read_text() != text:
        write_text(path, text)


def _empty() -> Ids:
    return np.empty(0, np.int64)

"""The steps of an experiment: a data set's tasks, and an oracle that knows its labels."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl import strategies
from accuacl.base.errors import InputError, LabelsPending
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.base.randomness import numpy_generator
from accuacl.experiments import learners, metrics, models
from accuacl.experiments.checkpoints import (
    Learning,
    load_memory,
    load_tensors,
    memory_result,
    train_round,
    update_memory,
)
from accuacl.experiments.config import Config, options_for, own_model
from accuacl.experiments.data import InputRows, Task
from accuacl.experiments.memory import Memory
from accuacl.experiments.setting import device_of, open_stream, training_of, transform_of
from accuacl.experiments.state import POOL, QUERY, TEST, Handle, Ids, LoopState, carried_over, round_progress
from accuacl.experiments.stream_settings import is_tidy
from accuacl.features import Features


class ExperimentSteps:
    """Implements `loop.Steps`. Nothing here changes once it is built."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        data_dir: Path | None,
        skip_bad: bool,
        oracle: Oracle | None,
        on_progress: OnProgress | None,
    ) -> None:
        started = time.perf_counter()
        self.config, self.folder = config, folder
        if models.is_own(config.model):
            own_model(config.model, config.model_digest)
        self.on_progress = on_progress or ignore
        self.stream = open_stream(config, data_dir, skip_bad, self._on_decoding)
        self.data = self.stream.dataset
        self.oracle = oracle or Simulated(self.stream.answers)
        self.tasks = list(self.stream)[: config.tasks or None]
        self.test_every_round = config.evaluate == "round"
        self.device = device_of(config)
        self.transform = transform_of(self.data.name, self.data.train.inputs)
        training = training_of(config, len(self.stream.order), self.device)
        inputs = self.data.train.inputs

        def fetch(ids: Ids) -> torch.Tensor:  # no method: a cycle would keep the data open until memory is tidied
            return torch.from_numpy(np.array(inputs[ids]))

        self.learning = Learning(config, folder, training, self.transform, fetch)
        self._model(None)  # a network that does not fit the data is refused before anything is done
        self.loading = time.perf_counter() - started

    def fingerprint(self) -> dict[str, Any]:
        """What the data are known by: rows are numbers, and must mean the same examples when the run goes on."""
        parts: dict[str, Any] = {"classes": list(self.data.classes)}
        for name, split in (("train", self.data.train), ("test", self.data.test)):
            sample = split.inputs[:: max(1, len(split.inputs) // 64)]
            digest = hashlib.sha256(split.labels.tobytes() + np.ascontiguousarray(sample).tobytes()).hexdigest()
            parts[name] = {"shape": list(split.inputs.shape), "sha256": digest}
        if not is_tidy(self.config.model_dump()):
            parts["tasks"] = self.stream.digest()
        return parts

    def check_data(self, recorded: dict[str, Any]) -> None:
        """Refuse other data than those of the record; runs of earlier versions have no digest of their tasks."""
        for part, value in self.fingerprint().items():
            if recorded.get(part, value) != value:
                raise InputError(
                    f"the data ({part}) are not those that this run was begun with; give the same "
                    f"{'data and the same --plugin' if part == 'tasks' else '--data-dir'}, or start over with --fresh."
                )

    def begin(self, task: Task, before: LoopState | None) -> LoopState:
        c = self.config
        extended = c.last_rounds and task.index == len(self.tasks) - 1
        rounds = 1 if c.strategy == "full" else c.last_rounds if extended else c.rounds
        return LoopState(task, rounds, self.pool_of(task), **carried_over(before))

    def pool_of(self, task: Task) -> Ids:
        """The task's examples, or a part of them drawn by the seed."""
        return self._part(task.train, self.config.pool, task, POOL)

    def test_of(self, task: Task) -> Ids:
        """What the task is tested on, by row of the test split."""
        return self._part(task.test, self.config.test, task, TEST)

    def query(self, known: LoopState) -> dict[str, Any]:
        """The first round is uniform or covers the pool; the others ask the strategy."""
        c, r = self.config, known.round
        if c.strategy == "full":
            return {"ids": known.left.tolist(), "scores": {}}
        self._say(known, "choosing", "choosing")
        budget = c.labels * (r + 1) // c.rounds - c.labels * r // c.rounds
        strategy = first_strategy(c, known.weights is not None) if r == 0 else c.strategy
        if strategy == "uniform":
            return choose_uniformly(c, known, budget)
        model = self._model(known.weights)

        def features(ids: Ids) -> Features:
            inputs = InputRows(self.data.train.inputs, ids)  # accuacl-full asks for all the past: read it in parts
            return Features(*self._predict(model, inputs, known.seen))

        def on_part(part: Progress) -> None:
            self._say(known, f"choosing {100 * part.share:.0f} %", "choosing", step=part.share)

        memory = self._memory(known).ids
        return choose(c, known, strategy, budget, features, memory, len(self.stream.order), on_part)

    def label(self, known: LoopState, picked: dict[str, Any]) -> dict[str, Any]:
        """What the oracle says, as (row, class) pairs; examples it skipped are left out."""
        rows = np.array(picked["ids"], np.int64)
        labels = np.asarray(self.oracle(known.task.index, known.round, rows), np.int64)
        kept = labels >= 0
        self.stream.to_model(labels[kept])  # an unknown class is refused before it is recorded
        if len(known.ids) + kept.sum() == 0:
            number = known.task.index + 1
            raise LabelsPending(f"none of the {len(rows)} examples of task {number} has a label; it needs one.")
        return {"labels": np.stack([rows, labels], axis=1)[kept].tolist()}

    def with_labels(self, known: LoopState, answer: dict[str, Any]) -> LoopState:
        pairs = np.array(answer["labels"], np.int64).reshape(-1, 2)
        labels = np.append(known.labels, self.stream.to_model(pairs[:, 1]))
        return replace(known, ids=np.append(known.ids, pairs[:, 0]), labels=labels, seen=np.union1d(known.seen, labels))

    def needs_training(self, known: LoopState) -> bool:
        """Rounds train from the last task's weights, so that a round's own are only needed by what looks at them."""
        looked_at = self.config.strategy not in ("uniform", "full") or self.test_every_round
        return looked_at or known.last_round

    def train(self, known: LoopState) -> Handle:
        def on_epoch(epoch: Progress) -> None:
            self._say(known, epoch.text, "training", epoch.epochs or (0, 1))

        return train_round(self.learning, known, self._model(known.start), self._memory(known), on_epoch)

    def memory(self, known: LoopState) -> dict[str, Any]:
        handle = update_memory(self.learning, known, self._model(known.weights), self._memory(known))
        return memory_result(load_memory(self.folder, handle), handle)

    def evaluate(self, known: LoopState) -> dict[str, Any]:
        """Accuracy on each task so far, recall of each class and calibration, predicting among the seen classes."""
        self._say(known, "testing", "testing", (self.config.epochs, self.config.epochs))
        model, seen = self._model(known.weights), known.seen
        accuracy, by_task, confidences, hits = [], [], [], []
        for task in self.tasks[: known.task.index + 1]:
            rows = self.test_of(task)
            inputs = InputRows(self.data.test.inputs, rows)
            truth = self.stream.to_model(self.data.test.labels[rows])
            _, p = self._predict(model, inputs, seen)
            right = seen[p.argmax(axis=1)] == truth
            accuracy.append(100 * float(right.mean()))
            by_task.append({int(c): (int(right[truth == c].sum()), int((truth == c).sum())) for c in np.unique(truth)})
            confidences.append(p.max(axis=1).astype(np.float64))
            hits.append(right)
        error = metrics.calibration_error(np.concatenate(confidences), np.concatenate(hits))
        return {"accuracy": accuracy, **self._recall(by_task), "calibration_error": error}

    def _recall(self, by_task: list[dict[int, tuple[int, int]]]) -> dict[str, Any]:
        """The recall of each class by name; and by task too, in streams that test a class in several tasks.

        by_task: how many examples of each class are right, and how many there are.
        """
        together: dict[int, list[tuple[int, int]]] = {}
        for counts in by_task:
            for c, count in counts.items():
                together.setdefault(c, []).append(count)
        names = {c: self.data.classes[self.stream.order[c]] for c in together}
        recall = {names[c]: 100 * (sum(r for r, _ in all_) / sum(n for _, n in all_)) for c, all_ in together.items()}
        if self.stream.tests_once:
            return {"recall": recall}
        parts = [{names[c]: 100 * (r / n) for c, (r, n) in counts.items()} for counts in by_task]
        return {"recall": recall, "recall_by_task": parts}

    def _predict(self, model: models.Classifier, inputs: InputRows, seen: Ids) -> tuple[NDArray[Any], NDArray[Any]]:
        h, p = models.predict(model, inputs, self.transform, seen, device=self.device)
        if not (np.isfinite(h).all() and np.isfinite(p).all()):
            raise learners.diverged(self.learning.training, "what the network gives is not finite")
        return h, p

    def _part(self, rows: Ids, count: int, task: Task, purpose: int) -> Ids:
        """So many of the rows, drawn by the seed; 0: all."""
        rng = numpy_generator(self.config.seed, task.index, 0, purpose)
        return np.sort(rng.choice(rows, count, replace=False)) if 0 < count < len(rows) else rows

    def _memory(self, known: LoopState) -> Memory:
        return load_memory(self.folder, known.memory)

    def _model(self, weights: Handle | None) -> models.Classifier:
        """The network at the start, or with the weights of a handle; its head has room for all classes."""
        shape = self.data.train.inputs.shape[1:]
        shape = (shape[2], shape[0], shape[1]) if len(shape) == 3 else shape
        c = self.config
        model = models.build(c.model, len(self.stream.order), seed=c.seed, input_shape=shape, width=c.width or None)
        if weights:
            model.load_state_dict(load_tensors(self.folder, weights))
        return model.to(self.device)

    def _on_decoding(self, images: Progress) -> None:
        """Decoding comes before the run itself, of which nothing is done yet."""
        self.on_progress(Progress(0.0, 1.0, f"{images.text} {images.done:.0f}/{images.total:.0f}", images.stage))

    def _say(
        self, known: LoopState, what: str, stage: str, epochs: tuple[int, int] = (0, 1), step: float | None = None
    ) -> None:
        self.on_progress(round_progress(known, len(self.tasks), what, stage, epochs, step))


def choose_uniformly(config: Config, known: LoopState, budget: int) -> dict[str, Any]:
    """Any of what is left, as the first round of every task has it."""
    nothing = np.ones((len(known.left), 1), np.float32)  # it looks at nothing
    picked = strategies.select("uniform", pool=Features(nothing, nothing), budget=budget, seed=_seed(config, known))
    return _as_result(known, picked)


def first_strategy(config: Config, has_features: bool) -> str:
    """What chooses the first round of a task. has_features: whether a model or an embedding can look at the pool."""
    return config.first_round if has_features else "uniform"


def choose(
    config: Config,
    known: LoopState,
    strategy: str,
    budget: int,
    features: Callable[[Ids], Features],
    memory: Ids,
    total_classes: int,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """What a strategy picks. features: of examples by id; memory: ids; total_classes: as many as there will be.

    on_progress: told how much of a choice is done that takes longer than a second.
    """
    replayed = known.earlier if strategy == "accuacl-full" else memory
    given: dict[str, Any] = {"variant": config.variant, "keep": config.keep or None, "oversample": config.oversample}
    given["lam"] = config.lam if known.task.index + 1 >= config.lam_from else None
    given |= {"share": config.share, "uncertainty": False if config.uncertainty == "ignored" else None}
    options = {name: given[name] for name in options_for(strategy) if given[name] is not None}
    if "total_classes" in strategies.options_of(strategy):
        options["total_classes"] = total_classes
    picked = strategies.select(
        strategy,
        pool=features(known.left),
        labelled=features(known.ids),
        memory=features(replayed),
        budget=budget,
        past=len(known.earlier),
        seed=_seed(config, known) % (2**32 if strategy not in strategies.NAMES else 2**62),  # all that NumPy takes
        progress=_every_second(on_progress) if on_progress else None,
        **options,
    )
    return _as_result(known, picked)


def _every_second(on_progress: OnProgress) -> OnProgress:
    last = monotonic()

    def told(progress: Progress) -> None:
        nonlocal last
        if monotonic() - last >= 1:
            last = monotonic()
            on_progress(progress)

    return told


def _seed(config: Config, known: LoopState) -> int:
    return int(numpy_generator(config.seed, known.task.index, known.round, QUERY).integers(2**62))


def _as_result(known: LoopState, picked: strategies.Selection) -> dict[str, Any]:
    scores = {name: values.tolist() for name, values in picked.scores.items()}
    return {"ids": known.left[picked.indices].tolist(), "scores": scores}


__all__ = ["LabelsPending", "Oracle", "Simulated"]


class Oracle(Protocol):
    """Labels for rows of the training split, as the dataset's class ids; -1 for one that was skipped.

    Raises `LabelsPending` while some are missing. Asked about the same rows again, it gives the same labels.
    """

    def __call__(self, task: int, round: int, ids: Ids) -> Ids: ...


class Simulated:
    """The true labels, at once: what experiments use."""

    def __init__(self, labels: Ids) -> None:
        self.labels = labels

    def __call__(self, task: int, round: int, ids: Ids) -> Ids:
        return self.labels[ids]

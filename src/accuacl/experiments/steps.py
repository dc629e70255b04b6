"""The steps of an experiment: a data set's tasks, and an oracle that knows its labels."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.base.errors import InputError, LabelsPending
from accuacl.base.machine import device_of
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.base.randomness import numpy_generator
from accuacl.base.userfile import is_own
from accuacl.experiments import learners, metrics, models
from accuacl.experiments.checkpoints import Learning, load_tensors, memory_result
from accuacl.experiments.config import Config, own_model
from accuacl.experiments.data import InputRows, Task
from accuacl.experiments.heads import looks_at_pool
from accuacl.experiments.loop import POOL, TEST, Handle, Ids, LoopState, choose
from accuacl.experiments.memory import Memory
from accuacl.experiments.stream_settings import is_class_incremental, open_stream
from accuacl.features import Features


class Oracle(Protocol):
    """Labels for rows of the training split, as the dataset's class ids; -1 for one that was skipped.

    Raises `LabelsPending` while some are missing. Asked about the same rows again, it gives the same labels.
    """

    def __call__(self, task: int, round: int, ids: Ids) -> Ids: ...


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
        if is_own(config.model):
            own_model(config.model, config.model_digest)
        self.on_progress = on_progress or ignore
        self.stream = open_stream(config, data_dir, skip_bad, self._on_decoding)
        self.data = self.stream.dataset
        truth = self.stream.answers
        self.oracle = oracle or (lambda task, round, ids: truth[ids])  # not a method, as `fetch` is none
        self.tasks = list(self.stream)[: config.tasks or None]
        self.test_every_round = config.evaluate == "round"
        self.device = device_of(config.device)
        self.transform = learners.transform_of(self.data.name, self.data.train.inputs)
        inputs = self.data.train.inputs

        def fetch(ids: Ids) -> torch.Tensor:  # not a method: a cycle would keep the data open until it is collected
            return torch.from_numpy(np.array(inputs[ids]))

        self.learning = Learning.of(config, folder, self.device, self.transform, fetch)
        self._model(None)  # a network that does not fit the data is refused before anything is done
        self.loading = time.perf_counter() - started

    def describe_data(self) -> dict[str, Any]:
        """What the journal records of the data: their fingerprint, and the columns that vectors are made of."""
        made_of = list(self.data.made_of)
        return self.fingerprint() | ({"columns": made_of} if made_of else {})

    def fingerprint(self) -> dict[str, Any]:
        """A digest of the data: row numbers must mean the same examples when the run is resumed."""
        parts: dict[str, Any] = {"classes": list(self.data.classes)}
        for name, split in (("train", self.data.train), ("test", self.data.test)):
            sample = split.inputs[:: max(1, len(split.inputs) // 64)]
            digest = hashlib.sha256(split.labels.tobytes() + np.ascontiguousarray(sample).tobytes()).hexdigest()
            parts[name] = {"shape": list(split.inputs.shape), "sha256": digest}
        if not is_class_incremental(self.config.model_dump()):
            parts["tasks"] = self.stream.digest()
        return parts

    def check_data(self, recorded: dict[str, Any]) -> None:
        """Refuse data that differ from those in the journal."""
        for part, value in self.fingerprint().items():
            if recorded.get(part) != value:
                raise InputError(
                    f"the data ({part}) are not those that this run was begun with; give the same "
                    f"{'data and the same --plugin' if part == 'tasks' else '--data-dir'}, or start over with --fresh."
                )

    def begin(self, task: Task, before: LoopState | None) -> LoopState:
        c = self.config
        extended = c.last_rounds and task.index == len(self.tasks) - 1
        rounds = 1 if c.strategy == "full" else c.last_rounds if extended else c.rounds
        return LoopState(task, rounds, self.pool_of(task), **(before.carried_over() if before else {}))

    def pool_of(self, task: Task) -> Ids:
        """The task's examples, or a part of them drawn by the seed."""
        return self._part(task.train, self.config.pool, task, POOL)

    def test_of(self, task: Task) -> Ids:
        """The rows of the test split on which the task is tested."""
        return self._part(task.test, self.config.test, task, TEST)

    def query(self, state: LoopState) -> dict[str, Any]:
        """The first round is uniform or covers the pool; the others ask the strategy."""
        c, r = self.config, state.round
        if c.strategy == "full":
            return {"ids": state.left.tolist(), "scores": {}}
        self._report(state, "choosing", "choosing")
        budget = c.labels * (r + 1) // c.rounds - c.labels * r // c.rounds
        strategy = c.strategy if r else c.first_round if state.weights else "uniform"
        if strategy == "uniform":
            return choose(c, state, strategy, budget)
        model = self._model(state.weights)

        def features(ids: Ids) -> Features:
            inputs = InputRows(self.data.train.inputs, ids)  # accuacl-full asks for all the past: read it in parts
            return Features(*self._predict(model, inputs, state.seen))

        def on_part(part: Progress) -> None:
            self._report(state, f"choosing {100 * part.share:.0f} %", "choosing", step=part.share)

        memory = self._memory(state).ids
        return choose(c, state, strategy, budget, features, memory, len(self.stream.order), on_part)

    def label(self, state: LoopState, picked: dict[str, Any]) -> dict[str, Any]:
        """What the oracle says, as (row, class) pairs; examples it skipped are left out."""
        rows = np.array(picked["ids"], np.int64)
        labels = np.asarray(self.oracle(state.task.index, state.round, rows), np.int64)
        kept = labels >= 0
        self.stream.to_model(labels[kept])  # an unknown class is refused before it is recorded
        if len(state.ids) + kept.sum() == 0:
            number = state.task.index + 1
            raise LabelsPending(f"none of the {len(rows)} examples of task {number} has a label; it needs one.")
        return {"labels": np.stack([rows, labels], axis=1)[kept].tolist()}

    def with_labels(self, state: LoopState, answer: dict[str, Any]) -> LoopState:
        pairs = np.array(answer["labels"], np.int64).reshape(-1, 2)
        labels = np.append(state.labels, self.stream.to_model(pairs[:, 1]))
        return replace(state, ids=np.append(state.ids, pairs[:, 0]), labels=labels, seen=np.union1d(state.seen, labels))

    def needs_training(self, state: LoopState) -> bool:
        """Rounds train from the last task's weights, so only strategies and tests need a round's own weights."""
        used = self.config.strategy not in ("uniform", "full") or self.test_every_round
        return used or state.last_round

    def train(self, state: LoopState) -> Handle:
        def on_epoch(epoch: Progress) -> None:
            self._report(state, epoch.text, "training", epoch.epochs or (0, 1))

        memory = self._memory(state)
        return self.learning.train(state, self._model(state.start), memory, on_epoch, self._unlabelled(state, memory))

    def _unlabelled(self, state: LoopState, memory: Memory) -> list[Ids]:
        """The rows of each task so far that have no label, if the learner learns from them too."""
        mode = self.config.pool_learning
        if mode == "off" or not looks_at_pool(mode, len(state.ids) + len(memory)):
            return []
        known = np.append(state.ids, memory.ids)
        return [np.setdiff1d(self.pool_of(task), known) for task in self.tasks[: state.task.index + 1]]

    def memory(self, state: LoopState) -> dict[str, Any]:
        handle = self.learning.update_memory(state, self._model(state.weights), self._memory(state))
        return memory_result(self.learning.load_memory(handle), handle)

    def evaluate(self, state: LoopState) -> dict[str, Any]:
        """Accuracy on each task so far, recall of each class and calibration, predicting among the seen classes."""
        self._report(state, "testing", "testing", (self.config.epochs, self.config.epochs))
        model, seen = self._model(state.weights), state.seen
        truths, predictions, confidences = [], [], []
        for task in self.tasks[: state.task.index + 1]:
            rows = self.test_of(task)
            _, p = self._predict(model, InputRows(self.data.test.inputs, rows), seen)
            truths.append(self.stream.to_model(self.data.test.labels[rows]))
            predictions.append(seen[p.argmax(axis=1)])
            confidences.append(p.max(axis=1).astype(np.float64))
        truth, predicted = np.concatenate(truths), np.concatenate(predictions)
        by_task = list(zip(truths, predictions, strict=True))
        result: dict[str, Any] = {"accuracy": [100 * float((t == p).mean()) for t, p in by_task]}
        result["recall"] = self._recall(truth, predicted)
        if not self.stream.tests_once:  # a class is tested in several tasks
            result["recall_by_task"] = [self._recall(t, p) for t, p in by_task]
        result["calibration_error"] = metrics.calibration_error(np.concatenate(confidences), truth == predicted)
        if state.task.index == len(self.tasks) - 1:
            result["confusion"] = self._confusion(truth, predicted)
        return result

    def _recall(self, truth: Ids, predicted: Ids) -> dict[str, float]:
        """The share of each class that is right, by name, in percent."""
        return {self._class(c): 100 * float((predicted[truth == c] == c).mean()) for c in np.unique(truth)}

    def _confusion(self, truth: Ids, predicted: Ids) -> dict[str, dict[str, int]]:
        """How often each class was taken for each other one, by name."""
        confusion: dict[str, dict[str, int]] = {}
        pairs, counts = np.unique(np.stack([truth, predicted], axis=1), axis=0, return_counts=True)
        for (right, guess), count in zip(pairs, counts, strict=True):
            confusion.setdefault(self._class(right), {})[self._class(guess)] = int(count)
        return confusion

    def _class(self, index: int) -> str:
        """The name of a class, by the model's number."""
        return self.data.classes[self.stream.order[index]]

    def _predict(self, model: models.Classifier, inputs: InputRows, seen: Ids) -> tuple[NDArray[Any], NDArray[Any]]:
        h, p = models.predict(model, inputs, self.transform, seen, device=self.device)
        if not (np.isfinite(h).all() and np.isfinite(p).all()):
            raise learners.diverged(self.learning.training, "what the network gives is not finite")
        return h, p

    def _part(self, rows: Ids, count: int, task: Task, purpose: int) -> Ids:
        """This many of the rows, drawn by the seed; 0: all."""
        rng = numpy_generator(self.config.seed, task.index, 0, purpose)
        return np.sort(rng.choice(rows, count, replace=False)) if 0 < count < len(rows) else rows

    def _memory(self, state: LoopState) -> Memory:
        return self.learning.load_memory(state.memory)

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
        """Decoding comes before the run itself, so no step is done yet."""
        self.on_progress(Progress(0.0, 1.0, f"{images.text} {images.done:.0f}/{images.total:.0f}", images.stage))

    def _report(
        self, state: LoopState, what: str, stage: str, epochs: tuple[int, int] = (0, 1), step: float | None = None
    ) -> None:
        self.on_progress(state.progress(len(self.tasks), what, stage, epochs, step))

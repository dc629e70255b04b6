"""The steps of a run: query, label, train, remember, evaluate. Each is a function of its arguments and the config."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl import learners, models, strategies
from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.base.randomness import numpy_generator
from accuacl.data import Rows, Task
from accuacl.experiment import metrics
from accuacl.experiment.config import Config, options_for
from accuacl.experiment.journal import weight_files
from accuacl.experiment.oracle import LabelsPending, Oracle, Simulated
from accuacl.experiment.setting import device_of, open_stream, training_of, transform_of
from accuacl.experiment.tensors import load_arrays, load_tensors, save_arrays, save_tensors
from accuacl.features import Features
from accuacl.memory import Memory

Ids = NDArray[np.int64]
Handle = dict[str, Any]  # of a file: its name and SHA-256; of weights, that of the memory after them too


class Steps:
    """What the steps of one run share: data and settings. Nothing here changes once it is built."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        data_dir: Path | None,
        skip_bad: bool,
        oracle: Oracle | None,
        progress: OnProgress | None,
    ) -> None:
        started = time.perf_counter()
        self.config, self.folder = config, folder
        self.tell = progress or ignore
        self.stream = open_stream(config, data_dir, skip_bad, self._decoding)
        self.data = self.stream.dataset
        self.oracle = oracle or Simulated(self.data.train.labels)
        self.tasks = list(self.stream)[: config.tasks or None]
        self.device = device_of(config)
        self.transform = transform_of(self.data.name, self.data.train.inputs)
        self.settings = training_of(config, len(self.stream.order), self.device)
        self.model(None)  # a network that does not fit the data is refused before anything is done
        self.loading = time.perf_counter() - started

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
                raise InputError(
                    f"the data ({part}) are not those that this run was begun with; give the same --data-dir, "
                    "or start over with --fresh."
                )

    def pool_of(self, task: Task) -> Ids:
        """The task's pool; a part of it drawn by the seed, if the config wants one."""
        return self._some(task.train, self.config.pool, self.rng(task.index, 0, 1))

    def test_of(self, task: Task) -> Ids:
        """The task's test examples; a part of them, if the config wants one."""
        return self._some(task.test, self.config.test, self.rng(task.index, 0, 3))

    def _some(self, rows: Ids, count: int, rng: np.random.Generator) -> Ids:
        return np.sort(rng.choice(rows, count, replace=False)) if 0 < count < len(rows) else rows

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
        budget = self.budget(task, r)
        seed = int(self.rng(task.index, r, 2).integers(2**62))
        self.say(task, r, "choosing", "choosing")
        if r == 0 or c.strategy == "uniform":
            nothing = np.ones((len(left), 1), np.float32)  # it looks at nothing
            picked = strategies.select("uniform", pool=Features(nothing, nothing), budget=budget, seed=seed)
        else:
            model = self.model(weights)
            earlier = np.concatenate([np.empty(0, np.int64), *(self.pool_of(t) for t in self.tasks[: task.index])])
            replay = earlier if c.strategy == "accuacl-full" else self.memory(memory).ids
            parts = {"pool": left, "labelled": known, "memory": replay}
            options: dict[str, Any] = {name: self.features(model, ids, seen) for name, ids in parts.items()}
            wanted: dict[str, Any] = {"variant": c.variant, "keep": c.keep or None, "oversample": c.oversample}
            wanted["lam"] = c.lam if task.index + 1 >= c.lam_from else None
            options |= {k: wanted[k] for k in options_for(c.strategy) if wanted[k] is not None}
            if "total_classes" in strategies.options_of(c.strategy):
                options["total_classes"] = self.total_classes
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

    def take(self, answer: dict[str, Any], known: Ids, labels: Ids, seen: Ids) -> tuple[Ids, Ids, Ids]:
        """What is known of the task with the answer of a round: its labelled rows, their classes, all classes seen."""
        pairs = np.array(answer["labels"], np.int64).reshape(-1, 2)
        labels = np.append(labels, self.stream.to_model(pairs[:, 1]))
        return np.append(known, pairs[:, 0]), labels, np.union1d(seen, labels)

    def train(
        self, task: Task, r: int, known: Ids, labels: Ids, memory: Handle | None, start: Handle | None, seen: Ids
    ) -> Handle:
        """Train from the last task's weights on all labels of this task; the new weights, and the memory after them."""
        model = self.model(start, classes=int(seen.max()) + 1)
        last = r == self.rounds(task) - 1
        round = learners.Round(
            model,
            learners.TaskData(known, labels, self.inputs(known)),
            self.memory(memory),
            self.inputs,
            self.settings,
            self.transform,
            seed=(self.config.seed, task.index, r),
            last_round=last,
            seen=seen,
        )
        learner = learners.start(self.config.learner, round, self.config.learner_variant)
        learners.train(learner, lambda epoch: self.say(task, r, epoch.text, "training", epoch.epochs or (0, 1)))
        name = f"{task.index:03}-{r:03}"
        handle: Handle = save_tensors(self.folder / f"{name}.safetensors", model.state_dict())
        if last:
            memory_after = learner.remember().to_arrays()
            handle["memory"] = save_arrays(self.folder / f"{name}-memory.safetensors", memory_after)
        return handle

    def budget(self, task: Task, r: int) -> int:
        """How many labels the round asks for."""
        c = self.config
        return c.labels * (r + 1) // c.rounds - c.labels * r // c.rounds

    @property
    def total_classes(self) -> int:
        """The classes there will be, as far as that is known."""
        return len(self.stream.order)

    def rounds(self, task: Task) -> int:
        """How often the task asks for labels."""
        if self.config.strategy == "full":
            return 1
        extended = self.config.last_rounds and task.index == len(self.tasks) - 1
        return self.config.last_rounds if extended else self.config.rounds

    def needs_training(self, task: Task, r: int) -> bool:
        """Rounds restart from the last task's weights, so a round's own are needed by what looks at them only."""
        looked_at = self.config.strategy not in ("uniform", "full") or self.config.evaluate == "round"
        return looked_at or r == self.rounds(task) - 1

    def evaluate(self, task: Task, r: int, weights: Handle, seen: Ids) -> dict[str, Any]:
        """Accuracy on each task so far, recall of each class and calibration, predicting among the seen classes."""
        self.say(task, r, "testing", "testing", (self.config.epochs, self.config.epochs))
        model = self.model(weights)
        accuracy, recall, confidences, hits = [], {}, [], []
        for earlier in self.tasks[: task.index + 1]:
            rows = self.test_of(earlier)
            inputs = Rows(self.data.test.inputs, rows)
            truth = self.stream.to_model(self.data.test.labels[rows])
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
        """Record what the memory holds after the task: all but DER++'s logits, which stay in its file."""
        arrays = self.memory(weights["memory"]).to_arrays()
        return {name: array.tolist() for name, array in arrays.items() if name != "logits"} | {
            "file": weights["memory"]
        }

    def memory(self, handle: Handle | None) -> Memory:
        return Memory.from_arrays(load_arrays(self.folder, handle)) if handle else Memory.empty()

    def model(self, weights: Handle | None, classes: int = 0) -> models.Classifier:
        """The network at the start, or with the weights of a handle; its head has room for `classes`, here for all."""
        shape = self.data.train.inputs.shape[1:]
        shape = (shape[2], shape[0], shape[1]) if len(shape) == 3 else shape
        c = self.config
        model = models.build(c.model, len(self.stream.order), seed=c.seed, input_shape=shape, width=c.width or None)
        if weights:
            model.load_state_dict(load_tensors(self.folder, weights))
        return model.to(self.device)

    def features(self, model: models.Classifier, ids: Ids, seen: Ids) -> Features:
        inputs = Rows(self.data.train.inputs, ids)  # accuacl-full asks for all the past: read it in parts
        return Features(*models.predict(model, inputs, self.transform, seen, device=self.device))

    def inputs(self, ids: Ids) -> torch.Tensor:
        return torch.from_numpy(np.array(self.data.train.inputs[ids]))

    def rng(self, task: int, r: int, purpose: int) -> np.random.Generator:
        return numpy_generator(self.config.seed, task, r, purpose)

    def _decoding(self, images: Progress) -> None:
        """Decoding comes before the run itself, of which nothing is done yet."""
        self.tell(Progress(0.0, 1.0, f"{images.text} {images.done:.0f}/{images.total:.0f}", images.stage))

    def say(self, task: Task, r: int, what: str, stage: str, epochs: tuple[int, int] = (0, 1)) -> None:
        """Progress: a round costs as much as it has labels, so round r of R has done r (r + 1) / 2 of R (R + 1) / 2."""
        rounds = self.rounds(task)
        within = (r * (r + 1) / 2 + (r + 1) * epochs[0] / epochs[1]) / (rounds * (rounds + 1) / 2)
        text = f"task {task.index + 1}/{len(self.tasks)} round {r + 1}/{rounds} {what}"
        self.tell(Progress(task.index + within, len(self.tasks), text, stage, epochs))

    def tidy(self, *needed: Handle | None) -> None:
        """Delete weights that no later step can need."""
        keep = set()
        for handle in needed:
            if handle:
                keep |= {handle["file"], handle.get("memory", {}).get("file")}
        for path in weight_files(self.folder):
            if path.name not in keep:
                path.unlink()

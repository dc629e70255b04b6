"""The steps of Algorithm 1 with people as the oracle.

They differ from an experiment's in this: labels come from the store, and what was corrected or merged since is taken
over at the next training; the head grows with the classes that people name; a part of each task's uniform round is
held out, and never trained on, remembered or shown to a strategy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuacl import learners, models
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.base.randomness import held_out_rank
from accuacl.data import Rows, Task
from accuacl.experiment import Handle, Ids, Journal, LabelsPending, Steps, device_of, load_tensors, training_of
from accuacl.features import Features
from accuacl.labeling.project import backbones
from accuacl.labeling.project.inputs import TaskInputs, open_task_inputs, prepare
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.tasks import Tasks
from accuacl.labeling.store import Pick, RoundIncomplete, Store, living
from accuacl.memory import Memory

EMPTY = np.empty(0, np.int64)


class PeopleSteps(Steps):
    """The steps of one `advance`. What was taught so far is told to it again, by `take`, as the loop replays."""

    def __init__(
        self,
        settings: ProjectSettings,
        folder: Path,
        tasks: Tasks,
        store: Store,
        journal: Journal,
        progress: OnProgress | None,
    ) -> None:
        self.project, self.folder, self.on_disk, self.store, self.journal = settings, folder, tasks, store, journal
        self.config = settings.as_config()
        self.tell = progress or ignore
        self.tasks = [Task(task.index, (), task.ids, EMPTY) for task in tasks.all()]
        self.device = device_of(self.config)
        self.transform = learners.Transform() if settings.frozen else backbones.load(settings).transform
        self.settings = training_of(self.config, 1, self.device)
        self.loading = 0.0
        self.made: list[dict[str, Any]] = []  # the tasks whose inputs are ready
        self.all_inputs: TaskInputs | None = None
        self.taught: dict[int, int] = {}  # items that are trained on, and their classes now
        self.held: list[dict[int, int]] = []  # by task: held-out items and their classes now
        self.answered: dict[int, int] = {}  # by task: labels so far, held-out ones too

    def fingerprint(self) -> dict[str, Any]:
        """The data grow; each task has a fingerprint of its own."""
        return {}

    def pool_of(self, task: Task) -> Ids:
        """The task's items that can be read. Their embeddings are computed now if they are not there yet."""
        if task.index == len(self.made):
            info = self.on_disk.all()[task.index]

            def tell(items: Progress) -> None:
                text = f"task {task.index + 1}: preparing {items.done:.0f}/{items.total:.0f}"
                self.tell(Progress(items.done, items.total, text, "preparing"))

            made = self.journal.once("data", prepare, self.on_disk, info, self.project, tell, task=task.index)
            self.made.append(made)
            self.held.append({})
            self.all_inputs = open_task_inputs(self.on_disk, self.made, self.project)
        return np.delete(task.train, self.made[task.index]["bad"])

    def query(self, task: Task, r: int, pool: Ids, asked: Ids, *rest: Any) -> dict[str, Any]:
        """The picks, as in an experiment, and what the model takes each for."""
        known, memory, past, weights, seen = rest
        if len(asked) == len(pool):
            return {"ids": [], "scores": {}, "guess": [], "confidence": []}
        if weights is None:
            r = 0  # nothing has been learned yet, so there is nothing to choose by
        picked = super().query(task, r, pool, asked, known, memory, past, weights, seen)
        if weights is None:
            return picked | {"guess": [], "confidence": []}
        p = self.features(self.model(weights), np.array(picked["ids"], np.int64), seen).probabilities
        return picked | {"guess": seen[p.argmax(axis=1)].tolist(), "confidence": p.max(axis=1).tolist()}

    def label(self, task: Task, r: int, ids: list[int], known: int) -> dict[str, Any]:
        """What people said: labels and skips of the round as it closed, and all that was corrected until now."""
        self._publish(task, r)
        try:
            snapshot = self.store.close_round(task.index, r)
        except RoundIncomplete as waiting:
            raise LabelsPending(
                f"task {task.index + 1}, round {r + 1}: {waiting.left} of {waiting.total} are still to be labelled."
            ) from None
        now = self.store.labels()
        earlier = {item: label for part in (self.taught, *self.held) for item, label in part.items()}
        return {
            "labels": [[item, label] for item, label in snapshot.items() if label >= 0],
            "skipped": [item for item, label in snapshot.items() if label < 0],
            "held": held_out(ids, self.project.holdout, self.project.seed) if r == 0 else [],
            "corrected": [[item, now[item]] for item, label in earlier.items() if now[item] != label],
        }

    def _publish(self, task: Task, r: int) -> None:
        picked = self.journal.once("query", dict, task=task.index, round=r)
        picks = []
        for rank, item in enumerate(picked["ids"]):
            scores = {name: float(values[rank]) for name, values in picked["scores"].items()}
            guess = picked["guess"][rank] if picked["guess"] else None
            picks.append(Pick(item, rank, scores, guess, picked["confidence"][rank] if picked["guess"] else None))
        self.store.open_round(task.index, r, picks)

    def take(self, answer: dict[str, Any], known: Ids, labels: Ids, seen: Ids) -> tuple[Ids, Ids, Ids]:
        """What is trained on: all but the held-out, with the labels as they were when the round closed."""
        task, held = len(self.made) - 1, set(answer["held"])
        for item, label in answer["corrected"]:
            for place in (self.taught, *self.held):
                if item in place:
                    place[item] = label
        new = [item for item, _ in answer["labels"] if item not in held]
        self.held[task] |= {item: label for item, label in answer["labels"] if item in held}
        self.taught |= {item: label for item, label in answer["labels"] if item not in held}
        self.answered[task] = self.answered.get(task, 0) + len(answer["labels"])
        known = np.append(known, np.array(new, np.int64))
        return known, self._labels(known), np.unique(np.array(list(self.taught.values()), np.int64))

    def _labels(self, ids: Ids) -> Ids:
        return np.array([self.taught[item] for item in ids.tolist()], np.int64)

    def train(
        self, task: Task, r: int, known: Ids, labels: Ids, memory: Handle | None, start: Handle | None, seen: Ids
    ) -> Handle:
        """As in an experiment; the handle says which columns of the head count."""
        return super().train(task, r, known, labels, memory, start, seen) | {"seen": seen.tolist()}

    def budget(self, task: Task, r: int) -> int:
        """What is left of the task's labels up to this round: those skipped before are asked for again, as others."""
        return self.project.per_round * (r + 1) - self.answered.get(task.index, 0)

    @property
    def total_classes(self) -> int:
        return max(len(living(self.store.classes())), len(set(self.taught.values())))

    def evaluate(self, task: Task, r: int, weights: Handle | None, seen: Ids) -> dict[str, Any]:
        """What the model says of every held-out item so far; accuracy by task, null where none is held out."""
        if weights is None:
            return {"accuracy": [None] * (task.index + 1), "predictions": []}
        model = self.model(weights)
        accuracy: list[float | None] = []
        said: list[list[float]] = []
        for held in self.held[: task.index + 1]:
            ids, truth = np.array(list(held), np.int64), np.array(list(held.values()), np.int64)
            if not len(ids):
                accuracy.append(None)
                continue
            p = self.features(model, ids, seen).probabilities
            guess = seen[p.argmax(axis=1)]
            accuracy.append(100 * float((guess == truth).mean()))
            said += [[int(i), int(g), float(c)] for i, g, c in zip(ids, guess, p.max(axis=1), strict=True)]
        return {"accuracy": accuracy, "predictions": said}

    def remember(self, weights: Handle | None) -> dict[str, Any]:
        """As in an experiment; a task of which nothing was labelled leaves the memory as it was."""
        return super().remember(weights) if weights else {"ids": [], "labels": [], "file": None}

    def memory(self, handle: Handle | None) -> Memory:
        """The memory with its labels as they are now."""
        memory = super().memory(handle)
        return Memory.from_arrays(memory.to_arrays() | {"labels": self._labels(memory.ids)})

    def model(self, weights: Handle | None, classes: int = 0) -> models.Classifier:
        """The network at the start, or with the weights of a handle, whose head has at least `classes` rows."""
        state = load_tensors(self.folder, weights) if weights else None
        rows = len(state["head.weight"]) if state else max(1, classes)
        model = self._new(rows)
        if state:
            model.load_state_dict(state)
        model.grow(classes, self.project.seed)
        return model.to(self.device)

    def _new(self, classes: int) -> models.Classifier:
        if not self.project.frozen:
            return backbones.tuned(self.project, classes)
        assert self.all_inputs is not None
        c, shape = self.project, (self.all_inputs.shape[1],)
        return models.build(c.head, classes, seed=c.seed, input_shape=shape, width=c.width)

    def features(self, model: models.Classifier, ids: Ids, seen: Ids) -> Features:
        assert self.all_inputs is not None
        model.grow(int(seen.max()) + 1, self.project.seed)  # a correction may have named a class not yet trained on
        rows: Any = Rows(self.all_inputs, ids)  # type: ignore[arg-type]
        return Features(*models.predict(model, rows, self.transform, seen, device=self.device))

    def inputs(self, ids: Ids) -> torch.Tensor:
        assert self.all_inputs is not None
        return torch.from_numpy(self.all_inputs[ids])


def held_out(ids: list[int], share: float, seed: int) -> list[int]:
    """The share of a uniform round that is held out: those with the smallest hashes of (seed, id), at most all but one.

    >>> held_out([4, 5, 6, 7], 0.5, seed=0) == held_out([7, 6, 5, 4], 0.5, seed=0)
    True
    """
    count = min(round(share * len(ids)), len(ids) - 1)
    return sorted(sorted(ids, key=lambda item: held_out_rank(seed, item))[: max(0, count)])

"""The steps of Algorithm 1 with people as the oracle.

They differ from an experiment's in this: labels come from the store, and what was corrected or merged since is taken
over at the next training; the head grows with the classes that people name; a part of each task's first round, drawn
uniformly, is held out, and never trained on, remembered or shown to a strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.errors import LabelsPending
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.experiments import (
    Handle,
    Ids,
    Journal,
    Learning,
    LoopState,
    carried_over,
    choose,
    choose_uniformly,
    load_memory,
    memory_result,
    round_progress,
    train_round,
    training_of,
    update_memory,
)
from accuacl.experiments.data import Task
from accuacl.experiments.memory import Memory
from accuacl.features import Features
from accuacl.labeling.project import budget
from accuacl.labeling.project.first_round import (
    asked_twice,
    cover_first_round,
    give_out_first,
    rest_of_uniform,
    said_of,
    sample_of,
)
from accuacl.labeling.project.learned import Networks, as_memory, load_sums, save_sums, with_task
from accuacl.labeling.project.settings import STATISTICS, ProjectSettings
from accuacl.labeling.project.task_inputs import prepare
from accuacl.labeling.project.tasks import Tasks
from accuacl.labeling.project.taught import (
    KnownFromPeople,
    held_out,
    labels_of,
    late_labels,
    picks_of,
    take_given,
    with_answer,
)
from accuacl.labeling.store import RoundIncomplete, Store, counts_as, living


class PeopleSteps:
    """Implements `experiment.Steps` for one `advance`. overlap: the share of a new round that two people answer."""

    def __init__(
        self,
        settings: ProjectSettings,
        folder: Path,
        tasks: Tasks,
        store: Store,
        journal: Journal,
        overlap: float,
        on_progress: OnProgress | None,
    ) -> None:
        self.settings, self.folder, self.on_disk, self.store, self.journal = settings, folder, tasks, store, journal
        self.config, self.overlap = settings.as_config(), overlap
        self.on_progress = on_progress or ignore
        self.tasks = [Task(task.index, (), task.ids, np.empty(0, np.int64)) for task in tasks.all()]
        self.test_every_round = True
        self.networks = networks = Networks(settings, folder, tasks)
        training = replace(training_of(self.config, 1, networks.device), generalised=settings.ridge_by == "sums")
        self.learning = Learning(self.config, folder, training, networks.transform, networks.rows)

    def begin(self, task: Task, before: KnownFromPeople | None) -> KnownFromPeople:
        if not self.journal.has("query", task=task.index, round=0):
            give_out_first(self.settings, self.on_disk, self.store, self.on_disk.all()[task.index], self.overlap)
        pool, carried = self.pool_of(task), carried_over(before)
        if before is not None:
            carried |= {"taught": before.taught, "held": before.held}
        carried["held"] = (*carried.get("held", ()), {})
        rounds = 0 if self.settings.budget_total else self.settings.rounds
        return KnownFromPeople(task, rounds, pool, **carried)

    def pool_of(self, task: Task) -> Ids:
        """The task's items that can be read. Their embeddings are computed now if they are not there yet."""
        opened = self.networks.opened
        if task.index == len(opened):
            info = self.on_disk.all()[task.index]

            def on_items(items: Progress) -> None:
                text = f"task {task.index + 1}: preparing {items.done:.0f}/{items.total:.0f}"
                self.on_progress(Progress(items.done, items.total, text, "preparing"))

            made = self.journal.once("data", prepare, self.on_disk, info, self.settings, on_items, task=task.index)
            self.networks.open(made)
        return np.delete(task.train, opened[task.index]["bad"])

    def query(self, known: KnownFromPeople) -> dict[str, Any]:
        """The picks, as in an experiment, and what the model takes each for."""
        known = known.with_asked(self.store.unasked(known.task.index))
        first = [] if known.round else self.store.picks(known.task.index, 0)  # what people have already
        ended = self.store.has_ended(known.task.index)
        size, total = 0 if ended else self._budget(known), self.settings.budget_total
        nothing: dict[str, Any] = {"ids": [], "scores": {}, "guess": [], "confidence": []}
        if total and known.round and (over := self._over(known)):
            return nothing | {"over": over}
        if (ended or not len(known.left) or (total and not size)) and not first:
            return nothing
        self._say(known, "choosing", "choosing")

        def on_part(part: Progress) -> None:
            self._say(known, f"choosing {100 * part.share:.0f} %", "choosing", step=part.share)

        if known.round == 0 and self.config.first_round == "coverage" and (self.settings.frozen or known.weights):
            have, seen = [pick.item for pick in first], self._seen_first(known)
            part = self._part(known, "coverage", size)
            part = replace(part, pool=np.union1d(part.pool, np.array(have, np.int64)))
            picked = cover_first_round(self.config, part, size, self.settings.holdout, seen, have, on_part)
            picked = said_of(picked, part, known)
        elif first:
            ids, draws = rest_of_uniform(self.config, known, first, size)
            picked = {"ids": ids, "scores": {"draw": draws}}
        elif known.weights is None:  # nothing has been learned yet, so there is nothing to choose by
            at_first = replace(known, round=0)
            picked = choose_uniformly(self.config, at_first, size if total else self._budget(at_first))
        elif known.round == 0 or self.config.strategy == "uniform":
            picked = choose_uniformly(self.config, known, size)
        else:
            classes = max(len(living(self.store.classes())), len(set(known.taught.values())))
            memory, features = self._memory(known, known.memory).ids, self._features_by(known)
            part = self._part(known, self.config.strategy, size)
            picked = choose(self.config, part, self.config.strategy, size, features, memory, classes, on_part)
            picked = said_of(picked, part, known)
        return picked | self._guesses(known, picked["ids"])

    def _part(self, known: KnownFromPeople, strategy: str, size: int) -> KnownFromPeople:
        return sample_of(known, strategy, self.settings.sample, size, self.settings.seed)

    def _guesses(self, known: KnownFromPeople, items: list[int]) -> dict[str, Any]:
        if known.weights is None:
            return {"guess": [], "confidence": []}
        p = self._features_by(known)(np.array(items, np.int64)).probabilities
        return {"guess": known.seen[p.argmax(axis=1)].tolist(), "confidence": p.max(axis=1).tolist()}

    def _features_by(self, known: KnownFromPeople) -> Callable[[Ids], Features]:
        """How the model as it is sees items."""
        model = self.networks.model(known.weights)
        return lambda ids: self.networks.features(model, ids, known.seen)

    def _seen_first(self, known: KnownFromPeople) -> Callable[[Ids], Features]:
        """How the first round sees items: as a frozen network does, or as the one trained on the tasks before."""
        return self.networks.frozen_features if self.settings.frozen else self._features_by(known)

    def _budget(self, known: KnownFromPeople) -> int:
        """What is left of the task's labels up to this round: those skipped before are asked for again, as others.

        Of a budget for the whole project: what this round may have of it.
        """
        if self.settings.budget_total:
            purse = self._purse(known)
            return purse.next_round if known.round else purse.first_round
        return self.settings.per_round * (known.round + 1) - known.answered

    def _purse(self, known: LoopState) -> budget.LabelBudget:
        counts = [len(task.train) for task in self.tasks]
        return budget.open_label_budget(self.settings, self.store, counts, known.task.index, known.round)

    def _over(self, known: KnownFromPeople) -> dict[str, Any] | None:
        """Why a task has no further round, where rounds are as many as it needs."""
        found = budget.over(self._purse(known), self.store, self.journal.path, len(known.left))
        if found is None:
            return None
        why, gains = found
        return {"why": why, "here": gains and gains.here, "later": gains and gains.later}

    def label(self, known: KnownFromPeople, picked: dict[str, Any]) -> dict[str, Any]:
        """What people said: labels and skips of the round as it closed, and all that was corrected until now."""
        task, r = known.task.index, known.round
        had = {pick.item for pick in self.store.picks(task, r)}
        new = [item for item in picked["ids"] if item not in had]
        twice = asked_twice(new, self.overlap, self.settings.seed, len(had))
        self.store.open_round(task, r, picks_of(picked), twice)
        take_given(self.store, self.on_disk, task)
        try:
            snapshot = self.store.close_round(task, r, self.settings.close_at)
        except RoundIncomplete as waiting:
            raise LabelsPending(
                f"task {task + 1}, round {r + 1}: {waiting.left} of {waiting.total} are still to be labelled."
            ) from None
        broken = self.networks.unreadable()
        snapshot = {item: -1 if item in broken else label for item, label in snapshot.items()}
        now = self.store.labels()
        earlier = {item: label for labels in (known.taught, *known.held) for item, label in labels.items()}
        kept = set(known.task.train.tolist()) if self.settings.keep == STATISTICS else now.keys()
        late = late_labels(self.journal.path, now, kept, earlier.keys() | snapshot.keys() | broken)
        labelled = {item for item, label in snapshot.items() if label >= 0} | {item for item, _ in late}
        given = [item for item in self.store.unasked(task) if item in labelled]
        return {
            "labels": [[item, label] for item, label in snapshot.items() if label >= 0],
            "skipped": [item for item, label in snapshot.items() if label < 0],
            "held": self._held_out(picked) if r == 0 else [],
            "corrected": [[item, now[item]] for item, label in earlier.items() if now[item] != label],
            **({"merged": list(self._merged().items())} if self.settings.keep == STATISTICS else {}),
            **({"late": late} if late else {}),
            **({"given": given} if given else {}),
            **({"ended": True} if self.store.has_ended(task) else {}),
        }

    def _held_out(self, picked: dict[str, Any]) -> list[int]:
        return (
            picked["held"] if "held" in picked else held_out(picked["ids"], self.settings.holdout, self.settings.seed)
        )

    def with_labels(self, known: KnownFromPeople, answer: dict[str, Any]) -> KnownFromPeople:
        return with_answer(known, answer)

    def needs_training(self, known: KnownFromPeople) -> bool:
        return known.last_round or not known.ended

    def train(self, known: KnownFromPeople) -> Handle:
        """As in an experiment; the handle says which columns of the head count."""

        def on_epoch(epoch: Progress) -> None:
            self._say(known, epoch.text, "training", epoch.epochs or (0, 1))

        start = None if self.settings.learner == "ridge" else known.start  # ridge does not begin from other weights
        model = self.networks.model(start, classes=int(known.seen.max()) + 1)
        memory = self._memory(known, known.memory)
        return train_round(self.learning, known, model, memory, on_epoch) | {"seen": known.seen.tolist()}

    def _merged(self) -> dict[int, int]:
        return {id: into for id, into in counts_as(self.store.classes()).items() if id != into}

    def memory(self, known: KnownFromPeople) -> dict[str, Any]:
        """As in an experiment; a task of which nothing was labelled leaves the memory as it was."""
        handle = known.memory
        if self.settings.keep == STATISTICS:
            return self._summed(known)
        if len(known.ids):
            model, before = self.networks.model(known.weights), self._memory(known, known.memory)
            handle = update_memory(self.learning, known, model, before)
        return memory_result(self._memory(known, handle), handle)

    def _summed(self, known: KnownFromPeople) -> dict[str, Any]:
        """The task's labels, which cannot be corrected from now on, join the sums of those before."""
        self.store.seal(known.task.index)
        now = self.store.labels(known.ids.tolist())
        sums = load_sums(self.folder, known.memory)
        if now:
            ids = np.array(list(now), np.int64)
            sums = with_task(sums, self.networks.rows(ids).numpy(), labels_of(ids, now), self._merged())
        name = f"{known.task.index:03}-{known.round:03}-memory.safetensors"
        handle = save_sums(self.folder / name, sums)
        return {"ids": [], "labels": [], "summed": [list(pair) for pair in now.items()], "file": handle}

    def _memory(self, known: KnownFromPeople, handle: Handle | None) -> Memory:
        """The memory of a handle with its labels as they are now."""
        if self.settings.keep == STATISTICS:
            memory, self.networks.inputs.sums = as_memory(load_sums(self.folder, handle), known.merged)
            return memory
        memory = load_memory(self.folder, handle)
        return Memory.from_arrays(memory.to_arrays() | {"labels": labels_of(memory.ids, known.taught)})

    def evaluate(self, known: KnownFromPeople) -> dict[str, Any]:
        """What the model says of every held-out item so far; accuracy by task, null where none is held out."""
        if known.weights is None:
            return {"accuracy": [None] * (known.task.index + 1), "predictions": []}
        model, seen = self.networks.model(known.weights), known.seen
        accuracy: list[float | None] = []
        predictions: list[list[float]] = []
        for held in known.held:
            ids, truth = np.array(list(held), np.int64), np.array(list(held.values()), np.int64)
            if not len(ids):
                accuracy.append(None)
                continue
            p = self.networks.features(model, ids, seen).probabilities
            guess = seen[p.argmax(axis=1)]
            accuracy.append(100 * float((guess == truth).mean()))
            predictions += [[int(i), int(g), float(c)] for i, g, c in zip(ids, guess, p.max(axis=1), strict=True)]
        return {"accuracy": accuracy, "predictions": predictions}

    def _say(
        self, known: LoopState, what: str, stage: str, epochs: tuple[int, int] = (0, 1), step: float | None = None
    ) -> None:
        self.on_progress(round_progress(known, len(self.tasks), what, stage, epochs, step))

"""The steps of Algorithm 1 with people as the oracle.

They differ from the steps of an experiment: labels come from the store, and later corrections and merges take effect at
the next training; the head grows with the classes that people name; a part of each task's first round, drawn uniformly,
is held out, and never trained on, remembered or shown to a strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from accuacl import strategies
from accuacl.base.errors import LabelsPending
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.experiments import Handle, Ids, Journal, Learning, LoopState, checkpoints, choose
from accuacl.experiments.data import Task
from accuacl.experiments.heads import candidates_of_kind, looks_at_pool, prepare_gram
from accuacl.experiments.memory import Memory
from accuacl.experiments.networks import TORCH
from accuacl.features import Features
from accuacl.labeling.project.erasing import usable_items
from accuacl.labeling.project.given_labels import take_given
from accuacl.labeling.project.learned import Networks, as_memory, load_sums, save_sums, with_task
from accuacl.labeling.project.rounds import (
    Ahead,
    PeopleState,
    asked_twice,
    cover_first_round,
    give_out_first,
    held_of,
    if_the_rest_is_labelled,
    labels_of,
    late_labels,
    looked_at,
    picks_of,
    record_sample,
    rest_of_uniform,
    sample_of,
    sees_embeddings_alone,
    with_answer,
)
from accuacl.labeling.project.settings import STATISTICS
from accuacl.labeling.project.state import round_limit
from accuacl.labeling.project.task_inputs import prepare, prepare_first
from accuacl.labeling.store import RoundIncomplete, counts_as, living

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project


class PeopleSteps:
    """Implements `experiments.Steps` for one `advance`."""

    def __init__(
        self, project: Project, journal: Journal, on_progress: OnProgress | None = None, ahead: Ahead | None = None
    ) -> None:
        self.settings, self.config, self.folder = project.settings, project.settings.as_config(), project.weights
        self.on_disk, self.store, self.overlap = project.tasks, project.store, project.overlap
        self.journal, self.on_progress, self.ahead = journal, on_progress or ignore, ahead
        self._waiting: tuple[PeopleState, dict[str, Any]] | None = None  # the picks that wait for labels
        self._skipped: list[int] | None = None  # which of them were skipped when the next ones were chosen ahead
        self.tasks = [Task(task.index, (), task.ids, np.empty(0, np.int64)) for task in self.on_disk.all()]
        self.test_every_round = True
        self.networks = networks = Networks(self.settings, self.folder, self.on_disk)
        learning = Learning.of(self.config, self.folder, networks.device, networks.transform, networks.rows)
        blocks = self.settings.blocks
        training = replace(learning.training, kind="texts" if blocks else "vectors", blocks=blocks)
        self.learning = replace(learning, training=training)

    def begin(self, task: Task, before: PeopleState | None) -> PeopleState:
        if not self.journal.has("query", task=task.index, round=0):
            give_out_first(self.settings, self.on_disk, self.store, self.on_disk.all()[task.index], self.overlap)
        carried = before.carried_over() if before else {"held": ()}
        carried["held"] = (*carried["held"], {})
        rounds = 0 if self.settings.budget_total else self.settings.rounds_of(task.index)
        self._prepare_first(PeopleState(task, rounds, task.train, **carried))
        return PeopleState(task, rounds, self.pool_of(task), **carried)

    def _prepare_first(self, state: PeopleState) -> None:
        """Embed the items that the first round of a large pool is chosen from, unless it is chosen already.

        All other items are embedded while people label (`finish_preparing`), so that nobody waits for them.
        """
        s, task, info = self.settings, state.task, self.on_disk.all()[state.task.index]
        early = s.kind == "images" and s.frozen and s.runtime != TORCH and s.first_round == "coverage" and s.sample > 0
        begun = self.journal.has("data", task=task.index) or self.journal.has("query", task=task.index, round=0)
        if begun or not early or not Path(info.place).is_dir():
            return
        count, why_none = self._round_size(state)
        size = looked_at(s.sample, count)
        left = np.intersect1d(state.with_asked(self.store.unasked(task.index)).left, usable_items(self.on_disk, info))
        if why_none or len(left) <= size:
            return
        order = (strategies.in_sample_order(left, s.seed) - info.first).tolist()
        given_out = [pick.item - info.first for pick in self.store.picks(task.index, 0)]
        self.networks.open(prepare_first(self.on_disk, info, s, order, size, given_out, self._on_items(task)))

    def pool_of(self, task: Task) -> Ids:
        """Return the task's items that can be read. Their embeddings are computed now if they are not there yet."""
        if task.index == len(self.networks.opened):
            info, on_items = self.on_disk.all()[task.index], self._on_items(task)
            made = self.journal.once("data", prepare, self.on_disk, info, self.settings, on_items, task=task.index)
            self.networks.open(made)
        return np.delete(task.train, self.networks.opened[task.index]["bad"])

    def finish_preparing(self) -> None:
        """Embed the other rows of a task whose first round was chosen from a part of them."""
        opened = self.networks.opened
        if opened and "first" in opened[-1]:
            opened.pop()
            self.pool_of(self.tasks[len(opened)])

    def _on_items(self, task: Task) -> OnProgress:
        def on_items(items: Progress) -> None:
            text = f"task {task.index + 1}: preparing {items.done:.0f}/{items.total:.0f}"
            self.on_progress(Progress(items.done, items.total, text, "preparing"))

        return on_items

    def query(self, state: PeopleState) -> dict[str, Any]:
        """Return the picks, chosen as in an experiment, with the model's guess for each."""
        state = state.with_asked(self.store.unasked(state.task.index))
        first = [] if state.round else self.store.picks(state.task.index, 0)  # the picks that people have
        size, why_none = self._round_size(state)
        if why_none and not first:
            over = {"over": {"why": why_none}} if self.settings.budget_total and state.round else {}
            return {"ids": [], "scores": {}, "guess": [], "confidence": []} | over
        self._report(state, "choosing", "choosing")

        def on_part(part: Progress) -> None:
            self._report(state, f"choosing {100 * part.share:.0f} %", "choosing", step=part.share)

        if state.round == 0 and self.config.first_round == "coverage" and (self.settings.frozen or state.weights):
            given_out = [pick.item for pick in first]
            sample = self._sample(state, "coverage", size)
            sample = replace(sample, pool=np.union1d(sample.pool, np.array(given_out, np.int64)))
            features = self._features(state, self.settings.frozen)
            picked = cover_first_round(self.config, sample, size, self.settings.holdout, features, given_out, on_part)
            picked = record_sample(picked, sample, state)
        elif first:
            picked = rest_of_uniform(self.config, state, first, size)
        elif state.weights is None:  # nothing has been learned yet, so there is nothing to choose by
            at_first = replace(state, round=0)
            if not self.settings.budget_total:
                size = self._round_size(at_first)[0]
            picked = choose(self.config, at_first, "uniform", size)
        elif state.round == 0 or self.config.strategy == "uniform":
            picked = choose(self.config, state, "uniform", size)
        else:
            picked = self._chosen(state, size, on_part)
        if state.weights is None:
            return picked | {"guess": [], "confidence": []}
        p = self._features(state)(np.array(picked["ids"], np.int64)).probabilities
        return picked | {"guess": state.seen[p.argmax(axis=1)].tolist(), "confidence": p.max(axis=1).tolist()}

    def _chosen(self, state: PeopleState, size: int, on_part: OnProgress | None) -> dict[str, Any]:
        """Return the strategy's picks for a round that is not a task's first."""
        strategy, memory = self.config.strategy, self._memory(state, state.memory).ids
        classes = max(len(living(self.store.classes())), len(set(state.taught.values())))
        sample = self._sample(state, strategy, size)
        by_embeddings = sees_embeddings_alone(self.settings)

        def choose_now() -> dict[str, Any]:
            features = self._features(state, by_embeddings)
            return choose(self.config, sample, strategy, size, features, memory, classes, on_part)

        picked = self.ahead.choice(sample, size, memory, choose_now) if self.ahead and by_embeddings else choose_now()
        return record_sample(picked, sample, state)

    def choose_ahead(self) -> None:
        """While people label a round, choose the next one as if they skip nothing more, and prepare its fit.

        Called again, it chooses again if they have skipped something since.
        """
        if self.ahead is None or self._waiting is None or not sees_embeddings_alone(self.settings):
            return
        now, picked = self._waiting
        skipped, before = self.store.skipped(now.task.index, now.round), self._skipped
        if skipped == before:
            return
        self._skipped = skipped
        state = if_the_rest_is_labelled(self.settings, now, picked, skipped, self.pool_of(now.task))
        if self.settings.learner == "kernel":
            self._prepare_fit(np.array(sorted(state.taught), np.int64))
        state = state.with_asked(self.store.unasked(state.task.index))
        status = self.store.status()
        size, why_none = self._round_size(state, status.left if status else 0)
        if not why_none and (self.settings.budget_total or not now.last_round):
            self._chosen(state, size, None)

    def _prepare_fit(self, items: Ids) -> None:
        """Compute all that a kernel fit of these items needs except their labels."""
        x = self.networks.rows(items).numpy()
        blocks = self.settings.blocks or ((0, x.shape[1]),)
        with threadpool_limits(self.settings.threads):  # the last bits of results depend on the number of threads
            prepare_gram(x, candidates_of_kind("texts" if self.settings.blocks else "vectors", blocks)[0])

    def _round_size(self, state: PeopleState, coming: int = 0) -> tuple[int, str]:
        """Return how many labels the round asks for; if that is 0, also why: "ended", "pool" or "budget".

        Labels missing through skips are asked for again, for other items. coming: how many labels the round before is
        still to get.
        """
        if self.store.has_ended(state.task.index):
            return 0, "ended"
        if self.settings.budget_total:
            size = round_limit(self.settings, self.store, len(self.tasks), state.task.index, state.round, coming)
            return size, "pool" if not len(state.left) else "" if size else "budget"
        size = self.settings.per_round * (state.round + 1) - state.answered
        return size, "" if len(state.left) else "pool"

    def _sample(self, state: PeopleState, strategy: str, size: int) -> PeopleState:
        return sample_of(state, strategy, self.settings.sample, size, self.settings.seed)

    def _features(self, state: PeopleState, frozen: bool = False) -> Callable[[Ids], Features]:
        """Return a function that gives the features of items by the present model.

        frozen: it gives only the embeddings of a frozen network, which do not change.
        """
        if frozen:
            return self.networks.frozen_features
        assert state.weights is not None
        model = self.networks.predicting(state.weights)
        return lambda ids: self.networks.features(model, ids, state.seen)

    def label(self, state: PeopleState, picked: dict[str, Any]) -> dict[str, Any]:
        """Return the answers of people: labels and skips of the closed round, and all corrections until now."""
        task, r = state.task.index, state.round
        had = {pick.item for pick in self.store.picks(task, r)}
        new = [item for item in picked["ids"] if item not in had]
        twice = asked_twice(new, self.overlap, self.settings.seed, len(had))
        self.store.open_round(task, r, picks_of(picked), twice)
        take_given(self.store, self.on_disk, task)
        try:
            snapshot = self.store.close_round(task, r, self.settings.close_at)
        except RoundIncomplete as waiting:
            self._waiting = (state, picked)
            raise LabelsPending(
                f"task {task + 1}, round {r + 1}: {waiting.left} of {waiting.total} are still to be labelled."
            ) from None
        self.finish_preparing()  # given labels may be of any item of the pool, so all must be embedded
        unreadable = self.networks.unreadable()
        snapshot = {item: -1 if item in unreadable else label for item, label in snapshot.items()}
        now = self.store.labels()
        earlier = {item: label for labels in (state.taught, *state.held) for item, label in labels.items()}
        kept = set(state.task.train.tolist()) if self.settings.keep == STATISTICS else now.keys()
        late = late_labels(self.journal.path, now, kept, earlier.keys() | snapshot.keys() | unreadable)
        labelled = {item for item, label in snapshot.items() if label >= 0} | {item for item, _ in late}
        given = [item for item in self.store.unasked(task) if item in labelled]
        return {
            "labels": [[item, label] for item, label in snapshot.items() if label >= 0],
            "skipped": [item for item, label in snapshot.items() if label < 0],
            "held": held_of(picked, r, self.settings.holdout, self.settings.seed),
            "corrected": [[item, now[item]] for item, label in earlier.items() if now[item] != label],
            **({"merged": list(self._merged().items())} if self.settings.keep == STATISTICS else {}),
            **({"late": late} if late else {}),
            **({"given": given} if given else {}),
            **({"ended": True} if self.store.has_ended(task) else {}),
        }

    def with_labels(self, state: PeopleState, answer: dict[str, Any]) -> PeopleState:
        return with_answer(replace(state, pool=self.pool_of(state.task)), answer)

    def needs_training(self, state: PeopleState) -> bool:
        return state.last_round or not state.ended

    def train(self, state: PeopleState) -> Handle:
        """Train as in an experiment; the handle says which columns of the head count."""

        def on_epoch(epoch: Progress) -> None:
            self._report(state, epoch.text, "training", epoch.epochs or (0, 1))

        start = None if self.settings.exact else state.start  # exact learners do not start from earlier weights
        model = self.networks.model(start, classes=int(state.seen.max()) + 1)
        memory = self._memory(state, state.memory)
        handle = self.learning.train(state, model, memory, on_epoch, self._unlabelled(state, memory))
        self.networks.keep(handle, model)
        return handle | {"seen": state.seen.tolist()}

    def _unlabelled(self, state: PeopleState, memory: Memory) -> list[Ids]:
        """Return the items of each task that nobody has labelled or skipped, if the head learns from them too."""
        if not looks_at_pool(self.settings.pool_learning, len(state.ids) + len(memory)):
            return []
        known = [item for labels in (state.taught, *state.held, state.skipped) for item in labels]
        return [np.setdiff1d(self.pool_of(task), known) for task in self.tasks[: state.task.index + 1]]

    def _merged(self) -> dict[int, int]:
        return {id: into for id, into in counts_as(self.store.classes()).items() if id != into}

    def memory(self, state: PeopleState) -> dict[str, Any]:
        """Update the memory as in an experiment; a task without labels leaves it unchanged."""
        handle = state.memory
        if self.settings.keep == STATISTICS:
            return self._summed(state)
        if len(state.ids):
            model, before = self.networks.model(state.weights), self._memory(state, state.memory)
            handle = self.learning.update_memory(state, model, before)
        return checkpoints.memory_result(self._memory(state, handle), handle)

    def _summed(self, state: PeopleState) -> dict[str, Any]:
        """Add the task's labels to the sums of earlier tasks; they cannot be corrected from now on."""
        self.store.seal(state.task.index)
        now = self.store.labels(state.ids.tolist())
        sums = load_sums(self.folder, state.memory)
        if now:
            ids = np.array(list(now), np.int64)
            sums = with_task(sums, self.networks.rows(ids).numpy(), labels_of(ids, now), self._merged())
        name = f"{state.task.index:03}-{state.round:03}-memory.safetensors"
        handle = save_sums(self.folder / name, sums)
        return {"ids": [], "labels": [], "summed": [list(pair) for pair in now.items()], "file": handle}

    def _memory(self, state: PeopleState, handle: Handle | None) -> Memory:
        """Return the memory of a handle with its labels as corrected by now."""
        if self.settings.keep == STATISTICS:
            memory, self.networks.inputs.sums = as_memory(load_sums(self.folder, handle), state.merged)
            return memory
        memory = self.learning.load_memory(handle)
        return Memory.from_arrays(memory.to_arrays() | {"labels": labels_of(memory.ids, state.taught)})

    def evaluate(self, state: PeopleState) -> dict[str, Any]:
        """Return the predictions for all held-out items, and the accuracy by task, null for one without such items."""
        if state.weights is None:
            return {"accuracy": [None] * (state.task.index + 1), "predictions": []}
        model, seen = self.networks.predicting(state.weights), state.seen
        accuracy: list[float | None] = []
        predictions: list[list[float]] = []
        for held in state.held:
            ids, truth = np.array(list(held), np.int64), np.array(list(held.values()), np.int64)
            if not len(ids):
                accuracy.append(None)
                continue
            p = self.networks.features(model, ids, seen).probabilities
            guess = seen[p.argmax(axis=1)]
            accuracy.append(100 * float((guess == truth).mean()))
            predictions += [[int(i), int(g), float(c)] for i, g, c in zip(ids, guess, p.max(axis=1), strict=True)]
        return {"accuracy": accuracy, "predictions": predictions}

    def _report(
        self, state: LoopState, what: str, stage: str, epochs: tuple[int, int] = (0, 1), step: float | None = None
    ) -> None:
        self.on_progress(state.progress(len(self.tasks), what, stage, epochs, step))

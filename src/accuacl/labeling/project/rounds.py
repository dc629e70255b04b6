"""The rounds of a project: which items each has, which of them are held out, and what the answers of people teach.

The first items of a task are drawn from all of them by a hash, whether or not their embeddings are there, so the picks
do not depend on when people begin. Items that cannot be read are passed over. The rest of the round is added when the
embeddings are there.

While people label a round, the next one can be chosen ahead: coverage looks at embeddings and at which items were
asked, not at answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from accuacl import strategies
from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.base.randomness import rank
from accuacl.experiments import Config, Ids, LoopState, Step, choose, read_steps
from accuacl.experiments.data import Task
from accuacl.features import Features
from accuacl.labeling.project.erasing import erased_rows
from accuacl.labeling.project.given_labels import to_give
from accuacl.labeling.project.images import check_image, open_inside, read_inside
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.state import round_limit
from accuacl.labeling.project.tasks import FOLDERS, TaskInfo, Tasks
from accuacl.labeling.store import Pick, Store

SAMPLED = 20  # a sample has at least this many items for each item that is to be picked

Labels = dict[int, int]  # {item: its class, as last corrected}


@dataclass(frozen=True, eq=False)
class PeopleState(LoopState):
    """The state of a project: unlike in an experiment, people correct labels, and some items are held out."""

    taught: Labels = field(default_factory=dict)  # all items of this and earlier tasks that are trained on
    held: tuple[Labels, ...] = ()  # the held-out items of each task
    skipped: frozenset[int] = frozenset()  # the items of this and earlier tasks that people skipped
    merged: Labels = field(default_factory=dict)  # {merged class: the class it counts as}, where only sums are kept
    answered: int = 0  # how many items of this task people have labelled, including held-out ones
    ended: bool = False  # whether a lead had ended the task when the round closed; only the last training is then done

    def carried_over(self) -> dict[str, Any]:
        return super().carried_over() | {"taught": self.taught, "held": self.held, "skipped": self.skipped}


def with_answer(state: PeopleState, answer: dict[str, Any]) -> PeopleState:
    """The state after the answer of a round: all but its held-out items are trained on, as they were corrected."""
    corrected, held_out_now = dict(answer["corrected"]), set(answer["held"])
    taught, *held = (
        {item: corrected.get(item, label) for item, label in labels.items()} for labels in (state.taught, *state.held)
    )
    late = dict(answer.get("late", ()))
    new = late | {item: label for item, label in answer["labels"] if item not in held_out_now}
    held[-1] |= {item: label for item, label in answer["labels"] if item in held_out_now}
    taught |= new
    ids = np.append(state.ids, np.array(list(new), np.int64))
    return replace(
        state,
        ids=ids,
        labels=labels_of(ids, taught),
        seen=np.unique(np.array(list(taught.values()), np.int64)),
        taught=taught,
        held=tuple(held),
        skipped=state.skipped.union(answer.get("skipped", ())),
        merged=dict(answer.get("merged", ())),
        answered=state.answered + len(answer["labels"]) + len(late) - len(answer.get("given", ())),
        ended=answer.get("ended", False),
    )


def taught_by(answers: Iterable[Step]) -> Labels:
    """Return the items that are trained on after these answers of people, with their labels as corrected by then."""
    taught: Labels = {}
    for step in answers:
        new, held = dict(step.result["labels"]) | dict(step.result.get("late", ())), set(step.result["held"])
        corrected = {item: label for item, label in step.result["corrected"] if item in taught}
        taught |= corrected | {item: label for item, label in new.items() if item not in held}
    return taught


def labels_of(ids: Ids, taught: Labels) -> Ids:
    return np.array([taught[item] for item in ids.tolist()], np.int64)


def late_labels(journal: Path, now: Labels, kept: Set[int], known: Set[int]) -> list[list[int]]:
    """Return [item, label] for each label that was given only after its round had been closed without it.

    Held-out items are left out, as they are never trained on. known: the items whose labels were learned before. kept:
    the items that can still be learned from; where only sums are kept, those of earlier tasks cannot.
    """
    late = {item: label for item, label in now.items() if item not in known and item in kept}
    if late:
        for step in read_steps(journal, "label"):
            late = {item: label for item, label in late.items() if item not in set(step.result["held"])}
    return [[item, label] for item, label in late.items()]


# Which items a round has


def give_out_first(settings: ProjectSettings, tasks: Tasks, store: Store, task: TaskInfo, overlap: float) -> None:
    """Open the task's first round with the items that are drawn at random, unless it is open or none are drawn so.

    In a round that covers the pool these are the items to be held out. A uniform round is drawn as a whole, but only in
    the first task, because later ones come with the model's guesses. Labels that are given with the data are taken in
    the same transaction.
    """
    coverage = settings.first_round == "coverage"
    if store.picks(task.index, 0) or (not settings.frozen if coverage else task.index > 0):
        return
    if task.kind in FOLDERS and not Path(task.place).is_dir():
        return  # preparing the task then says that the folder is missing
    count = min(settings.per_round, task.count)
    if settings.budget_total:
        count = min(count, round_limit(settings, store, len(tasks.all()), task.index, 0))
    wanted = held_out_count(settings.holdout, count) if coverage else count
    if not wanted:
        return
    ids, scores = _draw(settings.as_config(), task.index, task.ids, wanted, _readable(settings, tasks, task))
    picks = [Pick(item, i, {} if coverage else {"draw": scores[i]}) for i, item in enumerate(ids)]
    twice = asked_twice(ids, overlap, settings.seed)
    store.begin_round(task.index, picks, twice, to_give(store, tasks, task.index))


def rest_of_uniform(config: Config, state: LoopState, first: list[Pick], budget: int) -> dict[str, Any]:
    """Return the picks of a uniform round: those in `first`, which people already have, and more until it is full."""
    have = {pick.item for pick in first}
    left = set(state.left.tolist()) - have
    ids, scores = _draw(config, state.task.index, state.task.train, max(0, budget - len(first)), left.__contains__)
    draws = [pick.scores["draw"] for pick in first] + scores
    return {"ids": [pick.item for pick in first] + ids, "scores": {"draw": draws}}


def _draw(
    config: Config, task: int, items: Ids, count: int, usable: Callable[[int], bool]
) -> tuple[list[int], list[float]]:
    """Return the first `count` usable items of a task in the order of a hash, and the hashes as numbers in [0, 1)."""
    state = LoopState(Task(task, (), items, np.empty(0, np.int64)), config.rounds, items)
    picked = choose(config, state, "uniform", len(items))
    drawn = (pair for pair in zip(picked["ids"], picked["scores"]["draw"], strict=True) if usable(pair[0]))
    first = list(islice(drawn, count))
    return [item for item, _ in first], [score for _, score in first]


def _readable(settings: ProjectSettings, tasks: Tasks, task: TaskInfo) -> Callable[[int], bool]:
    """Return a function that says of an item whether its file or row exists and, if it is an image, can be decoded."""
    names, root, erased = tasks.table(task.index)["name"], Path(task.place), erased_rows(tasks, task)

    def is_readable(item: int) -> bool:
        row = item - task.first
        try:
            if task.kind == "images":
                check_image(read_inside(root, names[row]), settings.side)
            elif task.kind == "files":
                with open_inside(root, names[row]):
                    pass
        except InputError:
            return False
        return task.kind in FOLDERS or row not in erased

    return is_readable


def asked_twice(items: list[int], share: float, seed: int, before: int = 0) -> set[int]:
    """Return the items of a round about which two people are asked: those with the smallest hashes of (seed, item).

    before: how many picks of the round people already have; the same share of these was chosen earlier.

    >>> len(asked_twice(list(range(40)), 0.1, seed=0)), len(asked_twice(list(range(35)), 0.1, seed=0, before=5))
    (4, 4)
    """
    count = round(share * (before + len(items))) - round(share * before)
    return set(sorted(items, key=lambda item: rank(f"twice/{seed}", item))[:count])


def cover_first_round(
    config: Config,
    state: LoopState,
    budget: int,
    holdout: float,
    features: Callable[[Ids], Features],
    given_out: list[int],
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Pick a uniform part, which is held out and named by `held`, and a part that covers the pool.

    Held-out items do not count as covered. given_out: the uniform part, if people have it already.
    """
    budget = min(budget, len(state.left))
    uniform = given_out or choose(config, state, "uniform", held_out_count(holdout, budget))["ids"]
    rest = replace(state, asked=np.append(state.asked, np.array(uniform, np.int64)))
    more = min(max(0, budget - len(uniform)), len(rest.left))
    if not more:
        return {"ids": uniform, "scores": {}, "held": sorted(uniform)}
    covering = choose(config, rest, "coverage", more, features, np.empty(0, np.int64), 1, on_progress)
    scores = {name: [None] * len(uniform) + values for name, values in covering["scores"].items()}
    return {"ids": uniform + covering["ids"], "scores": scores, "held": sorted(uniform)}


def sample_of(state: PeopleState, strategy: str, sample: int, count: int, seed: int) -> PeopleState:
    """Return the state with a sample of the unasked items as its pool, if the strategy can work on a sample.

    The sample has the items whose numbers have the smallest hashes, so that it stays the same from round to round.
    """
    size = looked_at(sample, count)
    if not sample or len(state.left) <= size or not strategies.takes_sample(strategy):
        return state
    return replace(state, pool=np.sort(strategies.in_sample_order(state.left, seed)[:size]))


def looked_at(sample: int, count: int) -> int:
    """Return how many items of a large pool a strategy looks at to pick this many."""
    return max(sample, SAMPLED * count)


def record_sample(picked: dict[str, Any], sample: PeopleState, state: PeopleState) -> dict[str, Any]:
    """Return the picks with the sizes of sample and pool; gains are scaled from the sample to the pool."""
    size, whole = len(sample.left), len(state.left)
    if size == whole:
        return picked
    scores = {
        name: [value if value is None else value * (whole / size) for value in values] if name == "gain" else values
        for name, values in picked["scores"].items()
    }
    return picked | {"scores": scores, "sample": size, "pool": whole}


def held_of(picked: dict[str, Any], round: int, share: float, seed: int) -> list[int]:
    """Return the held-out picks: in a task's first round those that it names, or a share of them; in others none."""
    if round or "held" in picked:
        return [] if round else list(picked["held"])
    return held_out(picked["ids"], share, seed)


def held_out(ids: list[int], share: float, seed: int) -> list[int]:
    """Return the items of a uniform round that are held out: those with the smallest hashes of (seed, id).

    share: the share of the round to hold out; at least one item is left to train on.

    >>> held_out([4, 5, 6, 7], 0.5, seed=0) == held_out([7, 6, 5, 4], 0.5, seed=0)
    True
    """

    def rank(item: int) -> bytes:
        return hashlib.blake2b(f"held out/{seed}/{item}".encode()).digest()

    return sorted(sorted(ids, key=rank)[: held_out_count(share, len(ids))])


def held_out_count(share: float, count: int) -> int:
    """Return how many of `count` items are held out; at least one is trained on."""
    return max(0, min(round(share * count), count - 1))


def picks_of(picked: dict[str, Any]) -> list[Pick]:
    """Return the result of a query as picks for the store."""
    picks = []
    for row, item in enumerate(picked["ids"]):
        scores = {name: float(values[row]) for name, values in picked["scores"].items() if values[row] is not None}
        guess, confidence = (picked[name][row] if picked["guess"] else None for name in ("guess", "confidence"))
        picks.append(Pick(item, row, scores, guess, confidence))
    return picks


# The next round, chosen while people label the present one


class Ahead:
    """The last choice of picks, and all that it depended on, kept in the memory of one process.

    The choice is used if nothing that it depended on has changed. Otherwise, for example after one more skip, the end
    of a task or a request to forget data, the batch is chosen again.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._picked: dict[str, Any] = {}

    def choice(self, state: LoopState, size: int, memory: Ids, choose: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what `choose` picks for this state, from the last call if that had the same state."""
        ids = (state.left, state.ids, memory)
        key = (
            state.task.index,
            state.round,
            size,
            len(state.earlier),
            *(each.astype(np.int64).tobytes() for each in ids),
        )
        if key != self._key:
            self._picked, self._key = choose(), key
        return self._picked


def sees_embeddings_alone(settings: ProjectSettings) -> bool:
    """Return whether rounds after the first depend only on fixed embeddings and on which items were asked."""
    return settings.frozen and settings.head == "linear" and settings.strategy == "coverage"


def if_the_rest_is_labelled(
    settings: ProjectSettings, state: PeopleState, picked: dict[str, Any], skipped: list[int], pool: Ids
) -> PeopleState:
    """Return the state of the next round as it will be if every pick of this one but the skipped ones gets a label."""
    labels = [[item, 0] for item in picked["ids"] if item not in set(skipped)]
    held = held_of(picked, state.round, settings.holdout, settings.seed)
    answer = {"labels": labels, "held": held, "corrected": [], "skipped": skipped}
    return PeopleState(**(vars(with_answer(state, answer)) | {"round": state.round + 1, "pool": pool}))

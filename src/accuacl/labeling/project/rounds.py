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

SAMPLED = 20  # items of a sample, at least, for each that is to be picked

Labels = dict[int, int]  # item: its class, as last corrected


@dataclass(frozen=True, eq=False)
class PeopleState(LoopState):
    """The state of a project: unlike in an experiment, people correct labels, and some items are held out."""

    taught: Labels = field(default_factory=dict)  # all items that are trained on, of this task and the ones before
    held: tuple[Labels, ...] = ()  # the held-out items of each task
    skipped: frozenset[int] = frozenset()  # what people would not label, of this task and the ones before
    merged: Labels = field(default_factory=dict)  # classes that count as others; where only sums are kept
    answered: int = 0  # how many items of this task people have labelled, held-out ones too
    ended: bool = False  # whether a lead had ended the task when the round was closed, so that only the last trains

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
    """The items that are trained on after these answers of people, with the labels that they have then."""
    taught: Labels = {}
    for step in answers:
        new, held = dict(step.result["labels"]) | dict(step.result.get("late", ())), set(step.result["held"])
        corrected = {item: label for item, label in step.result["corrected"] if item in taught}
        taught |= corrected | {item: label for item, label in new.items() if item not in held}
    return taught


def labels_of(ids: Ids, taught: Labels) -> Ids:
    return np.array([taught[item] for item in ids.tolist()], np.int64)


def late_labels(journal: Path, now: Labels, kept: Set[int], known: Set[int]) -> list[list[int]]:
    """Labels given only after their round was closed without them; what is held out is never trained on.

    kept: the items that can still be learned from. Where only sums are kept, nothing is left of earlier tasks' items.
    """
    late = {item: label for item, label in now.items() if item not in known and item in kept}
    if late:
        for step in read_steps(journal, "label"):
            late = {item: label for item, label in late.items() if item not in set(step.result["held"])}
    return [[item, label] for item, label in late.items()]


# Which items a round has


def give_out_first(settings: ProjectSettings, tasks: Tasks, store: Store, task: TaskInfo, overlap: float) -> None:
    """Open the task's first round with what it draws at random; nothing if it is open, or draws nothing that way.

    That is what is held out of a round that covers the pool, and, in the first task alone, a whole uniform round: later
    ones come with the model's guesses. Labels that are given with the data are taken at the same moment.
    """
    coverage = settings.first_round == "coverage"
    if store.picks(task.index, 0) or (not settings.frozen if coverage else task.index > 0):
        return
    if task.kind in FOLDERS and not Path(task.place).is_dir():
        return  # preparing the task says so
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
    """A uniform round whose first picks people already have: those, and more until it is full."""
    have = {pick.item for pick in first}
    left = set(state.left.tolist()) - have
    ids, scores = _draw(config, state.task.index, state.task.train, max(0, budget - len(first)), left.__contains__)
    draws = [pick.scores["draw"] for pick in first] + scores
    return {"ids": [pick.item for pick in first] + ids, "scores": {"draw": draws}}


def _draw(
    config: Config, task: int, items: Ids, count: int, usable: Callable[[int], bool]
) -> tuple[list[int], list[float]]:
    """This many usable items of a task in the order of a hash, and their numbers in [0, 1)."""
    state = LoopState(Task(task, (), items, np.empty(0, np.int64)), config.rounds, items)
    picked = choose(config, state, "uniform", len(items))
    drawn = (pair for pair in zip(picked["ids"], picked["scores"]["draw"], strict=True) if usable(pair[0]))
    first = list(islice(drawn, count))
    return [item for item, _ in first], [score for _, score in first]


def _readable(settings: ProjectSettings, tasks: Tasks, task: TaskInfo) -> Callable[[int], bool]:
    """Whether an item is there, and an image can be decoded, as when it is embedded."""
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
    """The share of a round about which two people are asked: those with the smallest hashes of (seed, item).

    before: how many picks of the round people already have, the same share of which was chosen then.

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
    """Picks that cover the pool and a uniform part, named by `held`; what is held out does not count as covered.

    given_out: the uniform part, if people have it already.
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
    """The state with a pool of this many unasked items, if the strategy can work on a sample.

    It has those whose numbers have the smallest hashes, so that the same items are in it from round to round.
    """
    size = looked_at(sample, count)
    if not sample or len(state.left) <= size or not strategies.takes_sample(strategy):
        return state
    return replace(state, pool=np.sort(strategies.in_sample_order(state.left, seed)[:size]))


def looked_at(sample: int, count: int) -> int:
    """How many items of a large pool a strategy looks at to pick this many."""
    return max(sample, SAMPLED * count)


def record_sample(picked: dict[str, Any], sample: PeopleState, state: PeopleState) -> dict[str, Any]:
    """The picks with the sizes of the sample and of the pool, to which gains are scaled."""
    size, whole = len(sample.left), len(state.left)
    if size == whole:
        return picked
    scores = {
        name: [value if value is None else value * (whole / size) for value in values] if name == "gain" else values
        for name, values in picked["scores"].items()
    }
    return picked | {"scores": scores, "sample": size, "pool": whole}


def held_of(picked: dict[str, Any], round: int, share: float, seed: int) -> list[int]:
    """The picks that are held out: of a task's first round those that it names, or else a share of them."""
    if round or "held" in picked:
        return [] if round else list(picked["held"])
    return held_out(picked["ids"], share, seed)


def held_out(ids: list[int], share: float, seed: int) -> list[int]:
    """The share of a uniform round that is held out: those with the smallest hashes of (seed, id), at most all but one.

    >>> held_out([4, 5, 6, 7], 0.5, seed=0) == held_out([7, 6, 5, 4], 0.5, seed=0)
    True
    """

    def rank(item: int) -> bytes:
        return hashlib.blake2b(f"held out/{seed}/{item}".encode()).digest()

    return sorted(sorted(ids, key=rank)[: held_out_count(share, len(ids))])


def held_out_count(share: float, count: int) -> int:
    """How many of these items are held out; at least one is trained on."""
    return max(0, min(round(share * count), count - 1))


def picks_of(picked: dict[str, Any]) -> list[Pick]:
    """The result of a query as the store takes it."""
    picks = []
    for row, item in enumerate(picked["ids"]):
        scores = {name: float(values[row]) for name, values in picked["scores"].items() if values[row] is not None}
        guess, confidence = (picked[name][row] if picked["guess"] else None for name in ("guess", "confidence"))
        picks.append(Pick(item, row, scores, guess, confidence))
    return picks


# The next round, chosen while people label the present one


class Ahead:
    """The last choice and what it depended on, kept in the memory of one process.

    It is used if all that it depended on is unchanged. Otherwise, such as after one more skip, the end of a task or a
    request to forget data, the batch is chosen again.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._picked: dict[str, Any] = {}

    def choice(self, state: LoopState, size: int, memory: Ids, choose: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `choose` picks for this state; reused if it was already chosen for the same state."""
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
    """Whether rounds after the first depend on embeddings and on which items were asked, and embeddings stay."""
    return settings.frozen and settings.head == "linear" and settings.strategy == "coverage"


def if_the_rest_is_labelled(
    settings: ProjectSettings, state: PeopleState, picked: dict[str, Any], skipped: list[int], pool: Ids
) -> PeopleState:
    """The state of the next round if every pick of this one gets a label, but for those that were skipped."""
    labels = [[item, 0] for item in picked["ids"] if item not in set(skipped)]
    held = held_of(picked, state.round, settings.holdout, settings.seed)
    answer = {"labels": labels, "held": held, "corrected": [], "skipped": skipped}
    return PeopleState(**(vars(with_answer(state, answer)) | {"round": state.round + 1, "pool": pool}))

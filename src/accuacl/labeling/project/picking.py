"""Which items a round has: those drawn at random, which people get at once, those that cover the pool, and samples.

The first items of a task are drawn from all of them by a hash, whether or not their embeddings are there, so the picks
do not depend on when people begin. Items that cannot be read are passed over. The rest of the round is added when the
embeddings are there.

While people label a round, the next one can be chosen ahead: coverage looks at embeddings and at which items were
asked, not at answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from accuacl import strategies
from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.base.randomness import rank
from accuacl.experiments import Config, Ids, LoopState, choose
from accuacl.experiments.data import Task
from accuacl.features import Features
from accuacl.labeling.project.erasing import erased_rows
from accuacl.labeling.project.given_labels import to_give
from accuacl.labeling.project.images import check_image, open_inside, read_inside
from accuacl.labeling.project.people_state import PeopleState, held_of, held_out_count, with_answer
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.state import round_limit
from accuacl.labeling.project.tasks import FOLDERS, TaskInfo, Tasks
from accuacl.labeling.store import Pick, Store

SAMPLED = 20  # items of a sample, at least, for each that is to be picked


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
    """Picks that cover the pool beside a uniform part, named by `held`; what is held out does not count as covered.

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


# The next round, chosen while people label the present one


class Ahead:
    """The last choice that was made, and what it depended on; kept in memory, by one process.

    It is used where everything that it depended on is the same. Otherwise, such as after one more skip, the end of a
    task or a request to forget data, the batch is chosen again.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._picked: dict[str, Any] = {}

    def choice(self, state: LoopState, size: int, memory: Ids, choose: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `choose` picks for this state; without choosing, if that has been done for the same one."""
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

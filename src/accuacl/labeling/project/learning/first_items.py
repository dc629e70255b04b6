"""The first items of a task, which people get at once: those drawn at random need no embeddings.

They are drawn from all items of the task by a hash, whether or not its embeddings are there, so the picks do not depend
on when people begin. Items that cannot be read are passed over. `learning` adds the rest of the round when it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.randomness import rank as drawn
from accuacl.data import Task
from accuacl.experiment import Config, Ids, Known, choose_uniformly
from accuacl.labeling.project.items.erasing import erased_rows
from accuacl.labeling.project.items.images import check_image, read_inside
from accuacl.labeling.project.items.tasks import TaskInfo, Tasks
from accuacl.labeling.project.learning.given import to_give
from accuacl.labeling.project.learning.taught import held_out_count
from accuacl.labeling.project.measuring.budget import open_purse
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.store import Pick, Store


def give_out_first(settings: ProjectSettings, tasks: Tasks, store: Store, task: TaskInfo, overlap: float) -> None:
    """Open the task's first round with what it draws at random; nothing if it is open, or draws nothing that way.

    That is what is held out of a round that covers the pool, and, in the first task alone, a whole uniform round: later
    ones come with the model's guesses. Labels that are given with the data are taken at the same moment.
    """
    coverage = settings.first_round == "coverage"
    if store.picks(task.index, 0) or (not settings.frozen if coverage else task.index > 0):
        return
    if task.kind == "images" and not Path(task.place).is_dir():
        return  # preparing the task says so
    count = min(settings.per_round, task.count)
    if settings.budget_total:
        counts = [pool.count for pool in tasks.all()]
        count = min(count, open_purse(settings, store, counts, task.index, 0).first_round)
    wanted = held_out_count(settings.holdout, count) if coverage else count
    if not wanted:
        return
    ids, scores = draw(settings.as_config(), task.index, task.ids, wanted, _readable(settings, tasks, task))
    picks = [Pick(item, rank, {} if coverage else {"draw": scores[rank]}) for rank, item in enumerate(ids)]
    twice = asked_twice(ids, overlap, settings.seed)
    store.begin_round(task.index, picks, twice, to_give(store, tasks, task.index))


def draw(
    config: Config, task: int, items: Ids, count: int, usable: Callable[[int], bool]
) -> tuple[list[int], list[float]]:
    """Items of a task in the order of a hash, as many as that of those usable, and their numbers in [0, 1)."""
    known = Known(Task(task, (), items, np.empty(0, np.int64)), config.rounds, items)
    picked = choose_uniformly(config, known, len(items))
    ids: list[int] = []
    scores: list[float] = []
    for item, score in zip(picked["ids"], picked["scores"]["draw"], strict=True):
        if len(ids) == count:
            break
        if usable(item):
            ids.append(item)
            scores.append(score)
    return ids, scores


def rest_of_uniform(config: Config, known: Known, first: list[Pick], budget: int) -> tuple[list[int], list[float]]:
    """A uniform round of which people have the first picks: those, and more that are left until it is full."""
    have = {pick.item for pick in first}
    left = set(known.left.tolist()) - have
    ids, scores = draw(config, known.task.index, known.task.train, max(0, budget - len(first)), left.__contains__)
    return [pick.item for pick in first] + ids, [pick.scores["draw"] for pick in first] + scores


def asked_twice(items: list[int], share: float, seed: int, before: int = 0) -> set[int]:
    """The share of a round about which two people are asked: those with the smallest hashes of (seed, item).

    before: how many picks of the round people have had already, of which the same share was chosen then.

    >>> len(asked_twice(list(range(40)), 0.1, seed=0)), len(asked_twice(list(range(35)), 0.1, seed=0, before=5))
    (4, 4)
    """
    count = round(share * (before + len(items))) - round(share * before)
    return set(sorted(items, key=lambda item: drawn(f"twice/{seed}", item))[:count])


def _readable(settings: ProjectSettings, tasks: Tasks, task: TaskInfo) -> Callable[[int], bool]:
    """Whether an item is there, and an image whole: the same as when it is embedded."""
    gone = erased_rows(tasks, task)
    if task.kind != "images":
        return lambda item: item - task.first not in gone
    names, root = tasks.table(task.index)["name"], Path(task.place)

    def there(item: int) -> bool:
        try:
            check_image(read_inside(root, names[item - task.first]), settings.side)
        except InputError:
            return False
        return True

    return there

"""The first items of a task, which people get at once: those drawn at random need no embeddings.

They are drawn from all items of the task by a hash, whether or not its embeddings are there, so the picks do not depend
on when people begin. Items that cannot be read are passed over. `learning` adds the rest of the round when it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accuacl import strategies
from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.base.randomness import derive, hash_ids, rank as drawn
from accuacl.experiments import Config, Ids, LoopState, choose, choose_uniformly
from accuacl.experiments.data import Task
from accuacl.features import Features
from accuacl.labeling.project.budget import open_label_budget
from accuacl.labeling.project.erasing import erased_rows
from accuacl.labeling.project.images import check_image, read_inside
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.tasks import TaskInfo, Tasks
from accuacl.labeling.project.taught import KnownFromPeople, held_out_count, to_give
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
        count = min(count, open_label_budget(settings, store, counts, task.index, 0).first_round)
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
    known = LoopState(Task(task, (), items, np.empty(0, np.int64)), config.rounds, items)
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


def rest_of_uniform(config: Config, known: LoopState, first: list[Pick], budget: int) -> tuple[list[int], list[float]]:
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


def cover_first_round(
    config: Config,
    known: LoopState,
    budget: int,
    holdout: float,
    features: Callable[[Ids], Features],
    given_out: list[int],
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Picks whose uniform part is named by `held`; what it holds out does not count as covered.

    given_out: the uniform part, if people have it already.
    """
    budget = min(budget, len(known.left))
    drawn = given_out or choose_uniformly(config, known, held_out_count(holdout, budget))["ids"]
    rest = replace(known, asked=np.append(known.asked, np.array(drawn, np.int64)))
    more = min(max(0, budget - len(drawn)), len(rest.left))
    if not more:
        return {"ids": drawn, "scores": {}, "held": sorted(drawn)}
    covering = choose(config, rest, "coverage", more, features, np.empty(0, np.int64), 1, on_progress)
    scores = {name: [None] * len(drawn) + values for name, values in covering["scores"].items()}
    return {"ids": drawn + covering["ids"], "scores": scores, "held": sorted(drawn)}


AT_LEAST = 20  # items of the sample for each that is to be picked


def sample_of(known: KnownFromPeople, strategy: str, sample: int, count: int, seed: int) -> KnownFromPeople:
    """What is known, with a pool of so many items that can still be asked for, if the strategy can work on a sample.

    It has those whose numbers have the smallest hashes, so that the same items are in it from round to round.
    """
    size = max(sample, AT_LEAST * count)
    if not sample or len(known.left) <= size or "sample" not in strategies.options_of(strategy):
        return known
    hashes = hash_ids(derive(seed, "sample of the pool"), known.left.astype(np.uint64))
    kept = np.sort(known.left[np.argsort(hashes, kind="stable")[:size]])
    return replace(known, pool=kept)


def said_of(picked: dict[str, Any], sample: KnownFromPeople, known: KnownFromPeople) -> dict[str, Any]:
    """The picks with what is recorded of the sample: its size, and that of the pool, to which gains are scaled."""
    size, whole = len(sample.left), len(known.left)
    if size == whole:
        return picked
    scores = {
        name: [value if value is None else value * (whole / size) for value in values] if name == "gain" else values
        for name, values in picked["scores"].items()
    }
    return picked | {"scores": scores, "sample": size, "pool": whole}

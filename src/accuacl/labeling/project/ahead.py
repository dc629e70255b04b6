"""The next batch, chosen while people label the present one.

Coverage looks at embeddings and at which items were asked, not at answers. So what it picks for the next round can be
found before the labels are there, for the case that people label all that they have not skipped by then; when the
labels are there, only the head is left to be fitted. After a skip it is chosen again. A choice is kept with all that it
depends on, and used only where that is the same: if the last item was skipped, a task ended or another process has
forgotten data, the batch is chosen then, as without this. Kept in memory, by one process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from accuacl.experiments import Ids, LoopState
from accuacl.experiments.heads import candidates_of_kind, prepare_gram
from accuacl.labeling.project.people_state import PeopleState, held_out, with_answer
from accuacl.labeling.project.settings import ProjectSettings

ONLY_EMBEDDINGS = ("coverage",)  # strategies that look at no answer


class Ahead:
    """The last choice that was made, and what it depended on."""

    def __init__(self) -> None:
        self._key, self._picked = b"", dict[str, Any]()

    def choice(self, state: LoopState, size: int, memory: Ids, choose: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `choose` picks for this state; without choosing, if that has been done for the same one."""
        key = _key(state, size, memory)
        if key != self._key:
            self._picked = choose()
            self._key = key
        return self._picked


def _key(state: LoopState, size: int, memory: Ids) -> bytes:
    """All that a choice by embeddings depends on, for one project's settings."""
    total = hashlib.sha256(repr((state.task.index, state.round, size, len(state.earlier))).encode())
    for ids in (state.left, state.ids, memory):
        total.update(f"{len(ids)} ".encode() + np.ascontiguousarray(ids, np.int64).tobytes())
    return total.digest()


def sees_embeddings_alone(settings: ProjectSettings) -> bool:
    """Whether rounds after the first depend on embeddings and on which items were asked, and embeddings stay."""
    return settings.frozen and settings.head == "linear" and settings.strategy in ONLY_EMBEDDINGS


def if_the_rest_is_labelled(
    settings: ProjectSettings, state: PeopleState, picked: dict[str, Any], skipped: list[int], pool: Ids
) -> PeopleState:
    """The state of the next round if every pick of this one gets a label, but for those that were skipped."""
    held = [] if state.round else picked.get("held")
    if held is None:
        held = held_out(picked["ids"], settings.holdout, settings.seed)
    labels = [[item, 0] for item in picked["ids"] if item not in set(skipped)]
    answer = {"labels": labels, "held": held, "corrected": [], "skipped": skipped}
    return PeopleState(**(vars(with_answer(state, answer)) | {"round": state.round + 1, "pool": pool}))


def prepare_fit(settings: ProjectSettings, rows: Callable[[Ids], Any], items: Ids) -> None:
    """Compute all that a fit of these items needs except their labels."""
    x = rows(np.sort(items)).numpy()
    blocks = settings.blocks or ((0, x.shape[1]),)
    with threadpool_limits(settings.threads):  # the last bits depend on their number
        prepare_gram(x, candidates_of_kind("texts" if settings.blocks else "vectors", blocks)[0])

"""What people have taught a project so far: the state that Algorithm 1 passes on from step to step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.experiments import Ids, LoopState, Step, read_steps
from accuacl.labeling.store import Pick

Labels = dict[int, int]  # item: its class, as last corrected


@dataclass(frozen=True, eq=False)
class PeopleState(LoopState):
    """The state of a project: unlike in an experiment, labels change when people correct them, and some are held
    out.
    """

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
    for rank, item in enumerate(picked["ids"]):
        scores = {name: float(values[rank]) for name, values in picked["scores"].items() if values[rank] is not None}
        guess, confidence = (picked[name][rank] if picked["guess"] else None for name in ("guess", "confidence"))
        picks.append(Pick(item, rank, scores, guess, confidence))
    return picks

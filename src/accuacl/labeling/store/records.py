"""The values that the store takes and gives: people, classes, picks, events, answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Person:
    """Someone who labels. The token of a revoked person is no longer valid."""

    id: int
    name: str
    revoked: bool = False


@dataclass(frozen=True)
class Class:
    """A class: its number, which never changes, and its present name. A merged class counts as `merged_into`."""

    id: int
    name: str
    merged_into: int | None = None


def living(classes: Iterable[Class]) -> list[Class]:
    """The classes that have not been merged into another."""
    return [c for c in classes if c.merged_into is None]


def counts_as(classes: Iterable[Class]) -> dict[int, int]:
    """The class that each class counts as after all merges; itself if it has not been merged.

    >>> counts_as([Class(0, "cat", merged_into=2), Class(1, "dog"), Class(2, "feline", merged_into=1)])
    {0: 1, 1: 1, 2: 1}
    """
    merged = {c.id: c.merged_into for c in classes}

    def final(id: int) -> int:
        while (into := merged[id]) is not None:  # only living classes are merged, so this cannot go in circles
            id = into
        return id

    return {id: final(id) for id in merged}


@dataclass(frozen=True)
class Pick:
    """An item to be labelled: its rank in the round (0 is best), the scores it was chosen by, the model's guess."""

    item: int
    rank: int
    scores: dict[str, float] = field(default_factory=dict)
    guess: int | None = None  # a class; None before there is a model
    confidence: float | None = None  # the probability that the model gives its guess, 0 to 1


@dataclass(frozen=True)
class Status:
    """The state of a round. open: it has not been closed yet, whether it is complete or not."""

    task: int
    round: int
    total: int
    labelled: int
    skipped: int
    leased: int
    open: bool

    @property
    def left(self) -> int:
        """Items neither labelled nor skipped."""
        return self.total - self.labelled - self.skipped


@dataclass(frozen=True)
class LabelEvent:
    """Something that happened; `kind` is label, skip, undo, correct, lease, renew, release, and so on."""

    id: int
    time: float
    kind: str
    person: int | None
    item: int | None
    class_id: int | None
    text: str | None


@dataclass(frozen=True)
class Answer:
    """The present answer for an item: its class (merges applied; None if skipped), who gave it, when, which event."""

    item: int
    class_id: int | None
    person: int | None
    time: float
    event: int

"""What the store speaks of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Person:
    """Someone who labels. A revoked person's token opens nothing any more."""

    id: int
    name: str
    revoked: bool = False


@dataclass(frozen=True)
class Class:
    """A class by its number, which is for ever, and its present name. Merged: it counts as `merged_into`."""

    id: int
    name: str
    merged_into: int | None = None


@dataclass(frozen=True)
class Pick:
    """An item to be labelled: its rank in the round (0 first), why it was chosen, and what the model takes it for."""

    item: int
    rank: int
    scores: dict[str, float] = field(default_factory=dict)
    guess: int | None = None  # a class
    confidence: float | None = None  # the model's in that guess, 0 to 1


@dataclass(frozen=True)
class Status:
    """How far a round is. open: it has not been closed yet, whether it is complete or not."""

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
class Event:
    """Something that happened: label, skip, undo, correct, lease, renew, release, and so on."""

    id: int
    time: float
    kind: str
    person: int | None
    item: int | None
    class_id: int | None
    text: str | None


@dataclass(frozen=True)
class Answer:
    """What holds for an item now: its class (merges applied; None: skipped), who said so, when, and by which event."""

    item: int
    class_id: int | None
    person: int | None
    time: float
    event: int

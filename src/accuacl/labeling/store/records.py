"""The values that the store takes and gives: people, classes, picks, events, answers; and checks of texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from accuacl.base.errors import InputError

LONGEST_NAME = 100  # characters of the name of a person or a class
LONGEST_REQUEST = 100  # characters of a request id


@dataclass(frozen=True)
class Person:
    """A person who labels. A revoked person no longer has access; a lead may also change the project."""

    id: int
    name: str
    revoked: bool = False
    lead: bool = False


@dataclass(frozen=True)
class Class:
    """A class: its number, which never changes, and its present name. A merged class counts as `merged_into`."""

    id: int
    name: str
    merged_into: int | None = None


@dataclass(frozen=True)
class ClassChange:
    """A class was added (`to`: its name), renamed (from a name to another) or merged (`to`: the name of the other)."""

    event: int
    time: float
    person: int | None
    kind: Literal["added", "renamed", "merged"]
    id: int
    name: str | None
    to: str


@dataclass(frozen=True)
class Guideline:
    """The meaning of a class in words, and items that are examples of it."""

    text: str = ""
    examples: tuple[int, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A class that a person has proposed, and that waits for a lead."""

    id: int
    name: str
    person: int
    time: float


@dataclass(frozen=True)
class Work:
    """The work of one person.

    seconds: the median time of an answer. compared, agreed: how often their label was compared with another person's
    own label of the same item, and how often the two were equal. corrected: how many of their labels other people have
    changed.
    """

    labels: int
    skips: int
    seconds: float | None
    compared: int
    agreed: int
    corrected: int
    last: float | None


def living(classes: Iterable[Class]) -> list[Class]:
    """Return the classes that have not been merged into another."""
    return [c for c in classes if c.merged_into is None]


def counts_as(classes: Iterable[Class]) -> dict[int, int]:
    """Return the class that each class counts as after all merges; itself if it has not been merged.

    >>> counts_as([Class(0, "cat", merged_into=2), Class(1, "dog"), Class(2, "feline", merged_into=1)])
    {0: 1, 1: 1, 2: 1}
    """
    return {id: chain[-1] for id, chain in merges(classes).items()}


def merges(classes: Iterable[Class]) -> dict[int, list[int]]:
    """Return the chain of merges of each class: it begins with the class itself and ends with the one it counts as.

    >>> merges([Class(0, "cat", merged_into=2), Class(1, "dog"), Class(2, "feline", merged_into=1)])
    {0: [0, 2, 1], 1: [1], 2: [2, 1]}
    """
    into = {c.id: c.merged_into for c in classes}
    chains = {id: [id] for id in into}
    for chain in chains.values():
        while (after := into[chain[-1]]) is not None:  # only living classes are merged, so this cannot go in circles
            chain.append(after)
    return chains


@dataclass(frozen=True)
class Pick:
    """An item to be labelled: its rank in the round (0 is best), the scores it was chosen by, and the model's guess."""

    item: int
    rank: int
    scores: dict[str, float] = field(default_factory=dict)
    guess: int | None = None  # a class; None before there is a model
    confidence: float | None = None  # the probability that the model gives its guess, 0 to 1


@dataclass(frozen=True)
class Status:
    """The state of a round. open: it has not been closed yet; it may be complete all the same."""

    task: int
    round: int
    total: int
    labelled: int
    skipped: int
    leased: int
    open: bool
    opinions: int = 0  # second opinions that the round waits for

    @property
    def left(self) -> int:
        """The number of items that are neither labelled nor skipped."""
        return self.total - self.labelled - self.skipped


@dataclass(frozen=True)
class LabelEvent:
    """A row of the table `events`; `schema` lists the kinds, such as label, skip, undo and lease."""

    id: int
    time: float
    kind: str
    person: int | None
    item: int | None
    class_id: int | None
    text: str | None


@dataclass(frozen=True)
class Answer:
    """The answer that counts now for an item. class_id: the class after merges; None if skipped. event: its id."""

    item: int
    class_id: int | None
    person: int | None
    time: float
    event: int


@dataclass(frozen=True)
class AnswerEvent:
    """Any answer that a person ever gave, whether it counts now or not.

    seconds: the time since the item was leased to the person; None without a lease. shown: the model's guess, if the
    person saw it before they answered. undone: the answer was taken back. reason: why they skipped the item, if they
    said so.
    """

    kind: Literal["label", "skip", "opinion", "correct", "decision"]
    item: int
    class_id: int | None  # the class after merges; None if the item was skipped
    person: int | None
    time: float
    seconds: float | None
    shown: int | None
    undone: bool
    reason: str | None = None


@dataclass(frozen=True)
class Dispute:
    """An item on which people disagree, with the last answer of each person, the oldest first."""

    pick: Pick
    answers: tuple[AnswerEvent, ...]
    gold: int | None  # the class that is known to be right, if the item is gold
    comments: tuple[str, ...]


@dataclass(frozen=True)
class Rating:
    """The class that a person has given an item without seeing another person's label."""

    item: int
    person: int
    class_id: int


@dataclass(frozen=True)
class Act:
    """An action of a person on the page: label an item with a class, skip it with a reason or "", or undo the last one.

    Undo needs no item.
    """

    kind: Literal["label", "skip", "undo"]
    request: str
    item: int = -1
    class_id: int = -1
    reason: str = ""


@dataclass(frozen=True)
class OwnAnswers:
    """The numbers of items of the open round that a person has labelled and skipped, second opinions included."""

    labelled: int
    skipped: int


@dataclass(frozen=True)
class Turn:
    """The result of an act, and the next item for the person.

    done: the id of the act's event, or the item that was undone; None if nothing was done. ahead: the items that they
    will probably get after `pick`, if nobody else takes them first.
    """

    done: int | None
    pick: Pick | None
    ahead: list[Pick]
    status: Status | None
    free: bool  # whether the person could be given another item now
    classes: list[Class]
    undo: bool  # whether the person has something to undo
    own: OwnAnswers
    asks_twice: bool  # whether people may be asked about items that have a label, which the page must not show


@dataclass(frozen=True)
class BatchDone:
    """The result of labels that were sent together: the items that were labelled, and why each other one was not."""

    saved: list[int]
    refused: dict[int, str]


@dataclass(frozen=True)
class Relabelled:
    """A request by which a person relabelled several items, and what undoing it would do.

    undone: {event: item} of the corrections that would be undone. kept: how many items would keep the new label,
    because they had none before and their round is closed.
    """

    request: str
    class_id: int
    undone: dict[int, int]
    kept: int


@dataclass(frozen=True)
class Reviewed:
    """An item that was offered, with its present answer (merges applied) and the comments about it.

    disputed: people have given it different labels. guess: the class that the model gave it when it was picked. shown:
    the guess that the person who gave the present answer had seen before. reasons: why people skipped it, where they
    gave a reason.
    """

    item: int
    task: int
    round: int
    class_id: int | None
    answered: bool
    person: int | None
    time: float | None
    guess: int | None
    comments: tuple[str, ...]
    disputed: bool
    shown: int | None = None
    unsettled: bool = False  # a second opinion differs from the label, and nobody has settled the dispute yet
    gold: bool = False  # whether the right class is known, so that the item tests people
    flagged: bool = False
    confidence: float | None = None  # the probability that the model gave its guess
    disagreement: float = 0.0  # the share of people whose label differs from the most frequent one
    reasons: tuple[str, ...] = ()

    @property
    def skipped(self) -> bool:
        return self.answered and self.class_id is None


def clean_name(name: str, what: str) -> str:
    """Return the name with single spaces; refuse one that is empty, too long or not printable."""
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= LONGEST_NAME or not cleaned.isprintable():
        raise InputError(f"{what} cannot be called {name[:120]!r}; give 1 to {LONGEST_NAME} printable characters.")
    return cleaned


def check_text(text: str, what: str, longest: int, least: int = 1) -> str:
    """Return the text without spaces around it; refuse one that is too short, too long or not printable."""
    text = text.replace("\r\n", "\n").strip()
    printable = all(letter.isprintable() or letter == "\n" for letter in text)
    if not least <= len(text) <= longest or not printable:
        raise InputError(f"{what} has {least} to {longest} printable characters; choose another one.")
    return text


def check_request(request: str) -> None:
    """Refuse a request id, which clients generate, that is empty or too long."""
    if not 1 <= len(request) <= LONGEST_REQUEST:
        raise InputError(
            f"a request id has 1 to {LONGEST_REQUEST} characters; generate a new one for each request, such as a UUID."
        )


def used_before(request: str) -> InputError:
    """Return the error for a request id that was used for something else."""
    return InputError(f"the request id {request!r} was already used for something else; generate a new one.")

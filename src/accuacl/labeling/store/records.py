"""The values that the store takes and gives: people, classes, picks, events, answers; and checks of texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from accuacl.base.errors import InputError

LONGEST_NAME = 100  # characters
LONGEST_REQUEST = 100


@dataclass(frozen=True)
class Person:
    """Someone who labels. A revoked person has no access any more; a lead may also do what changes the project."""

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
    """What a class means, and items that show it."""

    text: str = ""
    examples: tuple[int, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A class that somebody would like to have."""

    id: int
    name: str
    person: int
    time: float


@dataclass(frozen=True)
class Work:
    """What a person has done. seconds: the median time of an answer. compared, agreed: how often their label was
    compared with somebody else's own label of the same item, and how often it was the same. corrected: how many of
    their labels somebody else has changed.
    """

    labels: int
    skips: int
    seconds: float | None
    compared: int
    agreed: int
    corrected: int
    last: float | None


def living(classes: Iterable[Class]) -> list[Class]:
    """The classes that have not been merged into another."""
    return [c for c in classes if c.merged_into is None]


def counts_as(classes: Iterable[Class]) -> dict[int, int]:
    """The class that each class counts as after all merges; itself if it has not been merged.

    >>> counts_as([Class(0, "cat", merged_into=2), Class(1, "dog"), Class(2, "feline", merged_into=1)])
    {0: 1, 1: 1, 2: 1}
    """
    return {id: chain[-1] for id, chain in merges(classes).items()}


def merges(classes: Iterable[Class]) -> dict[int, list[int]]:
    """Each class with those that it became by one merge after the other: itself first, last what it counts as.

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
    opinions: int = 0  # second opinions that the round waits for

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


@dataclass(frozen=True)
class AnswerEvent:
    """A label, skip, second opinion, correction or decision of a dispute that somebody gave, whether it counts now or
    not.

    seconds: since the item was leased to them; None if it was not. shown: the guess that they had been shown before.
    undone: somebody has taken it back. reason: why they skipped it, if they said so.
    """

    kind: Literal["label", "skip", "opinion", "correct", "decision"]
    item: int
    class_id: int | None  # merges applied; None: skipped
    person: int | None
    time: float
    seconds: float | None
    shown: int | None
    undone: bool
    reason: str | None = None


@dataclass(frozen=True)
class Dispute:
    """An item on which people disagree, with the last answer of each of them, first to last."""

    pick: Pick
    answers: tuple[AnswerEvent, ...]
    gold: int | None  # the class that is known to be right
    comments: tuple[str, ...]


@dataclass(frozen=True)
class Rating:
    """What a person has labelled an item as, by themselves."""

    item: int
    person: int
    class_id: int


@dataclass(frozen=True)
class Act:
    """What a person does with an item: label (with a class), skip (with a reason, or ""), or undo (which knows its
    item).
    """

    kind: Literal["label", "skip", "undo"]
    request: str
    item: int = -1
    class_id: int = -1
    reason: str = ""


@dataclass(frozen=True)
class OwnAnswers:
    """How many items of the open round a person has labelled, and how many skipped, second opinions too."""

    labelled: int
    skipped: int


@dataclass(frozen=True)
class Turn:
    """What came of an act (an event's id, the item that was undone, or None), and what is next for the person.

    ahead: what they will probably get after `pick`, if nobody else takes it first.
    """

    done: int | None
    pick: Pick | None
    ahead: list[Pick]
    status: Status | None
    free: bool  # whether they could be given another item now
    classes: list[Class]
    undo: bool  # whether the person has something to undo
    own: OwnAnswers
    asks_twice: bool  # as `Store.asks_twice`


@dataclass(frozen=True)
class BatchDone:
    """What came of labels that were sent together: the items that are labelled, and why others are not."""

    saved: list[int]
    refused: dict[int, str]


@dataclass(frozen=True)
class Relabelled:
    """Items that a person has given another label together, by the request, and what undoing it would do.

    undone: the events, each with its item, that would be undone. kept: items that would keep the label, as they had
    none before and their round is closed.
    """

    request: str
    class_id: int
    undone: dict[int, int]
    kept: int


@dataclass(frozen=True)
class Reviewed:
    """An item that was offered, with its present answer (merges applied) and what was said about it.

    disputed: people have given it different labels. guess: the model's, when it was picked. shown: the guess that
    whoever answered had been shown before. reasons: why people skipped it, as far as they said so.
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
    unsettled: bool = False  # somebody was asked for a second opinion, which differs, and nobody has settled it yet
    gold: bool = False  # its answer is known
    flagged: bool = False
    confidence: float | None = None  # the model's, of its guess
    disagreement: float = 0.0  # the share of people whose label is not that of most
    reasons: tuple[str, ...] = ()

    @property
    def skipped(self) -> bool:
        return self.answered and self.class_id is None


def clean_name(name: str, what: str) -> str:
    """The name of a person or a class, with single spaces; refused if it is empty, too long or not printable."""
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= LONGEST_NAME or not cleaned.isprintable():
        raise InputError(f"{what} cannot be called {name[:120]!r}; give 1 to {LONGEST_NAME} printable characters.")
    return cleaned


def check_text(text: str, what: str, longest: int, least: int = 1) -> str:
    """A text without spaces around it; refused if it is too short or long, or has what cannot be printed."""
    text = text.replace("\r\n", "\n").strip()
    printable = all(letter.isprintable() or letter == "\n" for letter in text)
    if not least <= len(text) <= longest or not printable:
        raise InputError(f"{what} has {least} to {longest} printable characters; choose another one.")
    return text


def check_request(request: str) -> None:
    """Check the id that a client has generated for a request."""
    if not 1 <= len(request) <= LONGEST_REQUEST:
        raise InputError(
            f"a request id has 1 to {LONGEST_REQUEST} characters; generate a new one for each request, such as a UUID."
        )


def used_before(request: str) -> InputError:
    """The error for a request id that was used for something else."""
    return InputError(f"the request id {request!r} was already used for something else; generate a new one.")

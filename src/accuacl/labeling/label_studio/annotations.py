"""Annotations of Label Studio become labels, skips and corrections of the project, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store import (
    LONGEST_NAME,
    LabelEvent,
    Person,
    Store,
    StoreUnavailable,
    clean_name,
    living,
    near_names,
)

NOBODY = "label-studio"  # the name of people whose e-mail is not known


@dataclass(frozen=True)
class Pulled:
    """How many labels, skips and corrections were taken; what was refused, and changes that came too late (`left`)."""

    labelled: int = 0
    skipped: int = 0
    corrected: int = 0
    refused: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __add__(self, other: Pulled) -> Pulled:
        return Pulled(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


class Intake:
    """Takes annotations. prefix: of all its requests; choices: the class of each, may grow; emails: by user id."""

    def __init__(
        self, store: Store, prefix: str, choices: dict[str, int], emails: Mapping[int, str], new_classes: bool
    ) -> None:
        self.store, self.prefix, self.choices, self.emails = store, prefix, choices, emails
        self.new_classes = new_classes
        self.pulled = Pulled()
        self._answered = {answer.item for answer in store.answers()}
        self._before: dict[str, list[LabelEvent]] = {}  # by annotation: the events that its versions made
        for request, event in store.requests(f"{prefix} ").items():
            self._before.setdefault(request.split()[-2], []).append(event)

    def take(self, task: int, item: int, annotations: Sequence[Mapping[str, Any]]) -> None:
        """Take the annotations of an item: the first label counts, or else the first skip; others are ignored."""
        for annotation in sorted(annotations, key=lambda one: (bool(one.get("was_cancelled")), one["id"])):
            try:
                self.pulled += self._take(task, item, annotation)
            except StoreUnavailable:
                raise
            except InputError as error:
                self.pulled += Pulled(refused=(f"task {task} in Label Studio: {error}",))

    def _take(self, task: int, item: int, annotation: Mapping[str, Any]) -> Pulled:
        # A changed annotation keeps its id: its first version is request 0, its next one 1, and so on.
        before = self._before.get(str(annotation["id"]), [])
        request = f"{self.prefix} {annotation['id']} {len(before)}"
        answered = item in self._answered
        if not before and answered:
            return Pulled()  # someone else has answered it, there or on the page
        if annotation.get("was_cancelled"):
            if not before:
                self.store.skip(self._person(annotation), item, request)
                self._answered.add(item)
                return Pulled(skipped=1)
            if before[-1].kind == "skip":
                return Pulled()
            late = "was labelled before it was skipped; it keeps its label"
            return Pulled(left=(f"task {task} in Label Studio {late}.",))
        id = self._class(annotation)
        if not before:
            self.store.label(self._person(annotation), item, id, request)
            self._answered.add(item)
            return Pulled(labelled=1)
        if before[-1].kind == "skip":
            late = "was skipped before it was labelled; it stays skipped"
            return Pulled(left=(f"task {task} in Label Studio {late}.",))
        if before[-1].class_id == id or not answered:  # unchanged, or undone on the page
            return Pulled()
        self.store.correct(self._person(annotation), item, id, request)
        return Pulled(corrected=1)

    def _class(self, annotation: Mapping[str, Any]) -> int:
        """The class that was chosen."""
        results = [result for result in annotation.get("result") or () if result.get("type") == "choices"]
        chosen = [choice for result in results for choice in (result.get("value") or {}).get("choices") or ()]
        if len(chosen) != 1 or not isinstance(chosen[0], str):
            raise InputError(f"{len(chosen)} choices were made; make one, or skip the task.")
        choice = chosen[0]
        if choice not in self.choices:
            known = {c.name: c.id for c in living(self.store.classes())}
            self.choices[choice] = known[choice] if choice in known else self._new_class(choice, known, annotation)
        return self.choices[choice]

    def _new_class(self, choice: str, known: Iterable[str], annotation: Mapping[str, Any]) -> int:
        """Add a class, unless one is called nearly the same, or new ones are not wanted."""
        alike = near_names(choice, known)
        if alike or not self.new_classes:
            hint = f"did you mean {alike[0]}? Else add it on the page" if alike else "pull with --new-classes to add it"
            raise InputError(f"the choice {choice[:LONGEST_NAME]!r} is not a class; {hint}.")
        return self.store.add_class(choice, self._person(annotation)).id

    def _person(self, annotation: Mapping[str, Any]) -> Person:
        """Who made the annotation, by e-mail; someone new is added, with an invitation that nobody knows."""
        who = annotation.get("completed_by")
        email = who.get("email") if isinstance(who, Mapping) else self.emails.get(who) if who is not None else None
        try:
            name = clean_name(str(email or NOBODY), "a person")
        except InputError:
            name = NOBODY
        return self.store.person_named(name)

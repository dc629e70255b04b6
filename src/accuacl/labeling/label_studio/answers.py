"""What annotations made in Label Studio say of items, taken into the store once each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store import LONGEST_NAME, LabelEvent, Person, Store, clean_name, living

NOBODY = "label-studio"  # whose e-mail is not to be had


@dataclass(frozen=True)
class Pulled:
    """What was taken: labels, skips, corrections. refused: what could not be; left: second thoughts that came late."""

    labelled: int = 0
    skipped: int = 0
    corrected: int = 0
    refused: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __add__(self, other: Pulled) -> Pulled:
        return Pulled(
            self.labelled + other.labelled,
            self.skipped + other.skipped,
            self.corrected + other.corrected,
            self.refused + other.refused,
            self.left + other.left,
        )


class Intake:
    """Takes annotations. prefix: of all requests; choices: the class of each, which grows; emails: by user."""

    def __init__(
        self, store: Store, prefix: str, choices: dict[str, int], emails: Mapping[int, str], new_classes: bool
    ) -> None:
        self.store, self.prefix, self.choices, self.emails = store, prefix, choices, emails
        self.new_classes = new_classes
        self.pulled = Pulled()
        self._answered = {answer.item for answer in store.answers()}
        self._before: dict[str, list[LabelEvent]] = {}  # what came of the versions of each annotation
        for request, event in store.requests(f"{prefix} ").items():
            self._before.setdefault(request.split()[-2], []).append(event)

    def take(self, task: int, item: int, annotations: Sequence[Mapping[str, Any]]) -> None:
        """What was said of an item: the first label counts, then the first skip; others' are left alone."""
        for one in sorted(annotations, key=lambda one: (bool(one.get("was_cancelled")), one["id"])):
            try:
                self.pulled += self._take(task, item, one)
            except ValueError as error:
                self.pulled += Pulled(refused=(f"task {task} in Label Studio: {error}",))

    def _take(self, task: int, item: int, one: Mapping[str, Any]) -> Pulled:
        # An annotation that is changed keeps its id: its first version is request 0, its next one 1, and so on.
        before = self._before.get(str(one["id"]), [])
        request = f"{self.prefix} {one['id']} {len(before)}"
        answered = item in self._answered
        if not before and answered:
            return Pulled()  # by someone else, there or on the page
        if one.get("was_cancelled"):
            if not before:
                self.store.skip(self._person(one), item, request)
                self._answered.add(item)
                return Pulled(skipped=1)
            late = "was labelled and is skipped now; its label stays"
            return Pulled() if before[-1].kind == "skip" else Pulled(left=(f"task {task} in Label Studio {late}.",))
        id = self._class(one)
        if not before:
            self.store.label(self._person(one), item, id, request)
            self._answered.add(item)
            return Pulled(labelled=1)
        if before[-1].kind == "skip":
            late = "was skipped and is labelled now; what was skipped stays so"
            return Pulled(left=(f"task {task} in Label Studio {late}.",))
        if before[-1].class_id == id or not answered:  # the same still, or taken back on the page
            return Pulled()
        self.store.correct(self._person(one), item, id, request)
        return Pulled(corrected=1)

    def _class(self, one: Mapping[str, Any]) -> int:
        """The class of what was chosen."""
        said = [part for part in one.get("result") or () if part.get("type") == "choices"]
        chosen = [choice for part in said for choice in (part.get("value") or {}).get("choices") or ()]
        if len(chosen) != 1 or not isinstance(chosen[0], str):
            raise InputError(f"{len(chosen)} choices were made; make one, or skip it.")
        choice = chosen[0]
        if choice not in self.choices:
            known = {c.name: c.id for c in living(self.store.classes())}
            if choice not in known and not self.new_classes:
                raise InputError(
                    f"the choice {choice[:LONGEST_NAME]!r} is not a class; pull with --new-classes to add it."
                )
            self.choices[choice] = known[choice] if choice in known else self._add(choice, one)
        return self.choices[choice]

    def _add(self, choice: str, one: Mapping[str, Any]) -> int:
        return self.store.add_class(choice, self._person(one)).id

    def _person(self, one: Mapping[str, Any]) -> Person:
        """Whoever made the annotation, by e-mail; someone new is written down, with a token that nobody has."""
        who = one.get("completed_by")
        email = who.get("email") if isinstance(who, Mapping) else self.emails.get(who) if who is not None else None
        try:
            name = clean_name(str(email or NOBODY), "a person")
        except ValueError:
            name = NOBODY
        same = [person for person in self.store.people() if person.name == name]
        for person in same:
            if not person.revoked:
                return person
        if same:
            raise InputError(f"{name!r} may not label here any more; `accuacl project person` lets them in again.")
        self.store.add_person(name)
        return self._person(one)

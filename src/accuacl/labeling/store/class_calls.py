"""Calls of the store about classes: names, merges, guidelines, proposals."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.labeling.store import classes, guidelines, records
from accuacl.labeling.store.database import Database


class ClassCalls:
    """See above; a part of `Store`."""

    _db: Database

    def classes(self) -> list[records.Class]:
        """All classes by number, merged ones too."""
        with self._db.read() as tx:
            return classes.every(tx)

    def add_class(self, name: str, person: records.Person | None = None) -> records.Class:
        """Add a class, with the next number."""
        with self._db.write() as tx:
            return classes.add(tx, name, person)

    def rename_class(self, id: int, name: str, person: records.Person | None = None) -> None:
        """Give a class another name; its labels stay."""
        with self._db.write() as tx:
            classes.rename(tx, id, name, person)

    def merge_class(self, id: int, into: int, person: records.Person | None = None) -> None:
        """From now on all labels of class `id`, old and new, count as labels of `into`."""
        with self._db.write() as tx:
            classes.merge(tx, id, into, person)

    def class_changes(self) -> list[records.ClassChange]:
        """The additions, renamings and merges, the last first."""
        with self._db.read() as tx:
            return classes.changes(tx)

    def undoable_class_changes(self) -> set[int]:
        """Those of them that can be undone now, by their events: the last one, and merges."""
        with self._db.read() as tx:
            return classes.undoable(tx)

    def undo_class_change(self, person: records.Person, event: int) -> records.ClassChange:
        """Undo the latest change of classes, or a merge; what it was."""
        with self._db.write() as tx:
            return classes.undo(tx, person, event)

    def guide(self, person: records.Person, class_id: int, text: str, examples: Sequence[int] = ()) -> None:
        """Say what a class means, and which items show it."""
        with self._db.write() as tx:
            guidelines.guide(tx, person, class_id, text, examples)

    def add_examples(self, person: records.Person, class_id: int, items: Sequence[int]) -> None:
        """Show what a class means by these items too."""
        with self._db.write() as tx:
            guidelines.add_examples(tx, person, class_id, items)

    def guidelines(self) -> dict[int, records.Guideline]:
        """What classes mean, of those for which it has been said."""
        with self._db.read() as tx:
            return guidelines.guidelines(tx)

    def propose(self, person: records.Person, name: str, request: str) -> records.Proposal:
        """Propose a class."""
        with self._db.write() as tx:
            return guidelines.propose(tx, person, name, request)

    def proposals(self) -> list[records.Proposal]:
        """The classes that were proposed and wait for a lead."""
        with self._db.read() as tx:
            return guidelines.proposals(tx)

    def settle(self, person: records.Person, proposal: int, name: str | None) -> int | None:
        """Add a class that was proposed, under that name; name None: do not."""
        with self._db.write() as tx:
            return guidelines.settle(tx, person, proposal, name)

"""Calls of the store about what was answered: opinions, gold items, review, and the present labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from accuacl.labeling.store import answers, flags, opinions, records, review, rounds
from accuacl.labeling.store.database import Database

MANY = 100


class ReviewCalls:
    """See above; a part of `Store`."""

    _db: Database

    # Opinions, and items whose answers are known

    def opinions_wanted(self, person: records.Person) -> int:
        """About how many items of the open round the person can be asked for a second opinion now."""
        with self._db.read() as tx:
            current = rounds.open_now(tx)
            return 0 if current is None else len(opinions.wanted(tx, person, current, MANY))

    def still_asked(self, person: records.Person) -> set[int]:
        """The items about which the person may still be asked, and should know nothing."""
        with self._db.read() as tx:
            return opinions.still_asked(tx, person)

    def ratings(self) -> list[records.Rating]:
        """All labels that people have given by themselves: first ones and second opinions, not corrections."""
        with self._db.read() as tx:
            return opinions.ratings(tx)

    def gold_ratings(self) -> list[records.Rating]:
        """The answers to gold items that people have given without knowing what is right."""
        with self._db.read() as tx:
            return opinions.gold_ratings(tx)

    def gold(self) -> dict[int, int]:
        """The items whose answers are known, with their classes."""
        with self._db.read() as tx:
            return opinions.gold(tx)

    def set_gold(self, known: Mapping[int, int]) -> None:
        """Make items gold, whether they have been picked or not: {item: the known class}."""
        with self._db.write() as tx:
            opinions.set_gold(tx, known)

    def mark_gold(self, person: records.Person, items: Sequence[int], gold: bool = True) -> int:
        """Make labelled items gold, with the labels they have, or ordinary again; how many."""
        with self._db.write() as tx:
            return opinions.mark_gold(tx, person, items, gold)

    # Review

    def everything(self) -> list[records.Reviewed]:
        """All items that were ever offered, with their present answers."""
        with self._db.read() as tx:
            return review.everything(tx)

    def relabel(
        self, person: records.Person, items: Sequence[int], class_id: int, request: str, own: bool = False
    ) -> int:
        """Give items another label, skipped ones too; how many. A request sent again changes nothing.

        own: refuse it unless the present answers are all the person's own.
        """
        with self._db.write() as tx:
            return review.relabel(tx, person, items, class_id, request, own)

    def last_relabel(self, person: records.Person) -> records.Relabelled | None:
        """The person's last relabelling, if it can be undone."""
        with self._db.read() as tx:
            return review.last_relabel(tx, person)

    def undo_relabel(self, person: records.Person, batch: str, request: str) -> int:
        """Undo the person's last relabelling, whose request was `batch`; how many. Sent again, it changes nothing."""
        with self._db.write() as tx:
            return review.undo_relabel(tx, person, batch, request)

    def comment(self, person: records.Person, items: Sequence[int], text: str, request: str) -> None:
        """Write a comment to items."""
        with self._db.write() as tx:
            review.comment(tx, person, items, text, request)

    def flag(self, person: records.Person, item: int, reason: str, request: str) -> None:
        """Ask a lead to look at an item."""
        with self._db.write() as tx:
            flags.flag(tx, person, item, reason, request)

    def unflag(self, person: records.Person, items: Sequence[int]) -> int:
        """Take down the flags of items; how many there were."""
        with self._db.write() as tx:
            return flags.unflag(tx, person, items)

    def answers(self, items: Iterable[int] | None = None) -> list[records.Answer]:
        """The present answer for each item that has one: its class with merges applied, who gave it and when."""
        with self._db.read() as tx:
            return answers.answers(tx, items)

    def labels(self, items: Iterable[int] | None = None) -> dict[int, int]:
        """The present class of each labelled item, merges applied."""
        return {a.item: a.class_id for a in self.answers(items) if a.class_id is not None}

    def history(self, item: int) -> list[records.LabelEvent]:
        """Everything that ever happened to an item."""
        with self._db.read() as tx:
            return answers.history(tx, item)

    def comments(self) -> list[records.LabelEvent]:
        """Every comment and every flag, first to last."""
        with self._db.read() as tx:
            return answers.comments(tx)

    def requests(self, prefix: str) -> dict[str, records.LabelEvent]:
        """The events of the requests that begin with `prefix`, first to last."""
        with self._db.read() as tx:
            return answers.requests(tx, prefix)

    def counts_by_class(self) -> dict[int, int]:
        """How many items have each class."""
        return dict(sorted(Counter(self.labels().values()).items()))

    def counts_by_person(self) -> dict[int, int]:
        """How many of the present labels each person gave."""
        counts = Counter(a.person for a in self.answers() if a.class_id is not None and a.person is not None)
        return dict(sorted(counts.items()))

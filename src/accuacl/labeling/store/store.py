"""The store of a project's labels, put together from the calls of its parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from accuacl.labeling.store.class_calls import ClassCalls
from accuacl.labeling.store.database import Database
from accuacl.labeling.store.label_calls import LabelCalls
from accuacl.labeling.store.people_calls import PeopleCalls
from accuacl.labeling.store.review_calls import ReviewCalls
from accuacl.labeling.store.round_calls import RoundCalls


class Store(PeopleCalls, ClassCalls, RoundCalls, LabelCalls, ReviewCalls):
    """A project's `labels.sqlite`: who labels, what there is to label, and what people answered.

    Every label, skip, undo, correction, lease and release is an event with its time and person. Nothing is ever
    overwritten: the last event that has not been undone counts. Each call is one transaction, which is on the disk when
    the call returns; any number of threads and processes may call at once. Wrong input is an InputError; a full disk or
    a damaged file is one of its kind, StoreUnavailable. Tests replace `clock` and `steady`.

        store = Store(Path("labels.sqlite"))
        token = store.add_person("Ada")
        ada = store.person_of(token)
        pick = store.lease(ada)
        store.label(ada, pick.item, class_id=0, request=str(uuid.uuid4()))
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = Database(Path(path), clock, steady)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

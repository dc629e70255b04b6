"""The label store: what people did, as events that are durable and never changed.

`store` has `Store`, one object with a call for everything. Each call is a function of the module of its subject, in one
transaction: `people`, `classes`, `rounds`, `leases`, `labels`, `opinions`, `review`. `database` has connections and
transactions, `schema` the tables and what follows from what, `records` the values.
"""

from accuacl.labeling.store.classes import alike_pairs, meant, near_names
from accuacl.labeling.store.database import StoreUnavailable
from accuacl.labeling.store.leases import Expected
from accuacl.labeling.store.people import INVITATION, SESSION
from accuacl.labeling.store.records import (
    LONGEST_NAME,
    Act,
    Answer,
    Class,
    ClassChange,
    Dispute,
    Guideline,
    LabelEvent,
    Person,
    Pick,
    Reviewed,
    Status,
    Turn,
    Work,
    clean_name,
    counts_as,
    living,
    merges,
)
from accuacl.labeling.store.rounds import GivenLabel, RoundIncomplete
from accuacl.labeling.store.store import Store

__all__ = [
    "INVITATION",
    "LONGEST_NAME",
    "SESSION",
    "Act",
    "Answer",
    "Class",
    "ClassChange",
    "Dispute",
    "Expected",
    "GivenLabel",
    "Guideline",
    "LabelEvent",
    "Person",
    "Pick",
    "Reviewed",
    "RoundIncomplete",
    "Status",
    "Store",
    "StoreUnavailable",
    "Turn",
    "Work",
    "alike_pairs",
    "clean_name",
    "counts_as",
    "living",
    "meant",
    "merges",
    "near_names",
]

"""The label store: what people did, as events that are durable and never changed.

`Store` is one object with a method for everything; behind it one file each: `people`, `sessions`, `classes`, `rounds`,
`given`, `leases` (`shares`: fair ones), `answers`, `batches`, `opinions` (`pending`: those that are waited for),
`review`, `flags`, `guidelines`, `work`. `database` has connections and transactions, which threads share (`writers`),
`schema` the tables and their migrations, `records` the values, and `near` finds class names that may mean the same.
"""

from accuacl.labeling.store.errors import RoundIncomplete, StoreUnavailable
from accuacl.labeling.store.given import GivenLabel
from accuacl.labeling.store.leases import Expected
from accuacl.labeling.store.near import alike_pairs, meant, near_names
from accuacl.labeling.store.people import LONGEST_NAME, clean_name
from accuacl.labeling.store.records import (
    Act,
    Answer,
    BatchDone,
    Class,
    ClassChange,
    Guideline,
    LabelEvent,
    Person,
    Pick,
    Proposal,
    Rating,
    Reviewed,
    Status,
    Turn,
    Work,
    counts_as,
    living,
    merges,
)
from accuacl.labeling.store.sessions import INVITATION, SESSION
from accuacl.labeling.store.store import Store

__all__ = [
    "INVITATION",
    "LONGEST_NAME",
    "SESSION",
    "Act",
    "Answer",
    "BatchDone",
    "Class",
    "ClassChange",
    "Expected",
    "GivenLabel",
    "Guideline",
    "LabelEvent",
    "Person",
    "Pick",
    "Proposal",
    "Rating",
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

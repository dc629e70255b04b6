"""The label store: what people did, as events that are durable and never changed.

`Store` is one object with a method for everything; behind it one file each: `people`, `classes`, `rounds`, `leases`,
`answers`. `database` has connections and transactions, `schema` the tables and their migrations, `records` the values.
"""

from accuacl.labeling.store.errors import RoundIncomplete, StoreUnavailable
from accuacl.labeling.store.people import LONGEST_NAME, clean_name
from accuacl.labeling.store.records import Answer, Class, LabelEvent, Person, Pick, Status, counts_as, living
from accuacl.labeling.store.store import Store

__all__ = [
    "LONGEST_NAME",
    "Answer",
    "Class",
    "LabelEvent",
    "Person",
    "Pick",
    "RoundIncomplete",
    "Status",
    "Store",
    "StoreUnavailable",
    "clean_name",
    "counts_as",
    "living",
]

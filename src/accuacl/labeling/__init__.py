"""People as the oracle: a store of labels, projects that learn from them, a page to label on."""

from accuacl.labeling.store.records import Answer, Class, Event, Person, Pick, Status
from accuacl.labeling.store.store import Store

__all__ = ["Answer", "Class", "Event", "Person", "Pick", "Status", "Store"]

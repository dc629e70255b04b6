"""People as the oracle.

- `store`: what people did, in `labels.sqlite`
- `project`: data, settings and the model that learns from the labels
- `web`: the page on which people label
- `label_studio`: the same through a Label Studio server
- `client`: for programs that label over HTTP
"""

from accuacl.labeling.store import Answer, Class, LabelEvent, Person, Pick, Status, Store

__all__ = ["Answer", "Class", "LabelEvent", "Person", "Pick", "Status", "Store"]

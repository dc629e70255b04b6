"""Label Studio as the page: `sync` pushes picks and pulls annotations, `tasks` is what it shows, `answers` what it
says, `link` the project there. Needs the extra `labelstudio`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.labeling.label_studio.link import TOKEN as TOKEN
    from accuacl.labeling.label_studio.sync import Pulled as Pulled, pull as pull, push as push

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "link": ("TOKEN",),
        "sync": ("pull", "Pulled", "push"),
    },
)

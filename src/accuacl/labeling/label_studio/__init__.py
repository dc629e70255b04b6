"""Label Studio as the page: `sync` pushes picks as tasks and pulls, `annotations` takes what people said there, `link`
remembers which project it is. Needs the extra `labelstudio`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.labeling.label_studio.annotations import *
    from accuacl.labeling.label_studio.link import *
    from accuacl.labeling.label_studio.sync import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    annotations="Pulled",
    link="TOKEN",
    sync="pull push",
)

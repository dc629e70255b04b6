"""From a trained model and raw data to a pool on disk.

from accuacl.experiments.embed import ReadOptions, embed, open_for_run
inputs, checkpoint = open_for_run(Path("runs/a"), "photos/", ReadOptions())
embed(inputs, checkpoint, Path("pool"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.embed.checkpoint import *
    from accuacl.experiments.embed.inputs import *
    from accuacl.experiments.embed.reading import *
    from accuacl.experiments.embed.shards import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    checkpoint="Checkpoint open_for_module open_for_run",
    inputs="Inputs open_inputs",
    reading="LABELS ReadOptions check_places",
    shards="embed",
)

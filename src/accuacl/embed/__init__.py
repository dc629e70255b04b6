"""From a trained model and raw data to a pool on disk.

from accuacl.embed import ReadOptions, embed, open_for_run
inputs, checkpoint = open_for_run(Path("runs/a"), "photos/", ReadOptions())
embed(inputs, checkpoint, Path("pool"))
"""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.embed.checkpoint import Checkpoint
    from accuacl.embed.inputs import Inputs, open_inputs
    from accuacl.embed.opening import open_for_module, open_for_run
    from accuacl.embed.places import LABELS, check_places
    from accuacl.embed.reading import ReadOptions
    from accuacl.embed.shards import embed

__all__ = [
    "LABELS",
    "Checkpoint",
    "Inputs",
    "ReadOptions",
    "check_places",
    "embed",
    "open_for_module",
    "open_for_run",
    "open_inputs",
]

__getattr__ = front_door(__name__)

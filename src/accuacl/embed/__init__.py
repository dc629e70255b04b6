"""From a trained model and raw data to a pool on disk.

from accuacl.embed import ReadOptions, embed, open_for_run
inputs, checkpoint = open_for_run(Path("runs/a"), "photos/", ReadOptions())
embed(inputs, checkpoint, Path("pool"))
"""

from accuacl.embed.checkpoint import Checkpoint
from accuacl.embed.inputs import Inputs, open_inputs
from accuacl.embed.opening import open_for_module, open_for_run
from accuacl.embed.reading import ReadOptions
from accuacl.embed.shards import embed

__all__ = ["Checkpoint", "Inputs", "ReadOptions", "embed", "open_for_module", "open_for_run", "open_inputs"]

"""From a trained model and raw data to a pool on disk."""

from accuacl.embed.checkpoint import Checkpoint, of_module, of_run
from accuacl.embed.inputs import Inputs, open_inputs
from accuacl.embed.shards import embed

__all__ = ["Checkpoint", "Inputs", "embed", "of_module", "of_run", "open_inputs"]

"""From a trained model and raw data to a pool on disk.

from accuacl.experiments.embed import ReadOptions, embed, open_for_run
inputs, checkpoint = open_for_run(Path("runs/a"), "photos/", ReadOptions())
embed(inputs, checkpoint, Path("pool"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.embed.checkpoint import (
        Checkpoint as Checkpoint,
        open_for_module as open_for_module,
        open_for_run as open_for_run,
    )
    from accuacl.experiments.embed.inputs import Inputs as Inputs, open_inputs as open_inputs
    from accuacl.experiments.embed.pretrained import (
        MEAN as MEAN,
        STD as STD,
        WHEELS as WHEELS,
        is_installed as is_installed,
        load_pretrained as load_pretrained,
    )
    from accuacl.experiments.embed.reading import (
        LABELS as LABELS,
        ReadOptions as ReadOptions,
        check_places as check_places,
    )
    from accuacl.experiments.embed.runtime import (
        BATCH as BATCH,
        TORCH as TORCH,
        FrozenNetwork as FrozenNetwork,
        Runtime as Runtime,
        choose_runtime as choose_runtime,
        installed as installed,
        open_runtime as open_runtime,
        pretrained_network as pretrained_network,
    )
    from accuacl.experiments.embed.shards import embed as embed

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "checkpoint": ("Checkpoint", "open_for_module", "open_for_run"),
        "inputs": ("Inputs", "open_inputs"),
        "pretrained": ("MEAN", "STD", "WHEELS", "is_installed", "load_pretrained"),
        "reading": ("LABELS", "check_places", "ReadOptions"),
        "runtime": (
            "BATCH",
            "FrozenNetwork",
            "Runtime",
            "TORCH",
            "choose_runtime",
            "installed",
            "open_runtime",
            "pretrained_network",
        ),
        "shards": ("embed",),
    },
)

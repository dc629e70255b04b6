"""Frozen networks: pretrained ones, the runtimes that run them, and data sets embedded by them.

The names of pretrained networks can be read without loading torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.networks.pretrained import (
        MEAN as MEAN,
        STD as STD,
        WHEELS as WHEELS,
        is_installed as is_installed,
        load_pretrained as load_pretrained,
    )
    from accuacl.experiments.networks.runtime import (
        AUTO as AUTO,
        BATCH as BATCH,
        TORCH as TORCH,
        FrozenNetwork as FrozenNetwork,
        Runtime as Runtime,
        choose_runtime as choose_runtime,
        fast_copy as fast_copy,
        installed as installed,
        open_runtime as open_runtime,
        pretrained_network as pretrained_network,
    )
    from accuacl.experiments.networks.seen import seen_through as seen_through

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "pretrained": ("MEAN", "STD", "WHEELS", "is_installed", "load_pretrained"),
        "runtime": (
            "AUTO",
            "BATCH",
            "FrozenNetwork",
            "Runtime",
            "TORCH",
            "choose_runtime",
            "fast_copy",
            "installed",
            "open_runtime",
            "pretrained_network",
        ),
        "seen": ("seen_through",),
    },
)

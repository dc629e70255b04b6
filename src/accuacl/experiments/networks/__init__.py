"""Frozen networks: pretrained ones, the runtimes that run them, and data sets embedded by them.

The names of pretrained networks can be read without loading torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.networks.pretrained import *
    from accuacl.experiments.networks.runtime import *
    from accuacl.experiments.networks.seen import seen_through as seen_through

__getattr__, __dir__ = lazy_attributes(
    __name__,
    pretrained="MEAN STD WHEELS is_installed load_pretrained",
    runtime=(
        "AUTO BATCH TORCH FrozenNetwork Runtime choose_runtime fast_copy installed open_runtime pretrained_network "
        "run_on_all_cores"
    ),
    seen="seen_through",
)

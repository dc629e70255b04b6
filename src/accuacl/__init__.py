"""accuacl: what to label next, when a model must learn new classes without forgetting the old."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than all of this file
if TYPE_CHECKING:
    from typing import Any

    from accuacl.features import Features
    from accuacl.strategies import NAMES, Selection, get, select

# Before torch starts its threads: idle ones must sleep, spinning ones slow shared cores tenfold.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
__all__ = ["NAMES", "Features", "Selection", "__version__", "get", "select"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for, so that the command line's help need not wait for it."""
    import importlib

    if name in ("features", "strategies"):
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{'features' if name == 'Features' else 'strategies'}"), name)

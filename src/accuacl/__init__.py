"""accuacl: what to label next, when a model must learn new classes without forgetting the old."""

import os

# Before torch starts its threads: idle ones must sleep, spinning ones slow shared cores tenfold.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from accuacl.features import Features
from accuacl.strategies import NAMES, Selection, get, select

__version__ = "0.1.0"
__all__ = ["NAMES", "Features", "Selection", "__version__", "get", "select"]

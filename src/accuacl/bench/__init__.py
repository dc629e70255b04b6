"""How fast a strategy is on this machine, compared with its dense definition and with a lower limit, the floor.

Every case runs in a process of its own, so that peak memory is measured for it alone. The floor is the least work of
the plain algorithm: its matrix products on data already in memory, and one read of its inputs. BADGE skips most of
these products and may be faster than the floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.bench.cases import (
        Case as Case,
        Measurement as Measurement,
        Threads as Threads,
        grid as grid,
        standard as standard,
    )
    from accuacl.bench.measuring import machine as machine, measure as measure, run as run
    from accuacl.bench.threads import compare as compare

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "cases": ("Case", "grid", "Measurement", "standard", "Threads"),
        "measuring": ("machine", "measure", "run"),
        "threads": ("compare",),
    },
)

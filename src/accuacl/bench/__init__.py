"""How fast a strategy is on this machine, compared with its dense definition and with a lower limit, the floor.

Every case runs in a process of its own, so that peak memory is measured for it alone. The floor is the least work of
the plain algorithm: its matrix products on data already in memory, and one read of its inputs. BADGE skips most of
these products and may be faster than the floor.
"""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.bench.cases import Case, Measurement, Threads, grid, standard
    from accuacl.bench.measuring import machine, measure, run
    from accuacl.bench.threads import compare

__all__ = ["Case", "Measurement", "Threads", "compare", "grid", "machine", "measure", "run", "standard"]

__getattr__ = front_door(__name__)

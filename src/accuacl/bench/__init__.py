"""How fast a strategy is here, against its dense definition and against the floor, in one run.

Every case runs in a process of its own, so that its peak memory is its own. The floor is the bare work of the plain
form: its matrix products on data already in place, and one read of its inputs. BADGE skips most of its own and may
come out below 1.
"""

from accuacl.bench.cases import Case, Measurement, Threads, grid, standard
from accuacl.bench.measuring import machine, measure, run
from accuacl.bench.threads import compare

__all__ = ["Case", "Measurement", "Threads", "compare", "grid", "machine", "measure", "run", "standard"]

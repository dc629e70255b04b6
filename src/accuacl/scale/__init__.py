"""Work that is too much for one process: pools on disk, sweeps, and the engines that share it out.

from accuacl import scale

picked = scale.select("pool/*.parquet", budget=1000, memory="memory.parquet", past=1_000_000)
picked.ids, picked.scores
"""

from accuacl.scale.pool import Columns
from accuacl.scale.select import Picked, select

__all__ = ["Columns", "Picked", "select"]

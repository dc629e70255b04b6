"""The strategies by their definitions: dense, literal, slow.

The tests compare the fast code with these in extended precision (`numpy.longdouble`), and `accuacl bench` says how much
faster it is than these in the usual precision. Nothing else uses them.
"""

from accuacl.reference.greedy_sets import badge, bait, coverage, fisher_ratio, kcenter
from accuacl.reference.row_scores import accuacl, fisher_embeddings, jensen_shannon, uncertainty

__all__ = [
    "accuacl",
    "badge",
    "bait",
    "coverage",
    "fisher_embeddings",
    "fisher_ratio",
    "jensen_shannon",
    "kcenter",
    "uncertainty",
]

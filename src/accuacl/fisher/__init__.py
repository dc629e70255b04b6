"""The Fisher information embedding, factored: mergeable sums, the target, and scores with their error bounds.

`from accuacl.fisher import rough` imports torch; nothing else here does.
"""

from accuacl.fisher.scores import Target, distribution, magnitude
from accuacl.fisher.sums import SUM_ROWS, FisherSum, exact_entries, mix, past_weight, settle

__all__ = [
    "SUM_ROWS",
    "FisherSum",
    "Target",
    "distribution",
    "exact_entries",
    "magnitude",
    "mix",
    "past_weight",
    "rough",
    "settle",
]

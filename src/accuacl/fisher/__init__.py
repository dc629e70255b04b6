"""The Fisher information embedding, factored: mergeable sums, the target, and scores with their error bounds."""

from accuacl.fisher.scores import (
    Target,
    distribution,
    magnitude,
    may_be_below,
    rough_distribution,
    rough_magnitude,
)
from accuacl.fisher.sums import SUM_ROWS, FisherSum, exact_entries, mix, past_weight, settle

__all__ = [
    "SUM_ROWS",
    "FisherSum",
    "Target",
    "distribution",
    "exact_entries",
    "magnitude",
    "may_be_below",
    "mix",
    "past_weight",
    "rough_distribution",
    "rough_magnitude",
    "settle",
]

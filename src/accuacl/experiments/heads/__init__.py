"""Heads on frozen features that are exact and learned in one step: ridge regression, linear and with kernels.

    head = fit(x, labels)           # NumPy arrays; kernels and ridge are chosen by leave-one-out
    head.probabilities(rows)        # calibrated by leave-one-out

`fit_with_pool` also learns from rows without labels, `KernelRidgeHead` follows scikit-learn's conventions. `fit_ridge`
is the linear head of torch models, which can also be fitted to sums of examples that are gone (`Sums`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.heads.estimator import *
    from accuacl.experiments.heads.kernel import *
    from accuacl.experiments.heads.kernels import *
    from accuacl.experiments.heads.pool import *
    from accuacl.experiments.heads.ridge import *
    from accuacl.experiments.heads.sums import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    estimator="KernelRidgeHead",
    kernel="KernelHead fit prepare_gram",
    kernels="KERNELS NEIGHBOURS Term candidates_of_kind pool_learning_of_kind sparse_rows to_sparse unit_rows",
    pool="fit_with_pool looks_at_pool sample_ids",
    ridge="fit_like fit_ridge",
    sums="Sums examples_of from_tensors merged sums_of to_tensors together without",
)

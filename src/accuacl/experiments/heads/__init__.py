"""Heads on frozen features that are exact and learned in one step: ridge regression, linear and with kernels.

    head = fit(x, labels)           # NumPy arrays; kernels and ridge are chosen by leave-one-out
    head.probabilities(rows)        # calibrated by leave-one-out

`fit_with_pool` also learns from rows without labels, `KernelRidgeHead` follows scikit-learn's conventions. `fit_ridge`
is the linear head of torch models, which can do with sums of examples that are gone (`Sums`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.heads.defaults import (
        candidates_of_kind as candidates_of_kind,
        pool_learning_of_kind as pool_learning_of_kind,
    )
    from accuacl.experiments.heads.estimator import KernelRidgeHead as KernelRidgeHead
    from accuacl.experiments.heads.kernel import (
        KernelHead as KernelHead,
        fit as fit,
        prepare_gram as prepare_gram,
    )
    from accuacl.experiments.heads.kernels import (
        KERNELS as KERNELS,
        NEIGHBOURS as NEIGHBOURS,
        Term as Term,
        sparse_rows as sparse_rows,
        to_sparse as to_sparse,
        unit_rows as unit_rows,
    )
    from accuacl.experiments.heads.pool import (
        OFF as OFF,
        SELF as SELF,
        UP_TO as UP_TO,
        fit_with_pool as fit_with_pool,
        looks_at_pool as looks_at_pool,
        sample_ids as sample_ids,
    )
    from accuacl.experiments.heads.ridge import fit_like as fit_like, fit_ridge as fit_ridge
    from accuacl.experiments.heads.sums import (
        Sums as Sums,
        examples_of as examples_of,
        from_tensors as from_tensors,
        merged as merged,
        sums_of as sums_of,
        to_tensors as to_tensors,
        together as together,
        without as without,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "defaults": ("candidates_of_kind", "pool_learning_of_kind"),
        "estimator": ("KernelRidgeHead",),
        "kernel": ("KernelHead", "fit", "prepare_gram"),
        "kernels": ("KERNELS", "NEIGHBOURS", "Term", "sparse_rows", "to_sparse", "unit_rows"),
        "pool": ("OFF", "SELF", "UP_TO", "fit_with_pool", "looks_at_pool", "sample_ids"),
        "ridge": ("fit_like", "fit_ridge"),
        "sums": ("Sums", "examples_of", "from_tensors", "merged", "sums_of", "to_tensors", "together", "without"),
    },
)

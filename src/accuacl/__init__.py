"""accuacl: what to label next, when a model must learn new classes without forgetting the old.

    from accuacl import Features, select
    picked = select("coverage", pool=Features(embeddings, probabilities), budget=100)
    picked.indices

`help(accuacl.select)` says what else it takes; `accuacl.strategy_names()` lists the strategies.
"""

from __future__ import annotations

import os

from accuacl.base.errors import InputError
from accuacl.base.lazy import lazy_attributes

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than all of this file
if TYPE_CHECKING:
    from accuacl import (
        engines as engines,
        experiments as experiments,
        labeling as labeling,
        pools as pools,
        skactiveml as skactiveml,
        strategies as strategies,
        torch as torch,
    )
    from accuacl.experiments import heads as heads
    from accuacl.features import Features as Features
    from accuacl.strategies import (
        Query as Query,
        Selection as Selection,
        get_strategy as get_strategy,
        register as register,
        select as select,
        strategy_names as strategy_names,
    )

# Before torch starts its threads: idle ones must sleep, spinning ones slow shared cores tenfold.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.2.0"
__all__ = [
    "Features",
    "InputError",
    "Query",
    "Selection",
    "__version__",
    "get_strategy",
    "register",
    "select",
    "strategy_names",
]
__getattr__, _lazy_names = lazy_attributes(
    __name__,
    modules="engines experiments labeling pools skactiveml strategies torch",
    experiments="heads",
    features="Features",
    strategies="Query Selection get_strategy register select strategy_names",
)


def __dir__() -> list[str]:
    return sorted({*_lazy_names(), *__all__})

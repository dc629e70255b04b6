"""Contract checks: what every strategy, learner and memory policy must do, ours and those of users' plugins.

`accuacl check FILE.py` runs them on what a file registers; the tests run them on all that is built in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.checks.contracts import *
    from accuacl.experiments.checks.learner_checks import check_learner as check_learner
    from accuacl.experiments.checks.policy_checks import check_memory_policy as check_memory_policy
    from accuacl.experiments.checks.strategy_checks import check_strategy as check_strategy

__getattr__, __dir__ = lazy_attributes(
    __name__,
    contracts="CheckResult",
    learner_checks="check_learner",
    policy_checks="check_memory_policy",
    strategy_checks="check_strategy",
)

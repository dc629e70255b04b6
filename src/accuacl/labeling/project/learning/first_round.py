"""The first round of a task: a uniform draw to hold out, which estimates stand on, and the rest chosen to cover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from accuacl.base.progress import OnProgress
from accuacl.experiment import Config, Ids, Known, choose, choose_uniformly
from accuacl.features import Features
from accuacl.labeling.project.learning.taught import held_out_count


def cover_first_round(
    config: Config,
    known: Known,
    budget: int,
    holdout: float,
    features: Callable[[Ids], Features],
    given_out: list[int],
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Picks whose uniform part is named by `held`; what it holds out does not count as covered.

    given_out: the uniform part, if people have it already.
    """
    budget = min(budget, len(known.left))
    drawn = given_out or choose_uniformly(config, known, held_out_count(holdout, budget))["ids"]
    rest = replace(known, asked=np.append(known.asked, np.array(drawn, np.int64)))
    more = min(max(0, budget - len(drawn)), len(rest.left))
    if not more:
        return {"ids": drawn, "scores": {}, "held": sorted(drawn)}
    covering = choose(config, rest, "coverage", more, features, np.empty(0, np.int64), 1, on_progress)
    scores = {name: [None] * len(drawn) + values for name, values in covering["scores"].items()}
    return {"ids": drawn + covering["ids"], "scores": scores, "held": sorted(drawn)}

"""The query step, with labels from a data set or from people: what to ask for next."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np

from accuacl import strategies
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.randomness import numpy_generator
from accuacl.experiment.config import Config
from accuacl.experiment.known import QUERY, Ids, Known
from accuacl.experiment.relevant import options_for
from accuacl.features import Features


def choose_uniformly(config: Config, known: Known, budget: int) -> dict[str, Any]:
    """Any of what is left, as the first round of every task has it."""
    nothing = np.ones((len(known.left), 1), np.float32)  # it looks at nothing
    picked = strategies.select("uniform", pool=Features(nothing, nothing), budget=budget, seed=_seed(config, known))
    return _as_result(known, picked)


def first_strategy(config: Config, has_features: bool) -> str:
    """What chooses the first round of a task. has_features: whether a model or an embedding can look at the pool."""
    return config.first_round if has_features else "uniform"


def choose(
    config: Config,
    known: Known,
    strategy: str,
    budget: int,
    features: Callable[[Ids], Features],
    memory: Ids,
    total_classes: int,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """What a strategy picks. features: of examples by id; memory: ids; total_classes: as many as there will be.

    on_progress: told how much of a choice is done that takes longer than a second.
    """
    replayed = known.earlier if strategy == "accuacl-full" else memory
    given: dict[str, Any] = {"variant": config.variant, "keep": config.keep or None, "oversample": config.oversample}
    given["lam"] = config.lam if known.task.index + 1 >= config.lam_from else None
    given |= {"share": config.share, "uncertainty": False if config.uncertainty == "ignored" else None}
    options = {name: given[name] for name in options_for(strategy) if given[name] is not None}
    if "total_classes" in strategies.options_of(strategy):
        options["total_classes"] = total_classes
    picked = strategies.select(
        strategy,
        pool=features(known.left),
        labelled=features(known.ids),
        memory=features(replayed),
        budget=budget,
        past=len(known.earlier),
        seed=_seed(config, known) % (2**32 if strategy not in strategies.NAMES else 2**62),  # all that NumPy takes
        progress=_every_second(on_progress) if on_progress else None,
        **options,
    )
    return _as_result(known, picked)


def _every_second(on_progress: OnProgress) -> OnProgress:
    last = monotonic()

    def told(progress: Progress) -> None:
        nonlocal last
        if monotonic() - last >= 1:
            last = monotonic()
            on_progress(progress)

    return told


def _seed(config: Config, known: Known) -> int:
    return int(numpy_generator(config.seed, known.task.index, known.round, QUERY).integers(2**62))


def _as_result(known: Known, picked: strategies.Selection) -> dict[str, Any]:
    scores = {name: values.tolist() for name, values in picked.scores.items()}
    return {"ids": known.left[picked.indices].tolist(), "scores": scores}

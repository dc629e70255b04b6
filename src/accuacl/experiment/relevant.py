"""Which settings a run looks at: what its strategy and its learner do not use changes nothing."""

from __future__ import annotations

from typing import Any

from accuacl.data import ARRIVALS
from accuacl.experiment.config import Config
from accuacl.experiment.stream_settings import is_tidy
from accuacl.strategies import REGISTRY as STRATEGIES
from accuacl.strategies import defaults_of, options_of

OPTIONS = ("variant", "keep", "lam", "oversample", "share", "uncertainty")  # settings that are options of strategies


def options_for(strategy: str) -> set[str]:
    """The settings that are handed to a strategy: those that its signature has.

    >>> sorted(options_for("bait")), sorted(options_for("accuacl-magnitude"))
    (['oversample'], ['keep', 'lam', 'variant'])
    """
    options = set() if strategy == "full" else set(OPTIONS).intersection(options_of(strategy))
    return options - {"lam"} if strategy == "bait" else options  # whose lam is a regularisation


def canonical(config: dict[str, Any]) -> dict[str, Any]:
    """The config with what its strategy and learner do not look at put back to its default.

    >>> canonical(Config(strategy="uniform", lam=0.5).model_dump())["lam"] is None
    True
    """
    strategy = str(config["strategy"])
    known = strategy == "full" or strategy in STRATEGIES  # of a plugin that is not loaded nothing is known
    unused = set(OPTIONS) - options_for(strategy) if known else set()
    if known and strategy != "full" and config.get("share") == defaults_of(strategy).get("share"):
        unused.add("share")  # as if it had not been set
    if config.get("lam") is None or "lam" in unused:
        unused.add("lam_from")
    if strategy == "full":
        unused.add("first_round")
    if config["learner"] != "er":
        unused.add("replay")
    if config["learner"] != "der++":
        unused |= {"alpha", "beta"}
    if config["learner"] == "ridge":
        unused |= {"learner_variant", "sampling"}
    if config["order"] not in ("tasks", "classes"):
        unused.add("order_seed")
    if not config["label_noise"]:
        unused.add("noise")
    if is_tidy(config | {"arrival": "classes"}) and config["arrival"] in ARRIVALS:
        unused.add("stream_seed")
    return config | {name: Config.model_fields[name].default for name in unused}

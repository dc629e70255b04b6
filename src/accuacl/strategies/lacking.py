"""What is said when a query has no memory, and asks for something that needs one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

WITHOUT_MEMORY = {"badge+memory": "badge", "kcenter+memory": "kcenter", "coverage+memory": "coverage"}  # what each is


def warn_without_memory(strategy: str, memory: object, past: int | None, options: Mapping[str, Any]) -> None:
    """Warn if the strategy, `past` or `lam` has no effect because no memory was given; an empty memory is one.

    The first task of a stream has no past: there give an empty memory, or nothing of all this.
    """
    if memory is not None:
        return
    if strategy in WITHOUT_MEMORY:
        warnings.warn(
            f"{strategy} keeps away from the memory, and none was given: it picks as {WITHOUT_MEMORY[strategy]} does.",
            stacklevel=3,
        )
    weight_of_past = options.get("lam") is not None and strategy != "bait"  # whose lam is a regularisation
    for name, given in (("past", past), ("lam", weight_of_past)):
        if given:
            warnings.warn(
                f"{name} says how much the memory weighs, and no memory was given: it changes nothing; give the memory "
                "too, or leave it out.",
                stacklevel=3,
            )

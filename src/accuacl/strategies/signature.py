"""What a strategy of users must take: a query, and nothing else that has no default."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.userfile import required_arguments, with_place


def check_signature(name: str, strategy: Callable[..., Any]) -> None:
    """Refuse a strategy that cannot be called with a query alone."""
    if not callable(strategy):
        raise InputError(f"the strategy {name} is a {type(strategy).__name__}; register a function of a Query.")
    who = with_place(f"the strategy {name}", strategy)
    try:
        parameters = list(inspect.signature(strategy).parameters.values())
    except ValueError:  # of some that are written in C
        raise InputError(f"the strategy {name} is {strategy!r}; register a function of a Query.") from None
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InputError(f"{who} takes no query; give it one argument, the Query.")
    for wanted in (each for each in required_arguments(strategy) if each != parameters[0].name):
        raise InputError(f"{who} wants the argument {wanted}, which nobody gives; give it a default.")

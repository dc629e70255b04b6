"""Streams of users by name: functions that say which task each example arrives with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from accuacl.base.errors import InputError
from accuacl.base.names import check_new_name
from accuacl.base.userfile import REGISTERED, takes, with_place

if TYPE_CHECKING:
    from accuacl.data.dataset import Dataset

ARRIVALS = ("classes", "given")  # the ways to arrive that are not a user's
REGISTRY: dict[str, Callable[[Dataset, int], Any]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def register(name: str) -> Callable[[F], F]:
    """Make a stream of your own known by its name, for `--arrival`.

    It is called with the data set and a seed, and returns the task of each training row: 0 for the first task, -1 for
    rows that never arrive. It may return the same for the test rows beside it; without that, a task is tested on the
    test rows of its classes.

    >>> import numpy as np
    >>> @register("every-other")
    ... def every_other(dataset, seed):
    ...     return np.arange(len(dataset.train)) % 2
    >>> REGISTRY.pop("every-other") is every_other
    True
    """
    check_new_name("stream", name, [*REGISTRY, *ARRIVALS])

    def keep(stream: F) -> F:
        if not takes(stream, 2):
            who = with_place(f"the stream {name}", stream)
            raise InputError(f"{who} must take two arguments, the data set and a seed.")
        REGISTRY[name] = stream
        REGISTERED.append(("stream", name))
        return stream

    return keep

"""Imports that wait until a name is first used: a command that only checks its arguments need not load torch."""

from __future__ import annotations

import importlib
import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from accuacl.base.errors import missing_extra

T = TypeVar("T")


def lazy_attributes(
    package: str, *, modules: str = "", **names: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`. names: for each module of the package, the names that it offers.

    modules: those offered as a whole. For type checkers, the package imports everything of these modules below
    `if TYPE_CHECKING:`.
    """
    places = {name: module for module, offered in names.items() for name in offered.split()}
    places |= dict.fromkeys(modules.split(), "")

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = places[name]
        try:
            value: Any = importlib.import_module(f"{package}.{module or name}")
        except ModuleNotFoundError as error:
            if refusal := missing_extra(error):
                raise refusal from None
            raise
        if module:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)  # found at once the next time
        return value

    return get, lambda: sorted(places)


class Registry(UserDict[str, T]):
    """Objects by name. A value written as "module:name" is imported from the package when it is asked for.

    >>> registry = Registry("accuacl.base", {"progress": "progress:Progress"})
    >>> registry["progress"].__name__, list(registry)
    ('Progress', ['progress'])
    """

    def __init__(self, package: str, places: Mapping[str, T | str]) -> None:
        super().__init__()
        self.package = package
        self.data: dict[str, Any] = dict(places)

    def __getitem__(self, name: str) -> T:
        value = self.data[name]
        if isinstance(value, str):
            module, _, attribute = value.partition(":")
            value = self.data[name] = getattr(importlib.import_module(f"{self.package}.{module}"), attribute)
        item: T = value
        return item

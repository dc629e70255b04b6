"""Front doors of rooms, and registries: what others may use of a room is imported when it is first asked for.

A command that only checks its arguments then does not wait two seconds for torch.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


class Registry(UserDict[str, T]):
    """What a room has by name. A value may be written as "file:name" of the room: it is imported when it is asked for.

    >>> rooms = Registry("accuacl.base", {"progress": "progress:Progress"})
    >>> rooms["progress"].__name__, list(rooms)
    ('Progress', ['progress'])
    """

    def __init__(self, package: str, places: Mapping[str, T | str]) -> None:
        super().__init__()
        self.package = package
        self.data: dict[str, Any] = dict(places)

    def __getitem__(self, name: str) -> T:
        value = self.data[name]
        if isinstance(value, str):
            file, _, attribute = value.partition(":")
            value = self.data[name] = getattr(importlib.import_module(f"{self.package}.{file}"), attribute)
        found: T = value
        return found


def front_door(package: str) -> Callable[[str], Any]:
    """A package's `__getattr__`, which does the imports that its `__init__` has below `if TYPE_CHECKING:`, each late.

    A type checker reads the same imports, so every name is written once.
    """
    places = _late_imports(package)

    class Room(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            """Importing the room's file `herding` would put it where the room has the function `herding`."""
            if not (isinstance(value, ModuleType) and places.get(name, ("", ""))[1]):
                super().__setattr__(name, value)

    sys.modules[package].__class__ = Room

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = places[name]
        value: Any = importlib.import_module(module)
        if attribute:
            value = getattr(value, attribute)
        setattr(sys.modules[package], name, value)  # the next one who asks finds it at once
        return value

    return get


def _late_imports(package: str) -> dict[str, tuple[str, str]]:
    """By name, the module that has it, and what it is called there; "" if the name is the module itself."""
    spec = importlib.util.find_spec(package)
    source = spec.loader.get_source(package) if spec and spec.loader else ""  # type: ignore[attr-defined]
    places = {}
    for block in ast.parse(source or "").body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for line in block.body:
                if not isinstance(line, ast.ImportFrom) or not line.module:
                    raise SyntaxError(f"{package}: below TYPE_CHECKING stands {ast.unparse(line)!r}, no `from` import")
                for alias in line.names:
                    inside = line.module == package  # `from accuacl.experiment import metrics`: a file of the room
                    place = (f"{package}.{alias.name}", "") if inside else (line.module, alias.name)
                    places[alias.asname or alias.name] = place
    return places

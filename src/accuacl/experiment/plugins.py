"""Strategies from a user's own file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from accuacl.strategies import REGISTRY


def load_plugins(paths: Iterable[Path]) -> None:
    """Run each file once; it adds its strategies with `@accuacl.strategies.register("name")`."""
    for path in paths:
        name = f"accuacl_plugin_{path.resolve().as_posix().encode().hex()}"
        if name in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(name, path) if path.is_file() else None
        if spec is None or spec.loader is None:
            raise ValueError(f"there is no Python file {path}; --plugin takes one that registers strategies.")
        before = set(REGISTRY)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise ValueError(f"{path} fails when it is run: {type(error).__name__}: {error}.") from error
        if set(REGISTRY) == before:
            raise ValueError(f'{path} registers no strategy; put @accuacl.strategies.register("name") above one.')

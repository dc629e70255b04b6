"""Strategies from a user's own file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.userfile import is_loaded, load_file
from accuacl.strategies import REGISTRY


def load_plugins(paths: Iterable[Path]) -> None:
    """Run each file once; it adds its strategies with `@accuacl.strategies.register("name")`."""
    for path in paths:
        if is_loaded(path):
            continue
        before = set(REGISTRY)
        load_file(path)
        if set(REGISTRY) == before:
            raise InputError(f'{path} registers no strategy; put @accuacl.strategies.register("name") above one.')

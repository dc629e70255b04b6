"""Engines by name."""

from __future__ import annotations

from accuacl.scale.local import Local
from accuacl.scale.work import Engine


def get(name: str, workers: int = 0, address: str | None = None) -> Engine:
    """The engine called `name`: local processes, or a Ray cluster at `address` (unset: one on this machine)."""
    if name == "local":
        return Local(workers)
    raise ValueError(f"there is no engine {name!r}; give local or ray.")

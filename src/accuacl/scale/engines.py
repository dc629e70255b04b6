"""Engines by name."""

from __future__ import annotations

from accuacl.scale.local import Local
from accuacl.scale.work import Engine


def get(name: str, workers: int = 0, address: str | None = None, gpus: float = 0.0) -> Engine:
    """The engine called `name`: local processes, or a Ray cluster at `address` (unset: one on this machine).

    gpus: the share of a GPU that each item takes, on Ray.
    """
    if name == "local":
        if address:
            raise ValueError(f"address is {address!r} but the engine is local; give --engine ray to use a cluster.")
        if gpus:
            raise ValueError(f"gpus is {gpus:g} but the engine is local; give --engine ray to share GPUs out.")
        return Local(workers)
    if name == "ray":
        from accuacl.scale.ray import Ray  # Ray is looked for only when it is wanted

        return Ray(workers, address, gpus=gpus)
    raise ValueError(f"there is no engine {name!r}; give local or ray.")

"""Engines: map a function over items on processes of this machine or on a Ray cluster."""

from accuacl.base.errors import InputError
from accuacl.engines.engine import BugInWorker, Done, Engine, Failure, Function, Tell, attempt
from accuacl.engines.local import Local

__all__ = ["BugInWorker", "Done", "Engine", "Failure", "Function", "Local", "Tell", "attempt", "check", "get"]


def get(name: str, workers: int = 0, address: str | None = None, gpus: float = 0.0) -> Engine:
    """The engine called `name`: local processes, or a Ray cluster at `address` (unset: one on this machine).

    gpus: the share of a GPU that each item takes, on Ray.
    """
    check(name, address, gpus)
    if name == "local":
        return Local(workers)
    from accuacl.engines.ray import Ray  # Ray is looked for only when it is wanted

    return Ray(workers, address, gpus=gpus)


def check(name: str, address: str | None = None, gpus: float = 0.0) -> None:
    """Refuse an engine that does not exist, and what the local one cannot do."""
    if name not in ("local", "ray"):
        raise InputError(f"there is no engine {name!r}; give local or ray.")
    if name == "local" and address:
        raise InputError(f"address is {address!r} but the engine is local; give --engine ray to use a cluster.")
    if name == "local" and gpus:
        raise InputError(f"gpus is {gpus:g} but the engine is local; give --engine ray to share GPUs out.")

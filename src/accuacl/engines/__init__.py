"""Engines: map a function over items on processes of this machine or on a Ray cluster."""

from accuacl.engines.local import Local
from accuacl.engines.named import get
from accuacl.engines.work import Done, Engine, Function, Staying, Tell, attempt

__all__ = ["Done", "Engine", "Function", "Local", "Staying", "Tell", "attempt", "get"]

"""Engines: map a function over items on processes of this machine or on a Ray cluster."""

from accuacl.engines.engine import BugInWorker, Done, Engine, Failure, Function, Local, attempt, check, get

__all__ = ["BugInWorker", "Done", "Engine", "Failure", "Function", "Local", "attempt", "check", "get"]

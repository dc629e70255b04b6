"""What learning needs is loaded beside threads that answer people: they go on meanwhile."""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ModuleSpec

from accuacl.labeling.project import load_learning


def test_nothing_is_collected_while_it_is_loaded_and_what_is_loaded_is_left_alone(monkeypatch):
    name, calls = "accuacl.labeling.project.people_steps", []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(("freeze", gc.isenabled())))
    load_learning()  # it may be there already
    module = sys.modules[name]
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(module, "__spec__", module.__spec__)
    calls.clear()

    class Imports:
        """Finds and loads what was there before, and notes it."""

        @classmethod
        def find_spec(cls, wanted, path, target=None):
            return ModuleSpec(name, cls) if wanted == name else None

        @staticmethod
        def create_module(spec):
            calls.append(("import", gc.isenabled()))
            return module

        @staticmethod
        def exec_module(module):
            pass

    monkeypatch.setattr(sys, "meta_path", [Imports, *sys.meta_path])
    load_learning()
    assert calls == [("import", False), ("freeze", True)]
    load_learning()
    assert len(calls) == 2

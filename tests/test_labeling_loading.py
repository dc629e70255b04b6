"""What learning needs is loaded beside threads that answer people: they go on meanwhile."""

from __future__ import annotations

import gc
import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest

from accuacl.labeling.project import load_learning

LIBRARY = """
import sys, threading
from accuacl.base.machine import load_torch_libraries

turns, loaded = 0, threading.Event()
def count():
    global turns
    while not loaded.wait(0.001):
        turns += 1
threading.Thread(target=count).start()
load_torch_libraries()
loaded.set()
print(turns, "libtorch_cpu.so" in open("/proc/self/maps").read(), "torch" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch's library is loaded by the import")
def test_other_threads_run_while_the_library_of_torch_is_loaded():
    """An import would let them have no turn at all in that time."""
    said = subprocess.run([sys.executable, "-c", LIBRARY], capture_output=True, text=True, check=True).stdout.split()
    assert said[1:] == ["True", "False"]  # loaded, and left to the import to be used
    assert int(said[0]) >= 5


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

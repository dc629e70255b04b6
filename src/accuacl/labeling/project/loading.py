"""Load what learning needs in a process whose other threads must go on: a server that answers people meanwhile."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import sys
from pathlib import Path

LIBRARIES = (("libtorch_global_deps.so", "RTLD_GLOBAL"), ("libtorch_cpu.so", "RTLD_LOCAL"))  # as torch loads them


def load_learning() -> None:
    """Import torch and everything else that learning needs, which takes a second or two; once, then nothing.

    An import keeps all other threads waiting while it loads a library, half a second for torch's, so that one is loaded
    first, by a call that does not. And the garbage collector stops all threads, a tenth of a second each time, to go
    through what has been loaded, again and again. It stays for good, so the collector leaves it alone from now on.
    """
    if "torch" in sys.modules and "accuacl.labeling.project.learning.people_steps" in sys.modules:
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        if sys.platform == "linux" and "torch" not in sys.modules:
            _load_libraries()
        import accuacl.labeling.project.learning.people_steps  # noqa: F401
    finally:
        if collects:
            gc.enable()
    gc.freeze()


def _load_libraries() -> None:
    """Load the libraries of torch; if one is not there, importing torch loads it, or says what is wrong."""
    package = importlib.util.find_spec("torch")
    if package is None or package.origin is None:
        return
    folder = Path(package.origin).parent / "lib"
    dlopen = ctypes.CDLL(None).dlopen  # called through ctypes, it lets other threads run
    dlopen.argtypes, dlopen.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    for name, scope in LIBRARIES:
        dlopen(os.fsencode(folder / name), os.RTLD_NOW | getattr(os, scope))

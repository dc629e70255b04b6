"""For all tests: examples in a module whose extra is not installed are left out."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("skactiveml") else ["src/accuacl/skactiveml.py"]

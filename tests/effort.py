"""How thorough the tests are: as usual (`make test`), or long (`make test-long`)."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

LONG = os.environ.get("ACCUACL_TESTS") == "long"


def times(usual: int, long: int) -> int:
    """How often to do something."""
    return long if LONG else usual


def examples(usual: int, long: int) -> Any:
    """How many examples Hypothesis tries; on a busy machine each may take any time."""
    return settings(max_examples=times(usual, long), deadline=None)

"""What to say where an extra is missing."""

from __future__ import annotations


def install(extra: str) -> str:
    """How to install an extra, as the second half of a sentence.

    >>> install("web")
    "install it: pip install -c constraints.txt -e '.[web]' in the clone, or the wheel's file with [web] behind it"
    """
    return f"install it: {in_clone(extra)} in the clone, or the wheel's file with [{extra}] behind it"


def in_clone(extra: str) -> str:
    return f"pip install -c constraints.txt -e '.[{extra}]'"

"""What to say where an extra is missing."""

from __future__ import annotations


def install(extra: str) -> str:
    """How to install an extra, as the second half of a sentence.

    >>> install("web")
    "install it: pip install -c constraints.txt -e '.[web]' in the clone, or the wheel's file with [web] behind it"
    """
    clone = f"pip install -c constraints.txt -e '.[{extra}]'"
    return f"install it: {clone} in the clone, or the wheel's file with [{extra}] behind it"

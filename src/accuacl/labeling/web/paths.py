"""Sentences for the page: those of errors, without the paths of the server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from accuacl.base.errors import InputError

ABSOLUTE = re.compile(r"(?<![\w/.:])(?:[A-Za-z]:[\\/]|/)(?:[^\s'\"/\\:;,()]+[\\/])*([^\s'\"/\\:;,()]+)")


def sentence(error: Exception, places: Iterable[Path] = ()) -> str:
    """What the page says of an error: the sentence of an InputError; of a bug its type, to find it in the log.

    places: folders that it may name, of which only the last part is shown, as of any absolute path.

    >>> sentence(InputError("the folder /srv/my data/photos is missing; bring it back."), [Path("/srv/my data/photos")])
    'The folder photos is missing; bring it back.'
    >>> sentence(KeyError("a"))
    "KeyError: 'a' (a bug; the server's log has the details)"
    """
    text = without_paths(str(error), places)
    if isinstance(error, InputError):
        return text[:1].upper() + text[1:]
    return f"{type(error).__name__}: {text} (a bug; the server's log has the details)"


def without_paths(text: str, places: Iterable[Path] = ()) -> str:
    """The text with only the last part of each path.

    >>> without_paths("/home/ada/p/labels.sqlite cannot be read; and/or https://a.example/b")
    'labels.sqlite cannot be read; and/or https://a.example/b'
    """
    for place in sorted(map(str, places), key=len, reverse=True):
        parent = place.rpartition("/")[0]
        if parent:
            text = text.replace(f"{parent}/", "")
    return ABSOLUTE.sub(r"\1", text)

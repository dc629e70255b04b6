"""Names that people type or give: the sentence for one that is not known, what a new one may be; and plurals."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from accuacl.base.errors import InputError


def near(name: object, known: Iterable[str], alike: float = 0.6) -> str:
    """The known name that was probably meant, or "".

    >>> near("Entropi", ["entropy", "margin"]), near("der", ["er", "der++"]), near("xyz", ["entropy"])
    ('entropy', 'der++', '')
    """
    spelt = {each.lower().replace("_", "-"): each for each in known}
    typed = str(name).lower().replace("_", "-")
    found = [each for each in spelt if typed and each.startswith(typed)]  # the beginning of a name is nearer than all
    found = found or difflib.get_close_matches(typed, spelt, 1, alike)
    return spelt[found[0]] if found else ""


def no_such(what: str, name: object, known: Iterable[str]) -> InputError:
    """The InputError for a name that is not known.

    >>> str(no_such("learner", "err", ["er", "gss"]))
    "there is no learner 'err'; did you mean er? The learners are er, gss."
    >>> str(no_such("strategy", "best", ["uniform", "badge"]))
    "there is no strategy 'best'; the strategies are uniform, badge."
    """
    known = list(known)
    meant = near(name, known)
    hint = f"did you mean {meant}? The" if meant else "the"
    return InputError(f"there is no {what} {name!r}; {hint} {_plural(what)} are {', '.join(known)}.")


def check_new_name(what: str, name: object, taken: Iterable[str]) -> None:
    """Refuse a name for something that a user registers: it must be typed in commands and may be part of a path.

    >>> check_new_name("learner", "a b", [])
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: a learner cannot be called 'a b'; give a name without spaces and slashes, as text.
    """
    refused = f"a {what} cannot be called {name if callable(name) else repr(name)}"
    if callable(name):
        raise InputError(f'{refused}; write @register("name") above it, with its name as text.')
    if not isinstance(name, str) or not name.isprintable() or set(name) & set(" /\\") or not name:
        raise InputError(f"{refused}; give a name without spaces and slashes, as text.")
    if name in taken:
        raise InputError(f"{refused}; give it a name that is not taken.")


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "label"), counted(2, "strategy"), counted(0, "held-out example")
    ('1 label', '2 strategies', '0 held-out examples')
    """
    return f"{count} {what if count == 1 else _plural(what)}"


def _plural(what: str) -> str:
    return f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"

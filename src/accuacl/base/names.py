"""Names that people type: the sentence for one that is not known, with the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from accuacl.base.errors import InputError


def near(name: object, known: Iterable[str], alike: float = 0.6) -> str:
    """The known name that was probably meant, or "".

    >>> near("Entrop", ["entropy", "margin"]), near("xyz", ["entropy"])
    ('entropy', '')
    """
    spelt = {each.lower().replace("_", "-"): each for each in known}
    found = difflib.get_close_matches(str(name).lower().replace("_", "-"), spelt, 1, alike)
    return spelt[found[0]] if found else ""


def no_such(what: str, name: object, known: Iterable[str]) -> InputError:
    """The InputError for a name that is not known.

    >>> str(no_such("learner", "err", ["er", "gss"]))
    "there is no learner 'err'; did you mean er? The learners are er, gss."
    >>> str(no_such("strategy", "best", ["uniform", "badge"]))
    "there is no strategy 'best'; the strategies are uniform, badge."
    """
    known = list(known)
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    meant = near(name, known)
    hint = f"did you mean {meant}? The" if meant else "the"
    return InputError(f"there is no {what} {name!r}; {hint} {plural} are {', '.join(known)}.")

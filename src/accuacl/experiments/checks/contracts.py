"""What a contract check finds, and what checks of all kinds share."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import one_line
from accuacl.base.userfile import users_line

Subject = TypeVar("Subject")
Check = Callable[[Subject], None]


class Broken(Exception):
    """The contract is not kept; the message says how, as the second half of a sentence."""


class Remark(Exception):
    """Something that its author may want, and should know."""


@dataclass(frozen=True)
class CheckResult:
    """Of one check. contract: what must hold; fault: what happened instead; remark: what its author should know."""

    contract: str
    fault: str = ""
    remark: str = ""


def check_all(subject: Subject, checks: Iterable[Check[Subject]]) -> Iterator[CheckResult]:
    """Run the checks one after the other; the first line of each one's docstring is what it checks."""
    for check in checks:
        contract = (check.__doc__ or "").splitlines()[0].rstrip(".")
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                check(subject)
        except Broken as broken:
            yield CheckResult(contract, str(broken))
        except Remark as remark:
            yield CheckResult(contract, remark=str(remark))
        except Exception as error:  # whatever a user's code raises
            location = f" ({location})" if (location := users_line(error)) else ""
            yield CheckResult(contract, f"it raised {type(error).__name__}{location}: {one_line(error)}")
        else:
            yield CheckResult(contract)


@contextlib.contextmanager
def global_randomness_watched() -> Iterator[None]:
    """Broken if the block draws from the global generators of Python, NumPy or torch, which runs do not seed."""
    before = _states()
    yield
    for name, state in _states().items():
        if state != before.get(name, state):
            raise Broken(f"it draws from {name}, which is not seeded; use a generator seeded with query.seed")


def _states() -> dict[str, bytes]:
    import random
    import sys

    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    states = {
        "random": repr(random.getstate()).encode(),
        "np.random": np.asarray(keys).tobytes() + repr((kind, *rest)).encode(),
    }
    if torch := sys.modules.get("torch"):
        states["torch's global generator"] = torch.get_rng_state().numpy().tobytes()
    return states


@contextlib.contextmanager
def read_only(arrays: Iterable[NDArray[Any]], what: str) -> Iterator[None]:
    """Within the block the arrays cannot be written to; Broken if something tries to."""
    arrays = list(arrays)
    for array in arrays:
        array.flags.writeable = False
    try:
        yield
    except ValueError as error:
        if "read-only" not in str(error) and "not writeable" not in str(error):
            raise
        location = f" ({location})" if (location := users_line(error)) else ""
        raise Broken(f"it writes into {what}{location}; work on a copy, such as np.array(...)") from error
    finally:
        for array in arrays:
            array.flags.writeable = True

"""One way to fail: what a user can fix is an `InputError`; everything else is a bug and shows its traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pydantic


class InputError(ValueError):
    """The user's input, or a file or disk of theirs, is wrong, and they can fix it.

    The message is one sentence that says what was given, what was expected and what to do. Commands print it and end
    with exit code 2; no code reads it. Facts that code needs are fields of a subclass.
    """


class LabelsPending(Exception):
    """Some labels are missing. The process may end; the same command continues from here once they are given."""


def wrong_setting(error: pydantic.ValidationError) -> InputError:
    """The first wrong setting of a pydantic model as an InputError: its name, its value, and what is wrong with it."""
    first = error.errors()[0]
    field = "/".join(str(part) for part in first["loc"])
    cause = first.get("ctx", {}).get("error", first["msg"])  # what our own validator raised
    return InputError(f"{field} is {first['input']!r}: {cause}." if field else str(cause))


def one_line(error: BaseException) -> str:
    """What a library said, on one line, to be put into a sentence of ours."""
    return " ".join(str(error).split())

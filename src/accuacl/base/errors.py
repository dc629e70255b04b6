"""One way to fail: what a user can mend is an `InputError`; everything else is a bug and shows its traceback."""

from __future__ import annotations


class InputError(ValueError):
    """Something that the user gave, or a file or disk of theirs, is not as it must be.

    The message is one sentence that says what was given, what was expected and what to do. Commands print it and end
    with exit code 2; no code reads it. Facts that code needs are fields of a subclass.
    """


class LabelsPending(Exception):
    """Not all labels are there yet. The process may end; the same command goes on from here when they are."""

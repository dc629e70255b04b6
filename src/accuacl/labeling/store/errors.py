"""What the store refuses with facts that callers need."""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite


class RoundIncomplete(InputError):
    """A round cannot be closed yet: `left` of its `total` picks are neither labelled nor skipped."""

    def __init__(self, task: int, round: int, left: int, total: int) -> None:
        super().__init__(
            f"round {round + 1} of task {task + 1} is not complete: {left} of {total} are neither labelled nor skipped."
        )
        self.task, self.round, self.left, self.total = task, round, left, total


class StoreUnavailable(CannotWrite):
    """The file at `path` cannot be read or written: the disk is full, say, or the file is damaged."""

    def __str__(self) -> str:
        return f"{self.path} cannot be read or written ({self.reason}); nothing was saved, so fix that and try again."

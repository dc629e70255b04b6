"""What the store refuses with facts that callers need."""

from __future__ import annotations

from pathlib import Path

from accuacl.base.errors import InputError


class RoundIncomplete(InputError):
    """A round cannot be closed yet: `left` of its `total` picks are neither labelled nor skipped."""

    def __init__(self, task: int, round: int, left: int, total: int) -> None:
        super().__init__(
            f"round {round + 1} of task {task + 1} is not complete: {left} of {total} are neither labelled nor skipped."
        )
        self.task, self.round, self.left, self.total = task, round, left, total


class StoreUnavailable(InputError):
    """The file at `path` cannot be read or written: the disk is full, say, or the file is damaged."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} cannot be read or written ({why}); nothing was saved, so fix that and try again.")
        self.path = path

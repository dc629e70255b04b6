"""What a task is made of, before it belongs to a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tell = Callable[[int, int], None]  # (done, total)


@dataclass(frozen=True, eq=False)
class Source:
    """Items of one kind. names: unique among them; shown: what people see of a vector; bad: left out, and why."""

    kind: str
    place: str  # the folder or file
    names: list[str]
    texts: list[str] | None = None
    vectors: NDArray[np.float32] | None = None
    shown: list[dict[str, Any]] | None = None
    bad: dict[str, str] = field(default_factory=dict)

    def only(self, rows: list[int]) -> Source:
        """Some of the items."""

        def some(values: list[Any] | None) -> Any:
            return None if values is None else [values[i] for i in rows]

        vectors = None if self.vectors is None else self.vectors[rows]
        return Source(self.kind, self.place, some(self.names), some(self.texts), vectors, some(self.shown), self.bad)


def there(path: Path, what: str) -> Path:
    """The path, if something is there."""
    if not path.exists():
        raise ValueError(f"there is no {path}; give {what}.")
    return path

"""What every strategy is asked and what every strategy answers."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, install
from accuacl.base.progress import OnProgress, Tick, ticker
from accuacl.features import Features, check_alike

SHOWN = 10  # picks that a selection's text shows


@dataclass(frozen=True)
class Query:
    """Which `budget` examples of `pool` should be labelled, given what is known?

    `labelled`: those labelled earlier in this task. `memory`: the replay buffer. `past`: how many examples all
    finished tasks had. `chunk` is the number of rows processed at a time (0: the strategy's own choice); the answer
    does not depend on it. `classes`: those of the labelled examples, as columns of the probabilities, where known.
    """

    pool: Features
    budget: int
    labelled: Features | None = None
    memory: Features | None = None
    past: int | None = None
    seed: int = 0
    chunk: int = 0
    progress: OnProgress | None = None
    classes: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name in ("pool", "labelled", "memory"):
            value = getattr(self, name)
            if not isinstance(value, Features) and (value is not None or name == "pool"):
                raise InputError(f"{name} is a {type(value).__name__}; give Features(embeddings, probabilities).")
        for name in ("budget", "seed", "chunk", "past"):
            value = getattr(self, name)
            if value is None and name == "past":
                continue
            object.__setattr__(self, name, whole_number(name, value, 0))
        object.__setattr__(self, "chunk", min(self.chunk, max(1, len(self.pool))))
        check_alike(self.pool, labelled=self.labelled, memory=self.memory)
        if self.classes is not None:
            object.__setattr__(self, "classes", self._checked(np.asarray(self.classes)))

    def _checked(self, classes: NDArray[Any]) -> NDArray[np.int64]:
        labelled = len(self.labelled or ())
        if classes.shape != (labelled,) or (classes.dtype.kind not in "iu" and labelled):
            raise InputError(
                f"classes are {classes.dtype} of shape {classes.shape}; give a whole number for each of the {labelled} "
                "labelled examples."
            )
        outside = classes[(classes < 0) | (classes >= self.pool.K)]
        if len(outside):
            raise InputError(f"classes has {outside[0]}, but there are the classes 0 to {self.pool.K - 1}.")
        return classes.astype(np.int64)

    @property
    def count(self) -> int:
        """How many will be picked."""
        return min(self.budget, len(self.pool))

    def ticker(self, total: int) -> Tick:
        """A function to call with how much more of `total` is done, in any unit that suits the strategy."""
        return ticker(total, self.progress, "choosing")


@dataclass(frozen=True, repr=False)
class Selection:
    """The picked rows of the pool in selection order, and for each the scores that explain it.

    >>> Selection(np.array([7, 2]), {"margin": np.array([0.125, 0.25])})
    Selection of 2 rows, best first:
      row  margin
        7   0.125
        2    0.25
    """

    indices: NDArray[np.int64]
    scores: dict[str, NDArray[np.float64]]
    ids: NDArray[Any] | None = None  # what the picks are called, if the pool's examples have ids

    def __len__(self) -> int:
        return len(self.indices)

    def to_frame(self) -> Any:
        """A pandas DataFrame, one line for each pick in selection order: `row`, `id` if there are ids, and the scores.

        Needs the extra `frames`.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            raise InputError(f"to_frame needs pandas, the extra `frames`; {install('frames')}.") from None
        ids = {} if self.ids is None else {"id": self.ids}
        return pandas.DataFrame({"row": self.indices, **ids, **self.scores})

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = ("".join(f"  {cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines)
        return "\n".join([f"Selection of {len(self)} rows, best first:", *shown, *self._more()])

    def _repr_html_(self) -> str:
        """What notebooks show."""
        head, *rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in line) for line in self._lines())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        caption = f"Selection of {len(self)} rows, best first"
        more = "".join(f"<p>{html.escape(line)}</p>" for line in self._more())
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def _lines(self) -> list[list[str]]:
        """The head and the first picks, as text."""
        names = self.indices if self.ids is None else self.ids
        picks = [
            [str(name), *(f"{values[i]:.4g}" for values in self.scores.values())]
            for i, name in enumerate(names[:SHOWN])
        ]
        return [["row" if self.ids is None else "id", *self.scores], *picks]

    def _more(self) -> list[str]:
        return [f"... and {len(self) - SHOWN} more"] if len(self) > SHOWN else []


def whole_number(name: str, value: Any, least: int) -> int:
    """An option that counts something; bools and floats are not counts."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}; give a whole number of at least {least}.")
    return int(value)

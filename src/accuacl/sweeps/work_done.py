"""How much of a sweep's work has been done since it was started, to estimate the time left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class WorkDone:
    """Adds up the shares of all runs, weighted by what each costs.

    >>> work = WorkDone([1.0, 3.0], finished=[])
    >>> work.tell(0, 0.5)  # half of it had been done before this start
    >>> work.tell(0, 0.75)
    >>> work.runs, work.share  # a quarter of the first run, of three and a half
    (0.75, 0.07142857142857142)
    """

    def __init__(self, costs: Sequence[float], finished: Iterable[int]) -> None:
        """finished: the runs that had been finished before this start."""
        self.costs = costs
        self.shares = [0.0] * len(costs)
        self.before = dict.fromkeys(finished, 1.0)  # the share of each run that had been done before this start

    def tell(self, run: int, share: float) -> None:
        """Note how far a run is; the first note says how far it was at the start."""
        self.shares[run] = share
        self.before.setdefault(run, share if share < 1 else 0.0)

    def tell_failed(self, run: int) -> None:
        """Leave out a run that failed: it says nothing about how fast the others are."""
        self.shares[run] = self.before[run] = 1.0

    @property
    def runs(self) -> float:
        """How many runs are done; one that is half done counts half."""
        return sum(self.shares)

    @property
    def share(self) -> float:
        """The share of this start's work that has been done."""
        whole = sum(cost * (1 - self.before.get(run, 0.0)) for run, cost in enumerate(self.costs))
        done = sum(self.costs[run] * max(self.shares[run] - before, 0.0) for run, before in self.before.items())
        return done / whole if whole else 1.0

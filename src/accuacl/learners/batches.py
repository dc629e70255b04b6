"""Which rows make a batch: the task's own, and those replayed from the memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor


def every(rows: Tensor, batch: int, generator: torch.Generator) -> list[Tensor]:
    """All rows once, shuffled. A last batch of one joins the one before.

    >>> [len(rows) for rows in every(torch.arange(9), 4, torch.Generator())]
    [4, 5]
    """
    parts = list(torch.split(_shuffled(rows, generator), batch))
    if len(parts) > 1 and len(parts[-1]) == 1 and batch > 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def evenly(labels: Tensor, generator: torch.Generator) -> Tensor:
    """As many rows as there are, and of each class as many as of the others, or one more.

    Of a class with too many examples some are drawn; those of a class with too few come again and again.

    >>> labels = torch.tensor([0, 0, 0, 0, 0, 0, 0, 1, 1])
    >>> sorted(labels[evenly(labels, torch.Generator())].bincount().tolist())
    [4, 5]
    """
    classes = labels.unique()  # type: ignore[no-untyped-call]
    room, odd = divmod(len(labels), len(classes))
    parts = []
    for place, which in enumerate(torch.randperm(len(classes), generator=generator).tolist()):
        rows, count = (labels == classes[which]).nonzero()[:, 0], room + (place < odd)
        turns = [_shuffled(rows, generator) for _ in range(math.ceil(count / len(rows)))]
        parts.append(torch.cat(turns)[:count])
    return torch.cat(parts)


def once(rows: Tensor, batch: int, generator: torch.Generator) -> Iterator[Tensor]:
    """The rows shuffled, in batches as they come, and then no more."""
    if len(rows):
        yield from torch.split(_shuffled(rows, generator), batch)


def cycle(rows: Tensor, batch: int, generator: torch.Generator, full: bool) -> Iterator[Tensor]:
    """The rows again and again, shuffled afresh each time. `full`: a last batch that is smaller is left out."""
    while len(rows) >= (batch if full else 1):
        for part in torch.split(_shuffled(rows, generator), batch):
            if len(part) == batch or not full:
                yield part


def draw(count: int, batch: int, generator: torch.Generator) -> Tensor:
    """At most `batch` different numbers below `count`: a batch from a memory that changes at every step."""
    return torch.randperm(count, generator=generator)[:batch]


def _shuffled(rows: Tensor, generator: torch.Generator) -> Tensor:
    return rows[torch.randperm(len(rows), generator=generator)]

"""What ridge needs of examples once they are gone: for each class their number, their mean and their scatter.

These sums are all that the regression needs of examples, and nothing else is kept. For a class with one or two examples
the sums determine those examples; for a class with many they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from accuacl.base.errors import InputError

SMALLEST = 1e-7  # singular values below this share of the largest are rounding errors


@dataclass(frozen=True)
class OneClass:
    """Of the examples of a class: how many, their mean, and rows R with R^T R = the sum of squares around the mean."""

    count: int
    mean: Tensor
    scatter: Tensor

    def examples(self) -> Tensor:
        """As many rows as there were examples, with the same mean and scatter: a fixed rotation of the examples."""
        n, rank = self.count, len(self.scatter)
        return self.mean + _helmert(n)[:, :rank] @ self.scatter


Sums = dict[int, OneClass]


def sums_of(x: Tensor, labels: Tensor) -> Sums:
    """The sums of examples (n x d), by class.

    >>> sums = sums_of(torch.tensor([[1.0, 0], [3, 0], [5, 5]]), torch.tensor([7, 7, 9]))
    >>> sums[7].count, sums[7].mean, sums[9].scatter.shape
    (2, tensor([2., 0.], dtype=torch.float64), torch.Size([0, 2]))
    """
    sums: Sums = {}
    for label in sorted(set(labels.tolist())):
        rows = x[labels == label].double()
        mean = rows.mean(0)
        sums[label] = OneClass(len(rows), mean, _reduced(rows - mean))
    return sums


def together(one: Sums, other: Sums) -> Sums:
    """The sums of both sets of examples."""
    return {
        label: _joined(one[label], other[label]) if label in one and label in other else (one | other)[label]
        for label in sorted(one.keys() | other.keys())
    }


def merged(sums: Sums, into: Mapping[int, int]) -> Sums:
    """The sums when the examples of some classes count as those of others."""
    joined: Sums = {}
    for label in sorted(sums):
        joined = together(joined, {into.get(label, label): sums[label]})
    return joined


def without(sums: Sums, x: Tensor, label: int) -> Sums:
    """The sums without one of their examples; refused if it cannot be one of them."""
    x, known = x.double(), sums.get(label)
    if known is None:
        raise InputError(f"no example of class {label} is in the sums; nothing was removed.")
    rest = {other: value for other, value in sums.items() if other != label}
    n, offset, scatter = known.count, x - known.mean, known.scatter
    lengths = scatter.square().sum(1)  # the rows are orthogonal
    inside = (scatter @ offset) / lengths  # offset = scatter^T inside, if it is one of these examples
    outside = float((scatter.T @ inside - offset).norm())
    share = n / (n - 1) * float(inside.square().sum()) if n > 1 else 0.0
    size = max(float(known.mean.norm()), float(offset.norm()), float(lengths.max().sqrt()) if len(lengths) else 0.0)
    if outside > 1e-5 * size or share > 1 + 1e-5:
        raise InputError("the example was not part of the sums; give it as it was when it was learned.")
    if n == 1:
        return rest
    if share > 0:  # I - n/(n-1) w w^T, whose root acts along w alone
        root = 1 - max(0.0, 1 - share) ** 0.5
        scatter = scatter - root * torch.outer(inside, inside @ scatter) / inside.square().sum()
    less = OneClass(n - 1, known.mean - offset / (n - 1), _reduced(scatter)[: n - 2])
    return dict(sorted((rest | {label: less}).items()))


def examples_of(sums: Sums) -> tuple[Tensor, Tensor]:
    """Rows and labels with these sums, which therefore give the same regression as the examples."""
    rows = [value.examples() for value in sums.values()]
    labels = [torch.full((value.count,), label) for label, value in sums.items()]
    return torch.cat(rows), torch.cat(labels)


def to_tensors(sums: Sums) -> dict[str, Tensor]:
    """Named tensors for saving."""
    return {
        "classes": torch.tensor(list(sums), dtype=torch.int64),
        "counts": torch.tensor([value.count for value in sums.values()], dtype=torch.int64),
        "ranks": torch.tensor([len(value.scatter) for value in sums.values()], dtype=torch.int64),
        "means": torch.stack([value.mean for value in sums.values()]),
        "scatters": torch.cat([value.scatter for value in sums.values()]),
    }


def from_tensors(given: Mapping[str, Tensor]) -> Sums:
    """The sums that `to_tensors` made these of."""
    scatters = torch.split(given["scatters"], given["ranks"].tolist())
    parts = zip(given["classes"].tolist(), given["counts"].tolist(), given["means"], scatters, strict=True)
    return {label: OneClass(count, mean, scatter) for label, count, mean, scatter in parts}


def _joined(one: OneClass, other: OneClass) -> OneClass:
    n, apart = one.count + other.count, one.mean - other.mean
    between = (one.count * other.count / n) ** 0.5 * apart
    rows = torch.cat([one.scatter, other.scatter, between[None]])
    return OneClass(n, one.mean - other.count / n * apart, _reduced(rows)[: n - 1])


def _reduced(rows: Tensor) -> Tensor:
    """Orthogonal rows R with the same R^T R, as few as possible, the longest first."""
    if len(rows) == 0:
        return rows
    _, lengths, directions = torch.linalg.svd(rows, full_matrices=False)
    kept = lengths > SMALLEST * lengths[0]
    return (lengths[:, None] * directions)[kept]


def _helmert(n: int) -> Tensor:
    """n x (n - 1), orthonormal columns, each of which sums to 0."""
    columns = torch.zeros(n, n - 1, dtype=torch.float64)
    for k in range(1, n):
        columns[:k, k - 1], columns[k, k - 1] = 1.0, -float(k)
        columns[:, k - 1] /= (k * (k + 1)) ** 0.5
    return columns

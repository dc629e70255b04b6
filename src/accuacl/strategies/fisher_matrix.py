"""The full Fisher information of the last layer, added up in blocks."""

from __future__ import annotations

import torch

FISHER_ROWS = 512
WIDE = 1024  # columns of the large symmetric matrices processed at a time


def add_fisher(total: torch.Tensor, h: torch.Tensor, p: torch.Tensor, weight: float = 1.0) -> None:
    """Add weight * the sum of V^T V, whose block (k, l) is (p_k [k = l] - (2 - sum p) p_k p_l) h h^T.

    The sum of p is not assumed to be 1: a float32 softmax is off by 1e-7, which matters once multiplied by |h|^2. The
    blocks on the diagonal are computed separately, because p - p p of a p near 1 would lose its digits.
    """
    (n, d), K = h.shape, p.shape[1]
    rest = missing_mass(p)
    blocks = [total[k * d : (k + 1) * d, k * d : (k + 1) * d] for k in range(K)]
    diagonal = [block.clone() for block in blocks]
    scaled = p * (1 + rest).sqrt()
    for i in range(0, n, FISHER_ROWS):
        outer = (scaled[i : i + FISHER_ROWS].unsqueeze(2) * h[i : i + FISHER_ROWS].unsqueeze(1)).view(-1, K * d)
        for j in range(0, K * d, WIDE):
            total[j : j + WIDE, j:].addmm_(outer[:, j : j + WIDE].T, outer[:, j:], alpha=-weight)
    mirror(total)
    share = p * ((1 - p) - rest * p)
    for k in range(K):
        blocks[k].copy_(diagonal[k].addmm_(h.T, h * share[:, k : k + 1], alpha=weight))


def mirror(matrix: torch.Tensor) -> None:
    """Copy the upper half of a symmetric matrix, which is all that is computed, to the lower one."""
    for i in range(0, len(matrix), WIDE):
        block = matrix[i : i + WIDE, i : i + WIDE]
        block.copy_(block.triu() + block.triu(1).T)
        matrix[i + WIDE :, i : i + WIDE] = matrix[i : i + WIDE, i + WIDE :].T


def missing_mass(p: torch.Tensor) -> torch.Tensor:
    """1 - sum p, subtracting the largest p first."""
    ordered = p.sort(1, descending=True).values
    return (1 - ordered[:, :1]) - ordered[:, 1:].sum(1, keepdim=True)

"""A kernel head as the last layer of a classifier: kernels between embeddings and support rows, then a linear map."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accuacl.experiments.heads import KERNELS, NEIGHBOURS, KernelHead, sparse_rows, to_sparse, unit_rows

PART = 64  # rows that are scaled at a time: they are in float64 then, and fit into the processor's cache


class KernelLayer(nn.Linear):
    """Takes embeddings (n x d), gives logits (n x K); it is made by a fit, and never trained.

    Its tensors: `weight` (K x m) and `bias` of the m support rows; `support` (m x d), each block of columns at length
    1; and the terms of the kernel: `kernels` (places in KERNELS), `columns` and `shares`. `absent`: the logit of a
    class without a label. `reference`: rows by which embeddings are smoothed first (`heads.Smoothing`), if any.
    The tensors that it is given are kept, not copied.
    """

    support: Tensor
    reference: Tensor
    kernels: Tensor
    columns: Tensor
    shares: Tensor
    absent: Tensor
    there: Tensor

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        weight = tensors["weight"]
        super().__init__(1, 1, device="meta")  # draws nothing
        self.in_features, self.out_features = tensors["support"].shape[1], len(weight)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = nn.Parameter(tensors["bias"], requires_grad=False)
        for name in ("support", "reference", "kernels", "columns", "shares", "absent"):
            self.register_buffer(name, tensors[name])
        self.register_buffer("there", self._there(), persistent=False)
        self._sparse: dict[tuple[int, int], Any] = {}  # by columns: the support rows, transposed, or None

    @classmethod
    def of(cls, head: KernelHead, device: Any = "cpu") -> KernelLayer:
        """The layer for a fitted head, in float32."""
        blocks = list(dict.fromkeys(term.columns for term in head.terms))
        reference = head.smoothing.reference if head.smoothing else head.support[:0]
        tensors = {
            "weight": torch.from_numpy(head.coefficients.T.astype(np.float32)),
            "bias": torch.from_numpy(head.bias.astype(np.float32)),
            "support": _at_length_one(head.support, blocks),
            "reference": _at_length_one(reference, blocks),
            "kernels": torch.tensor([KERNELS.index(term.kernel) for term in head.terms]),
            "columns": torch.tensor([term.columns for term in head.terms]),
            "shares": torch.tensor([term.weight for term in head.terms], dtype=torch.float32),
            "absent": torch.tensor(-head.sharpness, dtype=torch.float32),
        }
        return cls({name: tensor.contiguous() for name, tensor in tensors.items()}).to(device)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(self.features(x), self.weight, self.bias)

    def features(self, x: Tensor) -> Tensor:
        """The kernel between embeddings and support rows (n x m)."""
        if len(self.reference):
            x = self._smoothed(x)
        total = x.new_zeros(len(x), len(self.support))
        cosines: dict[tuple[int, int], Tensor] = {}
        terms = zip(self.kernels.tolist(), self.columns.tolist(), self.shares.tolist(), self.there, strict=True)
        for which, (first, end), share, there in terms:
            if (first, end) not in cosines:
                cosines[first, end] = self._product(_unit(x[:, first:end]), first, end).clamp(-1.0, 1.0)
            cosine = cosines[first, end]
            if KERNELS[which] != "linear":
                own = (x[:, first:end] != 0).any(1)[:, None].to(x.dtype)
                if KERNELS[which] == "gaussian":
                    cosine = torch.exp(2 * cosine - own - there)
                else:
                    angle = torch.acos(cosine)
                    cosine = ((torch.sin(angle) + (torch.pi - angle) * cosine) / torch.pi) ** 2 * own * there
            total = total + share * cosine
        return total

    def _there(self) -> Tensor:
        """Of each term, 1 for support rows that are not zero in its columns; linear terms need to know of none."""
        there = torch.ones(len(self.kernels), len(self.support), device=self.support.device)
        for term, (which, (first, end)) in enumerate(zip(self.kernels.tolist(), self.columns.tolist(), strict=True)):
            if KERNELS[which] != "linear":
                there[term] = (self.support[:, first:end] != 0).any(1)
        return there

    def _product(self, rows: Tensor, first: int, end: int) -> Tensor:
        """Products of rows with the support rows in some columns, as sparse matrices where most numbers are 0."""
        support = self.support[:, first:end]
        if rows.device.type != "cpu" or rows.requires_grad:
            return rows @ support.T
        if (first, end) not in self._sparse:
            sparse = sparse_rows(support.numpy())
            self._sparse[first, end] = None if sparse is None else sparse.T.tocsr()
        transposed = self._sparse[first, end]
        if transposed is None:
            return rows @ support.T
        return torch.from_numpy((to_sparse(rows.numpy()) @ transposed).toarray())

    def _smoothed(self, x: Tensor) -> Tensor:
        smoothed = torch.zeros_like(x)
        for first, end in dict.fromkeys(map(tuple, self.columns.tolist())):
            rows, near = _unit(x[:, first:end]), self.reference[:, first:end]
            # equal ones in their order, as the head takes them
            turn = 1e-12 * torch.arange(len(near), dtype=torch.float64, device=x.device)
            nearest = ((rows @ near.T).double() - turn).topk(min(NEIGHBOURS, len(near)), dim=1).indices
            smoothed[:, first:end] = rows + _unit(near[nearest].mean(1)) * (rows != 0).any(1, keepdim=True)
        return smoothed

    def grown(self, classes: int) -> KernelLayer:
        """The layer with more classes, as yet unseen."""
        tensors, more = dict(self.state_dict()), classes - self.out_features
        tensors["weight"] = torch.cat([self.weight, self.weight.new_zeros(more, self.weight.shape[1])])
        tensors["bias"] = torch.cat([self.bias, self.absent.expand(more)])
        return KernelLayer(tensors)


def _unit(rows: Tensor) -> Tensor:
    """Rows at length 1; rows of zeros stay zero."""
    largest = rows.abs().amax(1, keepdim=True)
    return nn.functional.normalize(rows / torch.where(largest > 0, largest, 1.0), eps=1e-12)


def _at_length_one(rows: NDArray[Any], blocks: list[tuple[int, int]]) -> Tensor:
    """Each block of columns at length 1; columns that the kernel does not use are 0."""
    scaled = np.zeros(rows.shape, np.float32)
    for start in range(0, len(rows), PART):
        part = slice(start, start + PART)
        for first, end in blocks:
            scaled[part, first:end] = unit_rows(rows[part], (first, end))
    return torch.from_numpy(scaled)

"""BAIT's optimal design: the inverse of the Fisher information, kept up to date from pick to pick, in torch."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.features import Features
from accuacl.strategies.api import Query
from accuacl.strategies.bait import TIE, block_rows

LinAlgError = torch.linalg.LinAlgError  # type: ignore[attr-defined]
Vector = NDArray[np.float64]
HELD_BACK = 16  # picks whose updates of the large matrices are applied together


class Design:
    """M^-1, N = M^-1 F M^-1, and for every example x the K x K matrices B = V M^-1 V^T and C = V N V^T.

    V has rows weight * sqrt(p_j) (e_j - p) (x) h and is never built: products with it are taken class by class.
    """

    def __init__(self, query: Query, ridge: float) -> None:
        pool, labelled = query.pool, query.labelled
        self.d, self.K, self.ridge = pool.d, pool.K, ridge
        self.known, self.budget = len(labelled or ()), query.count
        self.weight = math.sqrt(self.budget / (self.known + self.budget))
        self.rows = query.chunk or block_rows(self.d, self.K)
        self.pool = _double(pool)
        self.labelled = _double(labelled) if labelled is not None else None
        self.h, self.p = self.pool
        self.first, self.rest = self.p.argmax(1), missing_mass(self.p)
        self.members: list[tuple[int, int]] = []  # (row, +1 or -1), everything added or dropped so far
        self._compute()

    def _compute(self) -> None:
        """All matrices from their definitions."""
        self.inverse = self.N = self.B = self.C = torch.empty(0)  # free the old ones first
        size = self.d * self.K
        fisher = torch.zeros(size, size, dtype=torch.float64)
        if self.labelled:
            add_fisher(fisher, *self.labelled)
        design = fisher / (self.known + self.budget)
        design.diagonal().add_(self.ridge)
        rows = sorted({row for row, _ in self.members})
        net = [sum(sign for other, sign in self.members if other == row) for row in rows]
        rows = [row for row, sign in zip(rows, net, strict=True) if sign]
        add_fisher(design, self.h[rows], self.p[rows], self.weight**2)
        design = torch.linalg.cholesky(design)
        self.inverse = torch.cholesky_inverse(design)
        del design
        add_fisher(fisher, *self.pool)
        fisher /= self.known + len(self.pool[0])
        half = fisher @ self.inverse
        self.N = fisher  # in its place
        for i in range(0, size, WIDE):
            torch.mm(self.inverse[i : i + WIDE], half[:, i:], out=self.N[i : i + WIDE, i:])
        mirror(self.N)
        del half
        self.Z: list[torch.Tensor] = []
        self.W: list[torch.Tensor] = []
        self.signs: list[int] = []
        self.B, self.C = self._products(self.inverse), self._products(self.N)
        self.fresh = True
        self.start_B, self.start_C = _traces(self.B), _traces(self.C)

    def gains(self, taken: list[int], sign: int) -> Vector:
        """sign * tr(C (I + sign B)^-1) of every example: by how much adding (dropping) it lowers tr(M^-1 F).

        -inf for the `taken`. Updates subtract, and the small rest of a large number has lost digits: where that could
        change the choice, everything is computed again.
        """
        gain, error = self._gains(sign)
        if not np.isfinite(gain).all():  # some versions of LAPACK invert what others refuse
            raise LinAlgError("the gains are not finite")
        gain[taken] = -math.inf
        contend = gain + error >= np.max(gain - error)
        if not self.fresh and contend.sum() > 1 and (error[contend] > TIE / 4 * np.abs(gain[contend])).any():
            self._compute()
            gain, _ = self._gains(sign)
            gain[taken] = -math.inf
        return gain

    def _gains(self, sign: int) -> tuple[Vector, Vector]:
        gain, spread = np.empty(len(self.h)), np.empty(len(self.h))
        eye = torch.eye(self.K, dtype=torch.float64)
        for i in range(0, len(gain), self.rows):
            part = slice(i, i + self.rows)
            inverse = torch.linalg.inv(eye + sign * self.B[part])
            gain[part] = sign * (inverse * self.C[part]).sum((1, 2)).numpy()
            spread[part] = inverse.diagonal(dim1=1, dim2=2).amax(1).numpy()
        digits = 16 * self.K * np.finfo(np.float64).eps
        return gain, digits * spread * (self.start_C + np.abs(gain) * self.start_B)

    def update(self, row: int, sign: int) -> None:
        """Add (or drop) an example: everything changes by terms of rank K."""
        eye = torch.eye(self.K, dtype=torch.float64)
        root = torch.linalg.cholesky(eye + sign * self.B[row])
        Z, Y = self._times_example(row)
        Z = torch.linalg.solve_triangular(root, Z.T, upper=False).T
        Y = torch.linalg.solve_triangular(root, Y.T, upper=False).T
        inner = torch.linalg.solve_triangular(root, self.C[row], upper=False)
        inner = torch.linalg.solve_triangular(root, inner.T, upper=False)
        W = Y - (sign / 2) * (Z @ inner)
        self.Z.append(Z)
        self.W.append(W)
        self.signs.append(sign)
        self.members.append((row, sign))
        self.fresh = False
        if len(self.Z) == HELD_BACK:
            self._flush()
        # h @ [Z | W] for all classes at once: columns are (matrix, class, column of Z)
        both = torch.stack([Z, W]).view(2, self.K, self.d, self.K).permute(2, 0, 1, 3).reshape(self.d, -1)
        for i in range(0, len(self.h), self.rows):
            part = slice(i, i + self.rows)
            PR = (self.h[part] @ both).view(-1, 2, self.K, self.K)
            P, R = self._centre(PR[:, 0], part), self._centre(PR[:, 1], part)
            self.B[part].baddbmm_(P, P.mT, alpha=-sign)
            cross = P @ R.mT
            self.C[part].sub_(cross, alpha=sign).sub_(cross.mT, alpha=sign)

    def narrow(self, rows: list[int]) -> None:
        """Keep only these examples, which become 0, 1, ..."""
        self.h, self.p, self.B, self.C = self.h[rows], self.p[rows], self.B[rows], self.C[rows]
        self.first, self.rest = self.first[rows], self.rest[rows]
        self.start_B, self.start_C = self.start_B[rows], self.start_C[rows]
        self.members = [(rows.index(row), sign) for row, sign in self.members]

    def _centre(self, products: torch.Tensor, part: slice) -> torch.Tensor:
        """From (e_j (x) h) X for every class j to V X: weight * sqrt(p_j) (row j - sum of p_k row k).

        Rows are taken relative to that of the likeliest class, so that nothing is lost where its p is near 1.
        """
        p = self.p[part].unsqueeze(2)
        first = self.first[part].view(-1, 1, 1).expand(-1, 1, products.shape[2])
        likeliest = products.gather(1, first)
        relative = products - likeliest
        mean = (p * relative).sum(1, keepdim=True) - self.rest[part].unsqueeze(2) * likeliest
        return self.weight * p.sqrt() * (relative - mean)

    def _times_example(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        """M^-1 V^T and N V^T of one example, with the deferred updates."""
        h = self.h[row]
        out = []
        for matrix in (self.inverse, self.N):
            per_class = (matrix.view(-1, self.K, self.d) @ h).T.unsqueeze(0)  # 1 x class x dK
            out.append(self._centre(per_class, slice(row, row + 1))[0].T)
        for Z, W, sign in zip(self.Z, self.W, self.signs, strict=True):
            VZ, VW = (
                self._centre((X.view(self.K, self.d, self.K).transpose(1, 2) @ h).unsqueeze(0), slice(row, row + 1))[0]
                for X in (Z, W)
            )
            out[0] = out[0] - sign * (Z @ VZ.T)
            out[1] = out[1] - sign * (Z @ VW.T + W @ VZ.T)
        return out[0], out[1]

    def _flush(self) -> None:
        Z = torch.cat(self.Z, dim=1)
        signed = torch.cat([sign * Z for Z, sign in zip(self.Z, self.signs, strict=True)], dim=1)
        W = torch.cat(self.W, dim=1)
        self.inverse.addmm_(signed, Z.T, alpha=-1)
        self.N.addmm_(signed, W.T, alpha=-1)
        self.N.addmm_(W, signed.T, alpha=-1)
        self.Z, self.W, self.signs = [], [], []

    def _products(self, matrix: torch.Tensor) -> torch.Tensor:
        """V X V^T of every example for a symmetric X, block row by block row of its upper half."""
        n, K, d = len(self.h), self.K, self.d
        out = torch.empty(n, K, K, dtype=torch.float64)
        for i in range(0, n, self.rows):
            part = slice(i, i + self.rows)
            h, T = self.h[part], out[part]
            for k in range(K):
                right = (h @ matrix[k * d : (k + 1) * d, k * d :]).view(len(h), K - k, d)
                T[:, k, k:] = T[:, k:, k] = (right @ h.unsqueeze(2))[:, :, 0]
            out[part] = self._centre(self._centre(T, part).mT, part)
        return out


def _double(features: Features) -> tuple[torch.Tensor, torch.Tensor]:
    h, p = (np.array(x, np.float64) for x in (features.embeddings, features.probabilities))
    return torch.from_numpy(h), torch.from_numpy(p)


def _traces(matrices: torch.Tensor) -> Vector:
    return np.asarray(matrices.diagonal(dim1=1, dim2=2).sum(1))


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

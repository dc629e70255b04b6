"""Which kernels and which learning from the pool suit a kind of data: as docs/results/heads/chosen.md found."""

from __future__ import annotations

from accuacl.experiments.heads.kernels import Blocks, Term, Terms


def candidates_of_kind(kind: str, blocks: Blocks) -> list[Terms]:
    """Sums of kernels for texts, images, tables or vectors."""
    first = Term("linear", blocks[0]), Term("gaussian", blocks[0])
    return [(*first, *(Term("linear", block, 0.3) for block in blocks[1:]))]

"""Kernels and pool learning that suit each kind of data, chosen in docs/results/heads/chosen.md."""

from __future__ import annotations

from accuacl.experiments.heads.kernels import Blocks, Term, Terms

OTHER_BLOCKS = 0.3  # weight of the linear kernel of every block but the first, such as TF-IDF beside token vectors


def candidates_of_kind(kind: str, blocks: Blocks) -> list[Terms]:
    """Sums of kernels for texts, images, tables or vectors; leave-one-out chooses among them."""
    names = ("gaussian",) if kind == "texts" else ("linear", "gaussian")
    first = (Term(name, blocks[0]) for name in names)
    return [(*first, *(Term("linear", block, OTHER_BLOCKS) for block in blocks[1:]))]


def pool_learning_of_kind(kind: str, embeddings: bool) -> str:
    """How to learn from the pool. embeddings: vectors come from a network; otherwise they are columns of a table."""
    return "self" if kind in ("texts", "images", "files") or (kind == "vectors" and embeddings) else "off"

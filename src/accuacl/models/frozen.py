"""A frozen backbone: embed a dataset once, then train the head on the embeddings in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.models.output import tensor_of


class Frozen:
    """A backbone (any module or function from a batch to n x d or n x d x H x W) that is never trained.

    `prepare` turns a slice of the raw inputs into what the backbone takes, for instance `Transform(...).plain`.

    >>> Frozen(nn.Flatten()).embed_all(torch.ones(5, 2, 3), batch=2).shape
    torch.Size([5, 6])
    """

    def __init__(self, backbone: Callable[[Tensor], Any], prepare: Callable[[Tensor], Tensor] | None = None) -> None:
        self.backbone = backbone.eval() if isinstance(backbone, nn.Module) else backbone
        self.prepare = prepare

    def embed_all(
        self,
        inputs: Tensor,
        batch: int = 256,
        device: str = "cpu",
        progress: OnProgress | None = None,
    ) -> Tensor:
        """The embeddings of all inputs, float32 on the CPU. progress: called after every batch."""
        if len(inputs) == 0 or batch < 1:
            raise InputError(f"got {len(inputs)} inputs and batch={batch}; give at least one of each.")
        if isinstance(self.backbone, nn.Module):
            self.backbone.to(device)
        embeddings: Tensor | None = None
        with torch.inference_mode():
            for start in range(0, len(inputs), batch):
                x = inputs[start : start + batch].to(device)
                h = tensor_of(self.backbone(self.prepare(x) if self.prepare else x))
                if h.ndim == 4:
                    h = h.mean(dim=(2, 3))
                if h.ndim != 2:
                    raise InputError(f"the backbone gave {tuple(h.shape)} for {len(x)} inputs; expected one row each.")
                if embeddings is None:
                    embeddings = torch.empty(len(inputs), h.shape[1])
                embeddings[start : start + len(x)] = h
                if progress:
                    progress(Progress(start + len(x), len(inputs), "embedding", "preparing"))
        assert embeddings is not None
        return embeddings.clone()  # a tensor made in inference mode cannot be trained on

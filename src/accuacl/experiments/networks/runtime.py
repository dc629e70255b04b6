"""Runtimes: what runs a network that is never trained, by one method, several times faster than torch does.

    network = pretrained_network("efficientnet-lite2")
    runtime = choose_runtime(network, pixels)     # the fastest that is installed and agrees with torch
    runtime.run(pixels)                           # uint8 (n, H, W, 3) to float32 (n, 1280)

Every runtime but torch's takes BATCH inputs at a time, the last of them filled up with zeros, on one thread. So an
input's embedding has the same bits whatever it is embedded with and however many threads call `run` at a time.
Between runtimes embeddings differ by at most TOLERANCE; callers that keep them record the runtime's name.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accuacl.base.errors import InputError, install, no_such, one_line
from accuacl.base.machine import cores
from accuacl.base.threads import ordered_thread_map
from accuacl.experiments import learners, models
from accuacl.experiments.networks import pretrained
from accuacl.torch import tensor_of

AUTO, TORCH = "auto", "torch"
IN_ORDER = ("openvino-bf16", "onnxruntime", "openvino", TORCH)  # the fastest first
# By the largest distance between an embedding and torch's, as a share of the length of torch's.
TOLERANCE = {"openvino-bf16": 0.15, "openvino": 1e-4, "onnxruntime": 1e-4}
BATCH = 4  # inputs at a time: their activations stay in the cache
SPREAD = 32  # inputs that a thread is given at a time
TORCH_BATCH = 32  # as projects have always had it: the last bits of torch's results depend on it


class Runtime(Protocol):
    """Any number of threads may call `run` at the same time."""

    name: str

    def run(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        """One row for each input: raw pixels, uint8 (n, H, W, 3), or vectors, float32 (n, d)."""


@dataclass(frozen=True)
class FrozenNetwork:
    """A network without a head. prepare: from raw inputs to its own.

    onnx: makes the ONNX model, from raw inputs on, if something else than torch's exporter does.
    bf16: it may be run in bfloat16: this has been measured to change no accuracy.
    """

    embed: nn.Module
    prepare: Callable[[Tensor], Tensor]
    onnx: Callable[[], bytes] | None = None
    bf16: bool = False


def pretrained_network(name: str) -> FrozenNetwork:
    """A network of `pretrained` without its last layer."""
    network = pretrained.load_pretrained(name)
    transform = learners.Transform(pretrained.MEAN, pretrained.STD)
    return FrozenNetwork(models.wrap(network).embed, transform.plain, lambda: pretrained.to_onnx(network), True)


def installed() -> list[str]:
    """The runtimes that this machine has, in the order in which they are tried."""
    return [name for name in IN_ORDER if _is_installed(name)]


def choose_runtime(network: FrozenNetwork, first: NDArray[Any], device: str = "cpu", name: str = AUTO) -> Runtime:
    """The first of IN_ORDER that agrees with torch on the first inputs; a warning says why others were rejected.

    name: another one than that is not tried, except for torch, which never fails.
    """
    if name != AUTO:
        _check_installed(name)
    plain = TorchRuntime(network, device)
    candidates = [each for each in installed() if network.bf16 or each != "openvino-bf16"] if name == AUTO else [name]
    candidates = [each for each in candidates if each != TORCH]
    if device != "cpu" or not candidates or not len(first):
        return plain
    first = first[:BATCH]
    if first.dtype == np.uint8:
        first = np.concatenate([first, 255 - first])  # dark where they are bright, for networks that make a difference
    elif first.dtype.kind == "f":
        first = np.concatenate([first, -first])
    expected = plain.run(first)
    try:
        data = onnx_of(network, first.shape[1:], first.dtype)
    except Exception as error:  # torch's exporter raises nearly anything for what it does not know
        warnings.warn(f"torch runs this network, as it cannot be exported: {one_line(error)[:200]}", stacklevel=2)
        return plain
    for each in candidates:
        try:
            runtime = _open(each, data, first.shape[1:])
            off = distance(runtime.run(first), expected)
        except Exception as error:  # as above
            warnings.warn(f"{each} cannot run this network: {one_line(error)[:200]}", stacklevel=2)
            continue
        if off <= TOLERANCE[each]:
            return runtime
        warnings.warn(f"{each} is not used: its embeddings are not torch's, by {off:.1g} of their length", stacklevel=2)
    return plain


def open_runtime(name: str, network: FrozenNetwork, shape: tuple[int, ...], device: str = "cpu") -> Runtime:
    """The runtime of a name, for images or vectors of bytes of this shape."""
    if name == TORCH:
        return TorchRuntime(network, device)
    _check_installed(name)
    if name == "openvino-bf16" and not _is_installed(name):
        warnings.warn(
            "this processor does not compute in bfloat16: embeddings differ a little from those made before.",
            stacklevel=2,
        )
    return _open(name, onnx_of(network, shape, np.uint8), shape)


def fast_copy(model: nn.Module, example: Tensor, runtime: str = AUTO) -> nn.Module:
    """A copy of a model, for `accuacl.torch.features`, that a runtime runs up to the last linear layer, on all cores.

    example: a few inputs as the model takes them, on the CPU, which decide the runtime as those of a project do. If no
    runtime agrees with torch on them, a warning says so, and torch runs the copy. It has the weights that the model has
    now: after training, make another.

        fast = fast_copy(model, next(iter(loader))[0])
        pool = features(fast, loader, classes=range(10))
    """
    if not isinstance(example, Tensor) or not example.ndim or not len(example) or example.device.type != "cpu":
        raise InputError(
            "the example must be a tensor on the CPU, with at least one input; give a batch of the loader."
        )
    classifier = models.wrap(model, example=example).eval()
    network = FrozenNetwork(classifier.embed, lambda x: x)
    chosen = choose_runtime(network, example.detach().numpy(), name=runtime)
    return classifier if chosen.name == TORCH else _OnRuntime(chosen, classifier.head)


class _OnRuntime(nn.Module):
    """A runtime's output followed by a linear layer."""

    def __init__(self, runtime: Runtime, head: nn.Linear) -> None:
        super().__init__()
        self.runtime, self.head = runtime, head

    def forward(self, x: Tensor) -> Tensor:
        rows = run_on_all_cores(self.runtime, x.numpy()) if len(x) else np.empty((0, self.head.in_features), np.float32)
        logits: Tensor = self.head(torch.from_numpy(rows))
        return logits


def run_on_all_cores(runtime: Runtime, inputs: NDArray[Any]) -> NDArray[np.float32]:
    """One row for each input."""
    parts = (inputs[start : start + SPREAD] for start in range(0, len(inputs), SPREAD))
    return np.concatenate(list(ordered_thread_map(runtime.run, parts, cores())))


def _open(name: str, data: bytes, shape: tuple[int, ...]) -> Runtime:
    return OnnxRuntime(data) if name == "onnxruntime" else OpenVino(data, name, (BATCH, *shape))


def distance(rows: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest distance of a row from the one expected, as a share of the latter's length."""
    off = np.linalg.norm(rows.astype(np.float64) - expected, axis=1)
    return float(np.max(off / np.maximum(np.linalg.norm(expected.astype(np.float64), axis=1), 1e-12)))


class TorchRuntime:
    """The network as it is. torch's number of threads is that of the thread which calls it."""

    name = TORCH

    def __init__(self, network: FrozenNetwork, device: str = "cpu") -> None:
        self.frozen, self.device = models.Frozen(network.embed, network.prepare), device

    def run(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        return self.frozen.embed_all(torch.from_numpy(batch), TORCH_BATCH, self.device).numpy()


class OnnxRuntime:
    """An ONNX model with one input and one output."""

    name = "onnxruntime"

    def __init__(self, data: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        self.session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        self.input = self.session.get_inputs()[0].name

    def run(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        return in_batches(lambda part: self.session.run(None, {self.input: part})[0], batch)


class OpenVino:
    """An ONNX model with one input and one output, run by OpenVINO; in bfloat16 if the name says so."""

    def __init__(self, data: bytes, name: str, shape: tuple[int, ...]) -> None:
        core: Any = import_module("openvino").Core()
        self.name = name
        model = core.read_model(data)
        model.reshape(list(shape))
        options = {
            "INFERENCE_PRECISION_HINT": "bf16" if name.endswith("bf16") else "f32",
            "INFERENCE_NUM_THREADS": cores(),
            "NUM_STREAMS": cores(),  # one thread each
            "ENABLE_CPU_PINNING": False,
        }
        self.compiled = core.compile_model(model, "CPU", options)
        self.local = threading.local()

    def run(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        if not hasattr(self.local, "request"):
            self.local.request = self.compiled.create_infer_request()
        return in_batches(lambda part: self.local.request.infer({0: part})[0].copy(), batch)


def in_batches(function: Callable[[NDArray[Any]], Any], rows: NDArray[Any]) -> NDArray[np.float32]:
    """The function's rows for BATCH inputs at a time; the last ones are filled up with zeros.

    >>> in_batches(lambda part: part * len(part), np.ones((5, 1), np.float32)).ravel().tolist()
    [4.0, 4.0, 4.0, 4.0, 4.0]
    """
    results: list[NDArray[np.float32]] = []
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        if short := BATCH - len(part):
            part = np.concatenate([part, np.zeros((short, *rows.shape[1:]), rows.dtype)])
        results.append(function(np.ascontiguousarray(part)))
    return np.concatenate(results)[: len(rows)]


def onnx_of(network: FrozenNetwork, shape: tuple[int, ...], dtype: Any) -> bytes:
    """The network as an ONNX model for BATCH inputs of this shape; torch's exporter makes it, if nothing else does."""
    if network.onnx:
        return network.onnx()
    if not find_spec("onnx"):
        raise InputError(f"exporting a network needs the extra `onnx`; {install('onnx')}.")
    whole = _Whole(network).eval()
    file: Any = io.BytesIO()
    example = torch.from_numpy(np.zeros((BATCH, *shape), dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own age, and of what it leaves out
        # The exporter that traces takes a second or two and the one that compiles ten times as long.
        torch.onnx.export(whole, (example,), file, dynamo=False, input_names=["inputs"])
    return bytes(file.getvalue())


class _Whole(nn.Module):
    """A frozen network from raw inputs on."""

    def __init__(self, network: FrozenNetwork) -> None:
        super().__init__()
        self.embed, self.prepare = network.embed, network.prepare

    def forward(self, x: Tensor) -> Tensor:
        h = tensor_of(self.embed(self.prepare(x)))
        return h.mean(dim=(2, 3)) if h.ndim == 4 else h


def _check_installed(name: str) -> None:
    if name not in IN_ORDER:
        raise no_such("runtime", name, IN_ORDER)
    package = name.partition("-")[0]
    if not find_spec(package):
        how = install("label") if package == "onnxruntime" else f"install it: pip install {package}"
        raise InputError(f"these embeddings are made with {package}, which is not installed; {how}.")


def _is_installed(name: str) -> bool:
    if name == TORCH:
        return True
    if not find_spec(name.partition("-")[0]):
        return False
    if name != "openvino-bf16":
        return True
    return "BF16" in import_module("openvino").Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")

"""Runtimes of frozen networks: they agree with torch, and with themselves for every batch and number of threads."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from accuacl.base.errors import InputError
from accuacl.experiments import learners, models
from accuacl.experiments.networks import pretrained, runtime as runtimes
from accuacl.experiments.networks.runtime import FrozenNetwork, choose_runtime, fast_copy, open_runtime
from accuacl.torch import features

SIDE = 64
FAST = [name for name in runtimes.installed() if name != "torch"]


def pixels(count: int, side: int = SIDE, seed: int = 0) -> NDArray[np.uint8]:
    """Smooth images, so that a network has something to see."""
    coarse = torch.rand(count, 3, 5, 5, generator=torch.Generator().manual_seed(seed))
    smooth = nn.functional.interpolate(coarse, (side, side), mode="bicubic", align_corners=False).clamp(0, 1)
    return (255 * smooth).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()


@pytest.fixture(scope="module", params=list(pretrained.WHEELS))
def network(request: Any) -> FrozenNetwork:
    if not pretrained.is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    return runtimes.pretrained_network(request.param)


def small_network(seed: int = 0) -> FrozenNetwork:
    """A user's network: a convolution, batch normalisation with statistics of its own, pooling, and a head."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
        )
        module(torch.rand(16, 3, 16, 16))
    return FrozenNetwork(models.wrap(module.eval()).embed, learners.Transform((0.4,), (0.2,)).plain)


@pytest.mark.parametrize("side", [48, SIDE, 131])
def test_the_onnx_file_of_a_pretrained_network_gives_what_torch_gives(network: FrozenNetwork, side: int) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    assert network.onnx
    session = onnxruntime.InferenceSession(network.onnx(), providers=["CPUExecutionProvider"])
    images = pixels(3, side)
    (rows,) = session.run(None, {"inputs": images})
    with torch.inference_mode():
        expected = network.embed(network.prepare(torch.from_numpy(images))).numpy()
    assert rows.shape == (3, 1280)
    assert runtimes.distance(rows, expected) < 1e-5


def test_the_onnx_file_follows_the_specification(network: FrozenNetwork) -> None:
    onnx = pytest.importorskip("onnx")
    assert network.onnx
    onnx.checker.check_model(onnx.load_from_string(network.onnx()), full_check=True)


@pytest.mark.parametrize("name", FAST)
def test_a_runtime_agrees_with_torch(network: FrozenNetwork, name: str) -> None:
    images = pixels(6)
    expected = open_runtime("torch", network, images.shape[1:]).run(images)
    rows = open_runtime(name, network, images.shape[1:]).run(images)
    assert rows.dtype == np.float32
    assert runtimes.distance(rows, expected) <= runtimes.TOLERANCE[name]


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("own", [False, True])
def test_embeddings_do_not_depend_on_the_batch_nor_on_threads(name: str, own: bool) -> None:
    if not own and not pretrained.is_installed("efficientnet-lite0"):
        pytest.skip("efficientnet-lite0 is not installed")
    network = small_network() if own else runtimes.pretrained_network("efficientnet-lite0")
    images = pixels(11)
    runtime = open_runtime(name, network, images.shape[1:])
    whole = runtime.run(images)
    for step in (1, 3, 4, 7):
        starts = range(0, len(images), step)
        parts = [runtime.run(images[start : start + step]) for start in starts]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: runtime.run(images), range(8)):
            np.testing.assert_array_equal(rows, whole)


@pytest.mark.parametrize("name", FAST)
def test_a_users_network_is_exported(name: str) -> None:
    network, images = small_network(), pixels(5, 16)
    expected = open_runtime("torch", network, images.shape[1:]).run(images)
    rows = open_runtime(name, network, images.shape[1:]).run(images)
    assert runtimes.distance(rows, expected[::-1]) > 0  # the images are not all alike
    assert runtimes.distance(rows, expected) <= runtimes.TOLERANCE[name]


def trained(seed: int = 0) -> nn.Module:
    """A user's classifier, in training mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
        )
        module(torch.rand(16, 3, 16, 16))
    return module


@pytest.mark.parametrize("name", FAST)
def test_features_of_a_fast_copy_are_those_of_the_model(name: str) -> None:
    model = trained()
    x = torch.from_numpy(pixels(70, 16)).permute(0, 3, 1, 2).float() / 255
    loader = [x[:33], x[33:33], x[33:]]  # a batch that several threads share, an empty one, and another
    expected = features(model, loader, classes=[0, 3])
    fast = fast_copy(model, x[:6], name)
    assert fast.runtime.name == name  # type: ignore[union-attr]
    assert model.training
    with torch.no_grad():
        model[5].weight.zero_()  # type: ignore[union-attr,operator]
    found = features(fast, loader, classes=[0, 3])  # the copy has the weights of before
    assert runtimes.distance(found.embeddings, expected.embeddings) <= runtimes.TOLERANCE[name]
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=max(1e-5, runtimes.TOLERANCE[name]))
    assert runtimes.distance(found.embeddings, expected.embeddings[::-1]) > 0.01  # rows are not all alike


def test_a_copy_that_no_runtime_runs_is_run_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = trained(), torch.rand(5, 3, 16, 16)
    expected = features(model, [x], classes=range(5))
    monkeypatch.setattr(runtimes, "installed", lambda: ["torch"])
    found = features(fast_copy(model, x), [x], classes=range(5))
    np.testing.assert_allclose(found.embeddings, expected.embeddings, rtol=1e-5)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, rtol=1e-5)


@pytest.mark.parametrize("example", [None, torch.empty(0, 3, 16, 16), np.zeros((2, 3, 16, 16), np.float32)])
def test_a_fast_copy_needs_an_example(example: Any) -> None:
    with pytest.raises(InputError, match=r"must be a tensor on the CPU, with at least one input; give a batch"):
        fast_copy(trained(), example)


def test_the_fastest_runtime_is_chosen_and_torch_if_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    network, images = small_network(), pixels(5, 16)
    fastest = next(name for name in runtimes.installed() if name != "openvino-bf16")
    assert choose_runtime(network, images).name == fastest
    assert choose_runtime(replace(network, bf16=True), images).name == runtimes.installed()[0]
    monkeypatch.setattr(runtimes, "installed", lambda: ["torch"])
    chosen = choose_runtime(network, images)
    assert chosen.name == "torch"
    np.testing.assert_array_equal(chosen.run(images), open_runtime("torch", network, images.shape[1:]).run(images))


class ByTheData(nn.Module):
    """Takes another way for bright images, which a trace of one example does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.mean(dim=(2, 3))
        return self.head(h * 3 if float(h.mean()) > 0.1 else h)


@pytest.mark.skipif("onnxruntime" not in FAST, reason="onnxruntime is not installed")
def test_a_network_whose_export_gives_something_else_stays_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "installed", lambda: ["onnxruntime", "torch"])
    network = FrozenNetwork(models.wrap(ByTheData()).embed, learners.Transform().plain)
    images = pixels(4, 16)
    with pytest.warns(UserWarning, match="onnxruntime is not used: .* by 0.7 of their length"):
        chosen = choose_runtime(network, images)
    assert chosen.name == "torch"


@pytest.mark.skipif("onnxruntime" not in FAST, reason="onnxruntime is not installed")
def test_a_network_that_cannot_be_exported_stays_with_torch() -> None:
    def prepare(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x[:, :4, :4, 0].float()).real  # which ONNX does not have

    with pytest.warns(UserWarning, match="torch runs this network, as it cannot be exported: .*linalg_eigvals"):
        chosen = choose_runtime(FrozenNetwork(nn.Identity(), prepare), pixels(4, 16))
    assert chosen.name == "torch"


def test_without_the_package_onnx_a_users_network_stays_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(runtimes, "find_spec", lambda name: None if name == "onnx" else found(name))
    monkeypatch.setattr(runtimes, "installed", lambda: ["onnxruntime", "torch"])
    with pytest.warns(UserWarning, match="exporting a network needs the extra `onnx`"):
        assert choose_runtime(small_network(), pixels(4, 16)).name == "torch"


@pytest.mark.parametrize(("name", "sentence"), [("onnxruntime", "label"), ("openvino", "pip install openvino")])
def test_a_recorded_runtime_that_is_missing_is_named(name: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=f"made with {name}, which is not installed; .*({sentence})"):
        open_runtime(name, small_network(), (16, 16, 3))


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(InputError, match="onnxruntme"):
        open_runtime("onnxruntme", small_network(), (16, 16, 3))


def test_a_processor_without_bfloat16_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    monkeypatch.setattr(runtimes, "_is_installed", lambda name: name != "openvino-bf16")
    with pytest.warns(UserWarning, match="does not compute in bfloat16"):
        open_runtime("openvino-bf16", small_network(), (16, 16, 3))


def test_loading_a_pretrained_network_leaves_the_random_numbers_alone() -> None:
    name = "efficientnet-lite0"
    if not pretrained.is_installed(name):
        pytest.skip(f"{name} is not installed")
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    pretrained.load_pretrained(name)
    assert torch.equal(torch.rand(2), expected)


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("efficientnet"):
            raise ImportError(name)
        return real(name, *rest)

    for module in [module for module in sys.modules if module.startswith("efficientnet")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match="needs the extra `label`"):
        pretrained.load_pretrained("efficientnet-lite2")

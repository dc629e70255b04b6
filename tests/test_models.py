"""Models: made from their seed alone, growable in any order, and wrapped around what people have."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from accuacl.base.errors import InputError
from accuacl.experiments.data import InputRows
from accuacl.experiments.learners import Transform
from accuacl.experiments.models import NAMES, Frozen, build, nets, predict, wrap

IMAGES = torch.randint(0, 256, (5, 32, 32, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
PLAIN = Transform((0.5,), (0.25,))


FLAT = ("mlp", "projection", "linear", "pretrained")  # nets that take vectors


def made(name, classes=4, seed=0, width=None):
    shape = (6,) if name in FLAT else (3, 32, 32)
    return build(name, classes, seed=seed, input_shape=shape, width=width or (8 if "resnet" in name else None))


def given(name, n=5):
    return torch.linspace(-1, 1, n * 6).reshape(n, 6) if name in FLAT else IMAGES[:n]


def same(a, b):
    assert a.state_dict().keys() == b.state_dict().keys()
    return all(torch.equal(value, b.state_dict()[key]) for key, value in a.state_dict().items())


def test_resnet18_has_the_published_number_of_parameters():
    model = build("resnet18", 1000, seed=0, input_shape=(3, 224, 224))
    assert sum(parameter.numel() for parameter in model.parameters()) == 11_689_512


@pytest.mark.parametrize(
    ("name", "d", "before_pooling"),
    [("resnet18", 64, 1), ("resnet18-3x3", 64, 4), ("resnet18-3x3-pool", 64, 2), ("conv4", 192, 2), ("conv3", 64, 4)],
)
def test_stems_and_widths(name, d, before_pooling):
    model = made(name).eval()
    assert model.head.in_features == d
    x = PLAIN.plain(IMAGES)
    assert model.embed[:-2](x).shape == (5, d, before_pooling, before_pooling)
    h, z = model.both(x)
    assert h.shape == (5, d)
    assert torch.equal(z, model(x))


@pytest.mark.parametrize("name", NAMES)
def test_weights_depend_on_the_seed_alone_and_leave_the_global_generator_alone(name):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = made(name)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert same(first, made(name))
    assert not same(first, made(name, seed=1))


@pytest.mark.parametrize("name", ["mlp", "conv3"])
def test_the_order_of_growth_does_not_matter(name):
    whole = made(name, 9, seed=3)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    steps = made(name, 2, seed=3)
    for classes in (5, 3, 9, 1):
        steps.grow(classes, seed=3)
    assert same(whole, steps)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.no_grad():
        steps.head.weight += 1
    kept = steps.head.weight.clone()
    steps.grow(11, seed=3)
    assert torch.equal(steps.head.weight[:9], kept)
    assert steps.head.weight.requires_grad


def test_a_model_loaded_from_its_weights_computes_the_same_bits():
    model = made("resnet18-3x3-pool")
    copy = made("resnet18-3x3-pool", seed=9)
    copy.load_state_dict({key: value.contiguous().clone() for key, value in model.state_dict().items()})
    x = PLAIN.plain(IMAGES)
    assert torch.equal(model.eval()(x), copy.eval()(x))


@pytest.mark.parametrize("name", NAMES)
def test_predict_over_seen_classes_and_in_batches_of_one(name):
    model = made(name, 6).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    transform = Transform() if name in FLAT else PLAIN
    h, p = predict(model, given(name), transform, np.array([4, 0, 5]))
    assert h.dtype == p.dtype == np.float32
    with torch.no_grad():
        wanted_h, z = model.eval().both(transform.plain(given(name)))
    np.testing.assert_allclose(h, wanted_h.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(p, z[:, [4, 0, 5]].softmax(1).numpy(), rtol=1e-4, atol=1e-5)
    model.train()
    for batch in (1, 2):
        one_h, one_p = predict(model, given(name), transform, torch.tensor([4, 0, 5]), batch=batch)
        np.testing.assert_allclose(one_h, h, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(one_p, p, rtol=1e-4, atol=1e-5)
    assert model.training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert predict(model, given(name)[:0], transform, [1])[1].shape == (0, 1)


@pytest.mark.parametrize("name", ["mlp", "conv3"])
def test_predict_reads_a_batch_at_a_time_and_computes_the_same_bits(name):
    class Watched(InputRows):
        def __getitem__(self, part):
            reads.append(len(super().__getitem__(part)))
            return super().__getitem__(part)

    reads, ids, model = [], np.array([4, 0, 3, 3, 1, 2, 0, 4, 1, 2]), made(name)
    transform = Transform() if name == "mlp" else PLAIN
    whole = predict(model, given(name)[ids], transform, [0, 2], batch=4)
    parts = predict(model, Watched(given(name).numpy(), ids), transform, [0, 2], batch=4)
    assert reads == [4, 4, 2]
    assert [a.tobytes() for a in whole] == [a.tobytes() for a in parts]


class Torchvision(nn.Module):
    """Like vgg: features, then a classifier of several layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(16, 7), nn.ReLU(), nn.Dropout(), nn.Linear(7, 5))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Timm(nn.Module):
    """Blocks with linear layers, then a head; the pooling can be in front of it."""

    def __init__(self):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, 8, 16, 16)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        tokens = self.patch_embed(x).flatten(2).transpose(1, 2)
        tokens = tokens + self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return self.head(self.norm(tokens + self.mlp(tokens)).mean(1))


class HuggingFace(nn.Module):
    """Answers with an object; the head's last layer is inside a module of its own."""

    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 6), nn.Tanh())
        self.classifier = nn.ModuleDict({"dense": nn.Linear(6, 4), "out_proj": nn.Linear(4, 5, bias=False)})

    def forward(self, pixel_values):
        x = torch.tanh(self.classifier["dense"](self.base(pixel_values)))
        return SimpleNamespace(loss=None, logits=self.classifier["out_proj"](x))


@pytest.mark.parametrize(("kind", "d"), [(Torchvision, 7), (Timm, 8), (HuggingFace, 4)])
@pytest.mark.parametrize("with_example", [False, True])
def test_wrap_finds_the_last_linear_layer(kind, d, with_example):
    module, x = kind().eval(), PLAIN.plain(IMAGES)
    answer = module(x)
    answer = getattr(answer, "logits", answer)
    model = wrap(module, example=x if with_example else None)
    assert model.head.in_features == d
    h, z = model.both(x)
    assert h.shape == (5, d)
    torch.testing.assert_close(z, answer)
    bias = model.head.bias
    model.grow(8, seed=0)
    torch.testing.assert_close(model(x)[:, :5], answer)
    assert (model.head.bias is None) == (bias is None)
    assert getattr(module(x), "logits", module(x)).shape == (5, 5)  # the user's own is left as it was


class Turned(nn.Module):
    """Registers its layers in another order than it calls them."""

    def __init__(self, last=None):
        super().__init__()
        self.fc, self.body, self.last = nn.Linear(6, 3), nn.Linear(6, 6), last

    def forward(self, x):
        z = self.fc(self.body(x))
        return self.last(z) if self.last else z


def test_wrap_with_an_example_or_with_a_sentence():
    x = torch.ones(2, 6)
    with pytest.raises(InputError, match="give wrap an example input"):
        wrap(Turned())(x)
    assert wrap(Turned(), example=x).head.out_features == 3
    with pytest.raises(InputError, match="without a softmax"):
        wrap(Turned(nn.Softmax(1)), example=x)
    with pytest.raises(InputError, match=r"has no nn\.Linear; give"):
        wrap(nn.Conv2d(3, 3, 3))
    assert isinstance(wrap(nn.Linear(6, 2)).embed, nn.Identity)


def test_frozen_backbone():
    backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    calls = []
    h = Frozen(backbone, PLAIN.plain).embed_all(IMAGES, batch=2, progress=lambda p: calls.append((p.done, p.total)))
    assert calls == [(2, 5), (4, 5), (5, 5)]
    torch.testing.assert_close(h, backbone.eval()(PLAIN.plain(IMAGES)).mean((2, 3)).detach())
    assert h.dtype == torch.float32
    assert not h.is_inference()
    head = build("linear", 2, seed=0, input_shape=(4,))
    head(h).sum().backward()
    assert torch.equal(Frozen(lambda x: (x.float().flatten(1),)).embed_all(IMAGES), IMAGES.float().flatten(1))
    with pytest.raises(InputError, match="expected one row each"):
        Frozen(lambda x: x.float()[..., 0]).embed_all(IMAGES)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: build("vgg", 2, seed=0, input_shape=(3, 32, 32)), "there is no net 'vgg'; the nets are resnet18,"),
        (lambda: build("mlp", 2, seed=0, input_shape=(3, 32, 32)), "give the length of a vector"),
        (lambda: build("conv4", 2, seed=0, input_shape=(64,)), "the data are vectors of 64 numbers; use --model mlp"),
        (lambda: build("conv4", 2, seed=0, input_shape=(64, 64)), "give an image's"),
        (lambda: build("conv4", 2, seed=0, input_shape=(1, 8, 8)), "images of at least 16 pixels"),
    ],
)
def test_wrong_input_is_named_in_one_sentence(call, says):
    with pytest.raises(InputError, match=says) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_a_net_that_does_not_fit_into_memory(monkeypatch):
    def too_large(shape, width):
        raise RuntimeError("can't allocate memory")

    monkeypatch.setitem(nets.NETS, "mlp", (too_large, 5))
    with pytest.raises(InputError, match="mlp of width 7 does not fit into memory"):
        build("mlp", 2, seed=0, input_shape=(3,), width=7)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pixels", [1, 2])
def test_a_convolution_of_single_pixels_has_the_same_values_and_gradients(pixels, stride):
    ours, _ = nets._conv(16, 24, 3, stride)
    theirs = nn.Conv2d(16, 24, 3, stride, 1, bias=False)
    theirs.load_state_dict(ours.state_dict())
    outputs = []
    for layer in (ours, theirs):
        layer.to(memory_format=torch.channels_last)
        images = torch.randn(7, 16, pixels, pixels, generator=torch.Generator().manual_seed(0)).requires_grad_()
        out = layer(images)
        out.square().sum().backward()
        assert layer.weight.grad.stride() == layer.weight.stride()
        outputs.append((out.detach(), images.grad, layer.weight.grad))
    for mine, reference in zip(*outputs, strict=True):
        torch.testing.assert_close(mine, reference)

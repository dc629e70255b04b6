"""From a torch model to `Features`: any loader, any net that ends in a linear layer, and nothing left behind."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from accuacl import Selection, select
from accuacl.base.errors import InputError
from accuacl.experiments.models import wrap
from accuacl.torch import features


class Net(nn.Module):
    """Registers its layers in another order than it calls them; BatchNorm and dropout show the mode."""

    def __init__(self, last=None):
        super().__init__()
        self.head, self.body, self.last = nn.Linear(6, 4), nn.Linear(5, 6), last
        self.norm, self.drop = nn.BatchNorm1d(6), nn.Dropout(0.5)

    def embed(self, x):
        return self.drop(self.norm(self.body(x)))

    def forward(self, x):
        z = self.head(self.embed(x))
        return self.last(z) if self.last else z


class Distilled(nn.Module):
    """Two heads whose mean is the output, as in deit and levit."""

    def __init__(self):
        super().__init__()
        self.head, self.head_dist = nn.Linear(5, 4), nn.Linear(5, 4)

    def forward(self, x):
        return (self.head(x) + self.head_dist(x)) / 2


class HuggingFace(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.classifier = nn.Embedding(9, 5), nn.Linear(5, 4)

    def forward(self, input_ids, attention_mask=None):
        mask = attention_mask.unsqueeze(2).float()
        pooled = (self.embedding(input_ids) * mask).sum(1) / mask.sum(1)
        return SimpleNamespace(loss=None, logits=self.classifier(pooled))


X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
Y = torch.arange(7)


@pytest.mark.parametrize(
    "loader",
    [
        X.split(3),
        DataLoader(TensorDataset(X), batch_size=3),
        DataLoader(TensorDataset(X, Y), batch_size=3),
        [[X[:2], Y[:2]], (X[2:], Y[2:], "more")],
        ({"x": part, "labels": Y} for part in X.split(2)),
    ],
    ids=["tensors", "tuples", "labels", "lists", "dictionaries"],
)
def test_every_kind_of_loader(loader):
    net = Net()
    net.norm.running_mean.fill_(0.25)
    net.body.eval()  # a part that the user froze
    before = {name: value.clone() for name, value in net.state_dict().items()}
    modes = [module.training for module in net.modules()]
    made = features(net, loader, classes=[2, 0])
    assert [module.training for module in net.modules()] == modes
    assert not any(module._forward_hooks for module in net.modules())
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])
    with torch.no_grad():
        h = net.eval().embed(X)
        p = net.head(h)[:, [2, 0]].softmax(1)
    np.testing.assert_allclose(made.embeddings, h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made.probabilities, p, rtol=1e-5, atol=1e-6)


def test_batches_may_be_empty():
    """Before the first label nothing is labelled."""
    net = Net()
    none, some, all = (features(net, given, classes=[0, 1]) for given in ([X[:0]], [X[:0], X, X[:0]], [X]))
    assert (none.embeddings.shape, none.probabilities.shape) == ((0, all.embeddings.shape[1]), (0, 2))
    np.testing.assert_array_equal(some.embeddings, all.embeddings)
    np.testing.assert_array_equal(some.probabilities, all.probabilities)


def test_hugging_face_with_a_mask():
    net, ids = HuggingFace(), torch.arange(8).reshape(2, 4)
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    batch = {"input_ids": ids, "attention_mask": mask, "labels": torch.zeros(2)}
    made = features(net, [batch], classes=range(4))
    np.testing.assert_allclose(made.embeddings[0], net.embedding(ids[0, :2]).mean(0).detach(), rtol=1e-5, atol=1e-6)
    net.register_forward_hook(lambda net, given, output: vars(output))  # a dictionary, as others return
    np.testing.assert_array_equal(features(net, [batch], classes=range(4)).embeddings, made.embeddings)


def test_two_heads_need_the_name_of_one():
    net = Distilled()
    says = "returns something else than the output of a linear layer.*: layer='head' or layer='head_dist'\\.$"
    with pytest.raises(InputError, match=says):
        features(net, [X], classes=range(4))
    made = features(net, [X], classes=range(4), layer="head_dist")
    np.testing.assert_allclose(made.probabilities, net.head_dist(X).softmax(1).detach(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(made.embeddings, X)


class Returns(nn.Module):
    """A hidden layer as wide as the head, and any return value made of what both give."""

    def __init__(self, make):
        super().__init__()
        self.hidden, self.head, self.other = nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.make = make

    def forward(self, x):
        a = self.hidden(x)
        return self.make(a, self.head(a.relu()), self.other(a.relu()))


SEEN = torch.tensor([True, True, False, False])


@pytest.mark.parametrize(
    ("make", "layer", "factor"),
    [
        (lambda a, z, o: z, "head", 1),
        (lambda a, z, o: z / 8, "head", 1 / 8),
        (lambda a, z, o: z.mul_(30), "head", 30),
        (lambda a, z, o: (z, a), "head", 1),
        (lambda a, z, o: (o, {"fine": z * 3}), "head", 3),
        (lambda a, z, o: (z, o), "other", 1),
        (lambda a, z, o: SimpleNamespace(loss=None, logits=o, more=[z]), "head", 1),
        (lambda a, z, o: z.masked_fill(~SEEN, -torch.inf), "head", 1),
        (lambda a, z, o: (z * 2).masked_fill(~SEEN, -1e9), "head", 2),
        (lambda a, z, o: (a + z) / 2, "head", 1),
        (lambda a, z, o: (a + z) / 2, "hidden", 1),
    ],
)
@pytest.mark.parametrize("half", [False, True])
def test_a_named_layer_whose_output_the_model_returns(make, layer, factor, half):
    net = Returns(make)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        made = features(net, [X[:0], X[:3], X[3:]], classes=[1, 0], layer=layer)
        with torch.no_grad():
            a = net.hidden(X)
            h = X if layer == "hidden" else a.relu()
            p = (getattr(net, layer)(h)[:, [1, 0]].float() * factor).softmax(1)
    np.testing.assert_allclose(made.embeddings, h.float(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made.probabilities, p, rtol=1e-5, atol=0.02 if half and factor != 1 else 1e-6)


@pytest.mark.parametrize(
    ("make", "layer", "says"),
    [
        (lambda a, z, o: z, "hidden", "'hidden' gives (7, 4), and the model returns other numbers of that shape; name"),
        (lambda a, z, o: z, "other", "'other' gives (7, 3), and the model returns (7, 4); name the linear layer whose"),
        (lambda a, z, o: z, "other", "such as layer='head', or leave the layer out"),
        (lambda a, z, o: -z, "head", "the model returns other numbers"),
        (lambda a, z, o: z * 0, "hidden", "the model returns other numbers"),
        (lambda a, z, o: z + a, "hidden", "the model returns other numbers"),
        (lambda a, z, o: z * torch.tensor([1.0, 2.0, 1.0, 1.0]), "head", "the model returns other numbers"),
        (lambda a, z, o: z.relu_(), "head", "the model returns other numbers"),
        (lambda a, z, o: z.relu_(), "", "returns something else than the output of a linear layer"),
        (lambda a, z, o: z.softmax(1), "head", "returns probabilities: it ends in a softmax"),
        (lambda a, z, o: z.log_softmax(1), "head", "it ends in a log_softmax"),
    ],
)
def test_a_layer_whose_output_the_model_does_not_return_is_refused(make, layer, says):
    torch.manual_seed(0)
    net = Returns(make)
    with pytest.raises(InputError) as refused:
        features(net, [X], classes=[0, 1], layer=layer)
    assert says in str(refused.value)
    assert str(refused.value).endswith(".")


class Own(nn.Module):
    """Its own code fails, before or after its layer."""

    def __init__(self, error):
        super().__init__()
        self.head, self.error = nn.Linear(5, 4), error

    def forward(self, x):
        z = self.head(x)
        if self.error:
            raise self.error
        return z


@pytest.mark.parametrize(
    ("net", "batch", "says"),
    [
        (Net(), X.double(), "gave float64 of shape (7, 5), with which the model's layer 'body', Linear(in_features=5"),
        (Net(), X.double(), "whose weights are float32, was given float64 of shape (7, 5) and failed; give inputs of"),
        (Net(), X.to(torch.uint8), "the loader gave uint8 of shape (7, 5)"),
        (Net(), X.long(), "the loader gave int64 of shape (7, 5)"),
        (Net(), X[:, :3], "the loader gave float32 of shape (7, 3), with which the model's layer 'body'"),
        (nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten(), nn.Linear(8, 2)), X[None], "layer '0', Conv2d(3, 2"),
        (nn.Sequential(nn.Embedding(4, 3), nn.Flatten(), nn.Linear(6, 2)), torch.tensor([[9, 0]]), "'0', Embedding(4"),
        (nn.Linear(5, 2), X[:, :3], "the model's layer '', Linear(in_features=5"),
        (Net(), {"images": X}, "the loader gave a dictionary of images, and the model's forward takes x; give it"),
        (Net(), {"labels": Y}, "the loader gave a dictionary without inputs, and the model's forward takes x;"),
        (HuggingFace(), {"ids": X, "attention_mask": X}, "forward takes input_ids, attention_mask;"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_input_that_the_model_cannot_take(net, batch, says, named):
    layer = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)][-1] if named else ""
    with pytest.raises(InputError) as refused:
        features(net, [batch], classes=[0, 1], layer=layer)
    assert says in str(refused.value)
    assert isinstance(refused.value.__cause__, RuntimeError | TypeError | IndexError)  # torch's own words
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in net.modules())


@pytest.mark.parametrize("error", [RuntimeError("mine"), TypeError("mine"), torch.OutOfMemoryError("mine")])
def test_the_models_own_errors_are_its_own(error):
    with pytest.raises(type(error), match="mine"):
        features(Own(error), [X], classes=[0, 1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_models_of_other_precisions(dtype):
    net = Net().eval()
    exact = features(net, [X], classes=range(4))
    other = features(net.to(dtype), [X if dtype != torch.float64 else X.double()], classes=range(4))
    np.testing.assert_allclose(other.probabilities, exact.probabilities, atol=0.03)
    assert other.probabilities.dtype == np.float32


def test_mixed_precision_and_progress():
    net, told = Net().eval(), []
    with torch.autocast("cpu", torch.bfloat16):
        made = features(net, list(X.split(3)), classes=range(4), progress=told.append)
    np.testing.assert_allclose(made.probabilities.sum(1), 1, atol=1e-6)
    assert [(step.done, step.total) for step in told] == [(1, 3), (2, 3), (3, 3)]


def test_three_lines_from_a_model_to_picks():
    pool = features(Net(), X.split(2), classes=range(4))
    picked = select("margin", pool=pool, budget=3)
    assert repr(picked).splitlines()[0] == "Selection of 3 rows, best first:"


SOFTMAX, LOG_SOFTMAX = Net(nn.Softmax(1)), Net(nn.LogSoftmax(1))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: features(SOFTMAX, [X], classes=[0]), "Net returns probabilities: it ends in a softmax; give"),
        (lambda: features(LOG_SOFTMAX, [X], classes=[0]), "it ends in a log_softmax; give"),
        (lambda: wrap(nn.Sequential(nn.Linear(5, 6), nn.LogSoftmax(1)))(X), "as a softmax after it does; give"),
        (lambda: wrap(nn.Sequential(nn.Linear(5, 6), nn.Softmax(1)))(X), "as a softmax after it does; give"),
        (lambda: features(Net(), [], classes=[0]), "the loader gave no batch"),
        (lambda: features(Net(), [()], classes=[0]), "the loader gave an empty tuple"),
        (lambda: features(Net(), ["text"], classes=[0]), "the loader gave a str; give tensors"),
        (lambda: features(Net(), [X], classes=[]), "classes are []; give the outputs"),
        (lambda: features(Net(), [X], classes=[0.5]), "give the outputs of the classes seen"),
        (lambda: features(Net(), [X], classes=[True]), "give the outputs of the classes seen"),
        (lambda: features(Net(), [X], classes=4), "classes are 4; give the outputs"),
        (lambda: features(Net(), [X], classes=None), "classes are None; give the outputs"),
        (lambda: features(Net(), [X], classes=["rose"]), "classes are ['rose']; give the outputs"),
        (lambda: features(Net(), [X * np.nan], classes=[0]), "embeddings: row 0"),
        (lambda: features(Net(), X, classes=[0]), "give batches, such as x.split(256)"),
        (lambda: features(Net(), TensorDataset(X), classes=[0]), "give DataLoader(dataset, batch_size=256)"),
        (lambda: features(Net(), None, classes=[0]), "the loader is a NoneType, which gives no batches; give a Data"),
        (lambda: features(Net(), 3, classes=[0]), "the loader is an int, which gives no batches"),
        (lambda: features(Net(), X.numpy(), classes=[0]), "torch.from_numpy(x).split(256)"),
        (lambda: features(Net(), [X], classes=[2**70]), "give the outputs of the classes seen"),
        (lambda: features(Net(), [X], classes=[0], layer=2), "layer is 2; give the layer's name as text"),
        (lambda: features(np.tanh, [X], classes=[0]), "the model is a ufunc; give a torch.nn.Module"),
        (lambda: features(Net(), [X], classes=[1, 1]), "classes has an entry twice"),
        (lambda: features(Net(), [X], classes=[4]), "classes contains 4, but the model's outputs are numbered 0 to 3"),
        (lambda: features(Net(), [X], classes=[-1, 2]), "classes contains -1, but the model's outputs are numbered"),
        (lambda: features(Net(), [X], classes=[0], layer="tail"), "the model has no layer 'tail'"),
        (lambda: features(Net(), [X], classes=[0], layer="norm"), "is a BatchNorm1d; name an nn.Linear"),
        (lambda: features(nn.Flatten(), [X], classes=[0]), "has no nn.Linear"),
        (lambda: features(nn.Linear(5, 2), [X[None]], classes=[0]), "give a model that pools"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_hook(call, says):
    with pytest.raises(InputError) as refused:
        call()
    assert says in str(refused.value)
    assert not any(module._forward_hooks for net in (SOFTMAX, LOG_SOFTMAX) for module in net.modules())


def test_a_selection_can_be_read():
    picked = Selection(np.arange(12), {"gain": np.linspace(1, 0, 12), "draw<": np.zeros(12)})
    lines = repr(picked).splitlines()
    assert lines[:3] == ["Selection of 12 rows, best first:", "  row    gain  draw<", "    0       1      0"]
    assert lines[-1] == "... and 2 more"
    assert repr(Selection(np.arange(0), {})) == "Selection of 0 rows, best first:\n  row"


def test_a_selection_as_a_frame():
    pytest.importorskip("pandas", reason="the extra `frames` is not installed")  # scikit-learn would load it each time
    frame = Selection(np.array([3, 1]), {"gain": np.array([0.5, 0.25])}).to_frame()
    assert type(frame).__name__ == "DataFrame"
    assert list(frame.columns) == ["row", "gain"]
    assert frame["row"].tolist() == [3, 1]
    assert frame.query("gain > 0.3")["row"].tolist() == [3]
    assert Selection(np.arange(0), {}).to_frame().shape == (0, 1)


def test_without_pandas_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"to_frame needs pandas, the extra `frames`; install it: .*accuacl\[frames\]"):
        Selection(np.array([3, 1]), {}).to_frame()


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(TensorDataset(X), batch_size=3, shuffle=True),
        DataLoader(TensorDataset(X), sampler=torch.utils.data.SubsetRandomSampler(range(4)), batch_size=2),
        DataLoader(TensorDataset(X), sampler=torch.utils.data.WeightedRandomSampler([1.0] * 5, 5), batch_size=2),
        DataLoader(
            TensorDataset(X),
            batch_sampler=torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(X), 2, drop_last=False),
        ),
        DataLoader(TensorDataset(X), sampler=torch.utils.data.DistributedSampler(X, 1, 0, shuffle=True), batch_size=2),
    ],
)
def test_a_loader_that_shuffles_is_refused(loader):
    with pytest.raises(InputError, match=r"the loader shuffles \(\w+Sampler\), so that row 0 would not be example 0"):
        features(Net(), loader, classes=[0, 1])


def test_a_loader_that_takes_a_subset_in_order_is_not_refused():
    net, ordered = Net(), torch.utils.data.DistributedSampler(X, 1, 0, shuffle=False)
    rows = features(net, DataLoader(TensorDataset(X), sampler=ordered, batch_size=len(X)), classes=[0, 1])
    np.testing.assert_array_equal(rows.embeddings, features(net, [X], classes=[0, 1]).embeddings)

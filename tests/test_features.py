"""Features: takes what people have, copies nothing it need not, refuses what cannot be right."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
import torch

from accuacl import Features, select
from accuacl.features import RowError

H = np.arange(12, dtype=np.float32).reshape(4, 3)
P = np.array([[0.5, 0.5], [0.25, 0.75], [1, 0], [0, 1]], np.float32)


def test_nothing_is_copied_of_numpy_memmap_and_torch(tmp_path):
    assert np.shares_memory(Features(H, P).embeddings, H)
    assert np.shares_memory(Features(H, P).probabilities, P)
    tensor = torch.from_numpy(H.copy())
    assert np.shares_memory(Features(tensor, P).embeddings, tensor.numpy())
    np.save(tmp_path / "h.npy", H)
    mapped = np.load(tmp_path / "h.npy", mmap_mode="r")
    assert np.shares_memory(Features(mapped, P).embeddings, mapped)
    assert np.shares_memory(Features(H, P).rows(slice(1, 3)).embeddings, H)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", ">f4", ">f8", "longdouble"])
def test_numpy_float_types(kind):
    assert len(Features(H.astype(kind), P.astype(kind))) == 4


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn])
def test_torch_float_types_with_gradients(kind):
    h = torch.from_numpy(H).to(kind).requires_grad_()
    f = Features(h, torch.from_numpy(P).to(kind))
    assert (len(f), f.d, f.K) == (4, 3, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("K", [2, 10, 1000])
def test_a_softmax_in_any_type_is_accepted(dtype, K):
    logits = np.random.default_rng(0).normal(size=(200, K)) * 5
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = (e / e.sum(axis=1, keepdims=True)).astype(dtype)
    made = Features(np.ones((200, 1)), p)
    assert (len(made), made.K) == (200, K)
    np.testing.assert_array_equal(made.probabilities, p)


def test_layouts_do_not_matter():
    rng = np.random.default_rng(1)
    h, p = rng.normal(size=(50, 6)), rng.dirichlet(np.ones(4), 50)
    plain = select("accuacl", pool=Features(h, p), budget=7).indices
    wide = np.zeros((100, 12))
    wide[::2, ::-2] = h
    for other in (np.asfortranarray(h), wide[::2, ::-2], h[::-1].copy()[::-1]):
        np.testing.assert_array_equal(select("accuacl", pool=Features(other, p), budget=7).indices, plain)


def row(array, i, j, value):
    array = array.copy()
    array[i, j] = value
    return array


@pytest.mark.parametrize(
    ("h", "p", "says"),
    [
        (row(H, 2, 1, np.nan), P, "embeddings: row 2, column 1 is nan"),
        (row(H, 3, 0, np.inf), P, "embeddings: row 3, column 0 is inf"),
        (H, row(P, 1, 0, np.nan), "probabilities: row 1, column 0 is nan; the model's weights or its inputs"),
        (H, row(P, 1, 0, -0.25), "probabilities: row 1, column 0 is -0.25, not in"),
        (H, row(P, 0, 0, 1.5), "probabilities: row 0, column 0 is 1.5, not in"),
        (H, row(P, 1, 0, 0.75), "probabilities: row 1 sums to 1.5, not to 1"),
        (H, P[:3], "embeddings have 4 rows and probabilities 3"),
        (H[0], P, r"embeddings have shape \(3,\)"),
        (H, P[:, :, None], r"probabilities have shape \(4, 2, 1\)"),
        (H.astype(int), P, "embeddings hold int64, not floats"),
        (H, P.astype(complex), "probabilities hold complex128, not floats"),
        (np.array([["a"]]), P, "embeddings hold <U1, not floats"),
        (None, P, "embeddings are a NoneType; give a dense"),
        ([[1.0, 2.0], [3.0]], P, "embeddings are a list; give a dense"),
        (torch.from_numpy(H).to_sparse(), P, "embeddings are a Tensor torch.float32; give a dense"),
        (torch.from_numpy(H).to("meta"), P, "embeddings are a Tensor torch.float32; give a dense"),
        (torch.from_numpy(H).to(torch.complex64).conj(), P, "embeddings hold complex64, not floats"),
        (np.ma.MaskedArray(H, H > 3), P, "embeddings are a MaskedArray float32; give a dense"),
        (np.array([[object()]]), P, "embeddings are a ndarray object; give a dense"),
        (np.float32(3), P, r"embeddings have shape \(\)"),
        (H[:, :0], P, "got d=0"),
        (H, P[:, :0], "K=0"),
        (H.astype(np.float64) * 1e200, P, "embeddings reach 1.1e.201"),
    ],
)
def test_bad_input_is_named_in_one_sentence(h, p, says):
    with pytest.raises(ValueError, match=says) as raised:
        Features(h, p)
    assert "\n" not in str(raised.value)


def test_a_bad_row_far_down_is_found():
    h = np.zeros((300_000, 4), np.float32)
    h[277_777, 3] = np.nan
    with pytest.raises(ValueError, match="row 277777, column 3"):
        Features(h, np.full((300_000, 1), 1.0, np.float32))


def test_which_row_is_bad_is_a_field():
    h = np.zeros((300_000, 4), np.float32)
    h[277_777, 3] = np.nan
    with pytest.raises(RowError) as raised:
        Features(h, np.full((300_000, 1), 1.0, np.float32))
    assert (raised.value.what, raised.value.row, raised.value.column) == ("embeddings", 277_777, 3)
    assert raised.value.at("row 5 of a.parquet").startswith("row 5 of a.parquet: embeddings: column 3 is nan; all must")
    assert str(copy.copy(raised.value)) == str(raised.value)  # as it is when another process sends it
    with pytest.raises(RowError) as raised:
        Features(H, row(P, 1, 0, 0.75))
    assert (raised.value.what, raised.value.row, raised.value.column) == ("probabilities", 1, None)


def test_importing_the_package_is_enough_to_look_a_strategy_up():
    code = "import accuacl\nassert 'k-means++' in accuacl.strategies.REGISTRY['badge'].__doc__"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_sets_are_joined_in_order():
    some, other = Features(H, P), Features(H[::-1].copy(), P[::-1].copy())
    both = Features.concat([some, other, some.rows(slice(0, 0))])
    np.testing.assert_array_equal(both.embeddings, np.concatenate([H, H[::-1]]))
    np.testing.assert_array_equal(both.probabilities, np.concatenate([P, P[::-1]]))
    assert Features.concat([some]) is some

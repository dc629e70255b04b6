"""Augmentation: every crop is one that could have been cut by hand, each image on its own, none stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accuacl.base.errors import InputError
from accuacl.experiments.learners import Transform

IMAGES = torch.from_numpy(np.random.default_rng(0).integers(1, 256, (200, 6, 5, 3), dtype=np.uint8))


def drawn(transform, seed=0, x=IMAGES):
    return transform.augmented(x, torch.Generator().manual_seed(seed))


def test_plain_is_normalised_and_channels_last():
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    x = Transform(mean, std).plain(IMAGES)
    wanted = (IMAGES.numpy() / 255 - mean) / std
    np.testing.assert_allclose(x.numpy(), wanted.transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-5)
    assert x.dtype == torch.float32
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert drawn(Transform(mean, std, crop=2, flip=True)).is_contiguous(memory_format=torch.channels_last)


def by_hand(image, top, left, mirrored, pad):
    padded = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
    cut = padded[top : top + image.shape[0], left : left + image.shape[1]]
    return (cut[:, ::-1] if mirrored else cut).transpose(2, 0, 1)


@pytest.mark.parametrize(("crop", "flip"), [(0, True), (2, False), (2, True)])
def test_each_image_is_one_of_its_crops_and_all_crops_occur(crop, flip):
    before = IMAGES.clone()
    out = (drawn(Transform(crop=crop, flip=flip)) * 255).round().numpy()
    found = set()
    for image, given in zip(IMAGES.numpy(), out, strict=True):
        fits = [
            (top, left, mirrored)
            for top in range(2 * crop + 1)
            for left in range(2 * crop + 1)
            for mirrored in ([False, True] if flip else [False])
            if np.array_equal(by_hand(image, top, left, mirrored, crop), given)
        ]
        assert len(fits) == 1
        found.add(fits[0])
    choices = (2 * crop + 1) ** 2 * (2 if flip else 1)
    assert len(found) > 0.9 * choices
    assert torch.equal(IMAGES, before)


def test_the_generator_alone_decides():
    transform = Transform(crop=2, flip=True)
    torch.manual_seed(0)
    first = drawn(transform)
    torch.manual_seed(1)
    assert torch.equal(first, drawn(transform))
    assert not torch.equal(first, drawn(transform, seed=1))
    assert drawn(transform, x=IMAGES[:0]).shape == (0, 3, 6, 5)
    assert drawn(transform, x=IMAGES[:1]).shape == (1, 3, 6, 5)


def test_vectors_pass_through_or_are_normalised():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(drawn(Transform(crop=2, flip=True), x=x), x)
    torch.testing.assert_close(Transform((1.0,), (2.0,)).plain(x), (x - 1) / 2)
    torch.testing.assert_close(Transform((0.0, 1.0, 2.0), (1.0, 2.0, 4.0)).plain(x)[0], torch.zeros(3))


@pytest.mark.parametrize("x", [IMAGES.float(), IMAGES[0], torch.zeros(3, 4, dtype=torch.uint8)])
def test_other_inputs_are_named(x):
    with pytest.raises(InputError, match="give images as uint8"):
        Transform().plain(x)

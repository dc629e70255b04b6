"""Images as people have them: turned cameras, printers' colours, 16 bits, palettes, animations, halves of files."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from accuacl.experiments.data import BadImage, decode


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def picture(width=48, height=32):
    """Red grows to the right, green downwards; blue marks the upper left corner."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[..., 0] = np.linspace(0, 255, width)
    pixels[..., 1] = np.linspace(0, 255, height)[:, None]
    pixels[: height // 4, : width // 4, 2] = 200
    return pixels


TURNED = {  # by EXIF's number: how the stored picture must be turned to stand upright
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("number", TURNED)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_the_orientation_of_the_camera(number, kind):
    exif = Image.Exif()
    exif[0x0112] = number
    lossless = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(kind, {})
    data = encoded(Image.fromarray(picture()), kind, exif=exif, **lossless)
    upright = TURNED[number](picture())
    pixels = decode(data)
    assert pixels.shape == upright.shape
    assert np.abs(pixels.astype(int) - upright).mean() < (2 if kind == "JPEG" else 1e-9)


def test_a_turned_photograph_is_turned_before_its_centre_is_cut_out():
    exif = Image.Exif()
    exif[0x0112] = 6
    wide = np.zeros((400, 1200, 3), np.uint8)
    wide[:, 1000:] = 255  # upright: the lowest sixth, which the centre square does not have
    pixels = decode(encoded(Image.fromarray(wide), "JPEG", exif=exif), 16)
    assert pixels.shape == (16, 16, 3)
    assert pixels.max() < 10


def test_colours_of_printers():
    colours = np.full((8, 8, 4), (0, 255, 255, 0), np.uint8)  # no cyan, all magenta and yellow, no black: red
    for kind in ("JPEG", "TIFF"):
        pixels = decode(encoded(Image.fromarray(colours, "CMYK"), kind))
        assert np.abs(pixels.astype(int) - (255, 0, 0)).max() <= 3


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_grey_of_sixteen_bits_keeps_its_upper_half(kind):
    values = np.array([[0, 255, 256, 40_000, 65_535]], np.uint16)
    pixels = decode(encoded(Image.fromarray(values), kind))
    np.testing.assert_array_equal(pixels[0], np.array([[0, 0, 1, 156, 255]]).T.repeat(3, axis=1))


def test_colours_of_sixteen_bits_keep_their_upper_half():
    """A PNG file by hand: Pillow cannot write one."""
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"\0" + struct.pack(">6H", 0, 256, 40_000, 65_535, 255, 512)
    header = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    np.testing.assert_array_equal(decode(data), [[[0, 1, 156], [255, 0, 2]]])


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGBA", "P"])
def test_every_way_to_store_a_pixel(mode):
    grey = np.array([[0, 255], [255, 0]], np.uint8)
    image = Image.fromarray(grey).convert("RGB").convert(mode)
    np.testing.assert_array_equal(decode(encoded(image, "PNG")), grey[..., None].repeat(3, axis=2))


def test_a_palette_with_a_transparent_colour(recwarn):
    image = Image.fromarray(np.array([[0, 1]], np.uint8)).convert("P")
    image.putpalette([10, 20, 30, 200, 100, 50])
    np.testing.assert_array_equal(
        decode(encoded(image, "PNG", transparency=b"\0\xff")), [[[10, 20, 30], [200, 100, 50]]]
    )
    assert not recwarn.list


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_picture_of_an_animation(kind):
    first, second = Image.new("RGB", (6, 4), (250, 0, 0)), Image.new("RGB", (6, 4), (0, 0, 250))
    data = encoded(first, kind, save_all=True, append_images=[second])
    assert np.abs(decode(data).astype(int) - (250, 0, 0)).max() <= 5


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("size", [None, 8])
def test_half_a_file_is_refused(kind, share, size):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    data = encoded(Image.fromarray(noise), kind)
    with pytest.raises(BadImage):
        decode(data[: int(share * len(data))], size)


@pytest.mark.parametrize(("width", "height"), [(4000, 3000), (3000, 4000), (1000, 400)])
def test_a_large_photograph_is_reduced_while_it_is_decoded_and_looks_the_same(width, height):
    """Its centre square against all pixels, averaged."""
    image = Image.fromarray(picture(40, 30)).resize((width, height), Image.Resampling.BICUBIC)
    pixels = decode(encoded(image, "JPEG", quality=95), 32)
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    whole = image.crop((left, top, left + side, top + side)).resize((32, 32), Image.Resampling.BICUBIC)
    assert pixels.shape == (32, 32, 3)
    assert np.abs(pixels.astype(int) - np.asarray(whole)).mean() < 2

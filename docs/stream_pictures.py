"""Draws docs/images/streams.png, and streams.dark.png: each kind of stream, made of scikit-learn's digits.

python docs/stream_pictures.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from accuacl.experiments.data import StreamOptions, benchmark_tasks, load, make_stream
from accuacl.experiments.data.corruptions import CORRUPTIONS

OUT = Path(__file__).parent / "images"
DARK = ["dark_background", {"figure.facecolor": "#1e2129", "savefig.facecolor": "#1e2129"}]
STREAMS = {
    "tidy": StreamOptions(),
    "--blur 0.1": StreamOptions(blur=0.1),
    "--imbalance 0.02": StreamOptions(imbalance=0.02),
    "--recurring 1": StreamOptions(recurring=1),
    "--blur 0.1 --imbalance 0.02 --recurring 1": StreamOptions(blur=0.1, imbalance=0.02, recurring=1),
}


def main() -> None:
    for style, name in (("default", "streams.png"), (DARK, "streams.dark.png")):
        with plt.style.context(style):
            draw_all(OUT / name)


def draw_all(out: Path) -> None:
    digits = load("digits")
    groups = benchmark_tasks("split-digits", 10)
    figure, axes = plt.subplots(2, 4, figsize=(13, 6), layout="constrained")
    flat = axes.ravel()
    for place, (title, how) in zip(flat, STREAMS.items(), strict=False):
        draw(place, make_stream(digits, groups, how).pools().T, "task", title)
    pictures = as_images(digits)
    draw(flat[5], make_stream(pictures, None, StreamOptions(domains=4)).pools().T, "task", "--domains 4")
    noisy = make_stream(digits, groups, StreamOptions(label_noise=0.2))
    confusion = np.zeros((10, 10))
    np.add.at(confusion, (digits.train.labels, noisy.answers), 1)
    draw(flat[6], confusion, "answer", "--label-noise 0.2 (class by answer)")
    flat[7].imshow(sheet(pictures), interpolation="nearest")
    flat[7].set_title("the domains of --domains 9", fontsize=9)
    flat[7].set_yticks(np.arange(len(CORRUPTIONS)) * 8 + 4, list(CORRUPTIONS), fontsize=7)
    flat[7].set_xticks([])
    figure.savefig(out, dpi=110)


def draw(axes: plt.Axes, counts: np.ndarray, xlabel: str, title: str) -> None:
    """Examples of each class, with their number."""
    shown = np.where(counts > 0, np.log10(np.maximum(counts, 1)), np.nan)
    axes.imshow(shown, cmap="cividis_r", aspect="auto", vmin=0, vmax=2.2)
    for (row, column), count in np.ndenumerate(counts):
        if count:
            color = "white" if count > 12 else "black"
            axes.text(column, row, f"{count:.0f}", ha="center", va="center", fontsize=6, color=color)
    first = 1 if xlabel == "task" else 0
    axes.set_xticks(range(counts.shape[1]), [str(i + first) for i in range(counts.shape[1])], fontsize=7)
    axes.set_yticks(range(10), [str(c) for c in range(10)], fontsize=7)
    axes.set_xlabel(xlabel, fontsize=8)
    axes.set_ylabel("class", fontsize=8)
    axes.set_title(title, fontsize=9)


def as_images(digits):
    def images(split):
        grey = np.rint(split.inputs.reshape(-1, 8, 8, 1) * 255).astype(np.uint8)
        return replace(split, inputs=np.repeat(grey, 3, axis=3) // np.array([1, 2, 3], np.uint8))  # some colour

    return replace(digits, train=images(digits.train), test=images(digits.test))


def sheet(pictures) -> np.ndarray:
    """A row of images for each look."""
    stream = make_stream(pictures, None, StreamOptions(domains=len(CORRUPTIONS)))
    rows = [np.concatenate(list(stream.dataset.train.inputs[task.train[:12]]), axis=1) for task in stream]
    return np.concatenate(rows)


if __name__ == "__main__":
    main()

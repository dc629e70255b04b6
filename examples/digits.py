"""Which 20 digits should be labelled next? Every strategy's answer, as a table and as a picture.

A model has learned the digits 0-4 and keeps 50 of them; now 5-9 arrive unlabelled. Ten have been labelled at random,
and each strategy picks 20 more. The table says what it picked and what the model then knows of the old and the new.
With a linear model on raw pixels, one round and one seed it shows how strategies choose, not which one is best.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from accuacl import Features, select, strategy_names

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.offsetbox import AnnotationBbox, OffsetImage

COLUMNS = 5  # of the picture
DARK = ["dark_background", {"figure.facecolor": "#1e2129", "savefig.facecolor": "#1e2129"}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=20, help="how many to pick (20)")
    parser.add_argument("--seed", type=int, default=0, help="which digits are where (0)")
    parser.add_argument("--out", type=Path, default=Path("digits.png"), help="where the picture goes")
    parser.add_argument("--dark", action="store_true", help="draw it for dark pages")
    options = parser.parse_args()

    x, y = load_digits(return_X_y=True)
    x = x / 16
    order = np.random.default_rng(options.seed).permutation(len(x))
    test, rest = order[:600], order[600:]
    old, new = rest[y[rest] < 5], rest[y[rest] >= 5]
    memory, labelled, pool = old[:50], new[:10], new[10:]

    def train(rows: np.ndarray) -> LogisticRegression:
        return LogisticRegression(max_iter=1000).fit(x[rows], y[rows])

    model = train(np.concatenate([memory, labelled]))

    def features(rows: np.ndarray) -> Features:
        return Features(x[rows], model.predict_proba(x[rows]))

    table = Table(title=f"{options.budget} of {len(pool)} unlabelled digits 5-9, after 0-4 were learned")
    for column in ("strategy", "5", "6", "7", "8", "9", "old %", "new %", "ms"):
        table.add_column(column, justify="left" if column == "strategy" else "right")
    picks = {}
    for name in strategy_names():
        start = time.perf_counter()
        picked = select(
            name,
            pool=features(pool),
            budget=options.budget,
            labelled=features(labelled),
            memory=features(old if name == "accuacl-full" else memory),
            past=len(old),
            seed=options.seed,
        )
        spent = time.perf_counter() - start
        picks[name] = pool[picked.indices]
        model_after = train(np.concatenate([memory, labelled, picks[name]]))
        right = model_after.predict(x[test]) == y[test]
        known = y[test] < 5
        counts = np.bincount(y[picks[name]], minlength=10)[5:]
        accuracy = [f"{100 * part.mean():.1f}" for part in (right[known], right[~known])]
        table.add_row(name, *map(str, counts), *accuracy, f"{1000 * spent:.1f}")
    Console().print(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with plt.style.context(DARK if options.dark else "default"):
        draw(x, pool, picks, options.out)
    print("Linear model on pixels, one round, one seed: how strategies choose, not which one is best.")
    print(f"picture: {options.out}")


def draw(x: np.ndarray, pool: np.ndarray, picks: dict[str, np.ndarray], out: Path) -> None:
    """The pool in two dimensions, and on it what each strategy picked."""
    plane = PCA(2).fit(x[pool])
    cloud = plane.transform(x[pool])
    rows = math.ceil(len(picks) / COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(3 * COLUMNS, 3 * rows + 0.4), layout="constrained")
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, (name, picked) in zip(axes.flat, picks.items(), strict=False):
        axis.scatter(*cloud.T, s=5, color="#b8c4d0", linewidths=0)
        for row, place in zip(picked, plane.transform(x[picked]), strict=True):
            digit = OffsetImage(x[row].reshape(8, 8), zoom=2.2, cmap="gray_r")
            axis.add_artist(
                AnnotationBbox(digit, place, pad=0.08, bboxprops={"edgecolor": "#0072b2", "linewidth": 0.8})
            )
        axis.set_title(name, fontsize=12, weight="bold" if name == "accuacl" else "normal")
    figure.suptitle("What each strategy would have labelled (digits 5-9, first two principal components)", fontsize=14)
    figure.savefig(out, dpi=80)


if __name__ == "__main__":
    main()

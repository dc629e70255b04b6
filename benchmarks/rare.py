"""How soon are the examples of rare classes found, and how well are these classes recognised then?

    python benchmarks/stream_data.py --data-dir DATA --out runs/stream-data --only nslkdd fraud clinc150
    python benchmarks/rare.py run --data-dir runs/stream-data --csv docs/results/streams/rare.csv
    python benchmarks/rare.py table --csv docs/results/streams/rare.csv
    python benchmarks/rare.py table --baseline direct    # with p-values of the differences from another strategy

One pool with all classes, frozen features, a ridge head on all labels so far: the first round is drawn at random, then
a strategy picks, 100 labels per round, until 90 % of the rare examples have a label, at most 60 rounds (CLINC150's
tail: 20). A class is rare if it has less than a quarter of an even share of the pool. Recall is measured after 1,000
labels, by the head that these give.
NSL-KDD has 15 kinds of connections, the fraud table 6 % frauds; of CLINC150's 150 intents the rarest has a hundredth of
the commonest (a long tail, drawn by the seed). Strategies that can look at a sample look at one of 2,500. Rows that the
table has are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuacl import Features, select
from accuacl.experiments.data import StreamOptions, load, make_stream
from accuacl.experiments.heads import fit_ridge
from accuacl.experiments.report.comparison import holm, sign_flip_test
from accuacl.strategies import options_of

EACH, SAMPLE, ENOUGH = 100, 2500, 0.9
TESTED = 1000  # labels after which recall is measured
DATA = {"nslkdd": 1.0, "fraud": 1.0, "clinc150": 0.01}  # and the imbalance that is made of it
ROUNDS = {"nslkdd": 60, "fraud": 60, "clinc150": 20}  # at most
STRATEGIES: dict[str, dict[str, Any]] = {  # by the name in the table: a strategy's name and its options
    "uniform": {},
    "margin": {},
    "badge": {},
    "coverage": {},
    "uncertain-coverage": {},
    "fisher-ratio": {},
    "direct": {},
    "anchoral": {},  # around badge, which on seed 100 was better than around margin
}
SEEDS = range(10)
COLUMNS = ("data", "strategy", "seed", "rare", "until", "found", "recall_rare", "recall_rarest", "recall")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--data-dir", type=Path, default=Path("runs/stream-data"))
    parser.add_argument("--csv", type=Path, default=Path("docs/results/streams/rare.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--strategies", nargs="+", choices=list(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--baseline", choices=list(STRATEGIES), default="uniform", help="what p-values are against")
    given = parser.parse_args()
    if given.what == "table":
        print(table(read(given.csv), given.baseline))
        return
    torch.set_num_threads(1)
    known = {(row["data"], row["strategy"], row["seed"]) for row in read(given.csv)}
    for seed in given.seeds:
        for data in given.data:
            for name in given.strategies:
                if (data, name, seed) not in known:
                    row = {"data": data, "strategy": name, "seed": seed} | measure(given.data_dir, data, name, seed)
                    append(given.csv, row)
                    print(row["data"], name, seed, row["until"], f"{row['recall_rare']:.1f}", flush=True)


def measure(data_dir: Path, data: str, name: str, seed: int) -> dict[str, Any]:
    dataset = load(data, data_dir)
    K = len(dataset.classes)
    stream = make_stream(dataset, [list(range(K))], StreamOptions(imbalance=DATA[data], seed=seed))
    task = next(iter(stream))
    x, y = np.asarray(dataset.train.inputs[task.train], np.float32), stream.to_model(dataset.train.labels[task.train])
    test, truth = np.asarray(dataset.test.inputs, np.float32), stream.to_model(dataset.test.labels)
    counts = np.bincount(y, minlength=K)
    is_rare = (counts > 0) & (counts * K < len(y) / 4)
    strategy, options = name.split()[0], dict(STRATEGIES[name])
    if "sample" in options_of(strategy):
        options["sample"] = SAMPLE
    asked = np.empty(0, np.int64)
    found: list[float] = []
    head = fit_ridge(torch.zeros(1, 1), torch.zeros(1, dtype=torch.long), 1)
    for r in range(ROUNDS[data]):
        left = np.setdiff1d(np.arange(len(x)), asked)
        if r == 0:
            picked = select("uniform", pool=Features(x[left], np.ones((len(left), 1))), budget=EACH, seed=seed)
        else:
            seen = np.unique(y[asked])
            picked = select(
                strategy,
                pool=Features(x[left], probabilities(head, x[left], seen)),
                labelled=Features(x[asked], probabilities(head, x[asked], seen)),
                classes=np.searchsorted(seen, y[asked]),
                budget=EACH,
                seed=1000 * seed + r,
                **options,
            )
        asked = np.append(asked, left[picked.indices])
        found.append(float(is_rare[y[asked]].sum() / is_rare[y].sum()))
        head = fit_ridge(torch.from_numpy(x[asked]), torch.from_numpy(y[asked]), K)
        if len(asked) == TESTED:
            seen = np.unique(y[asked])
            predicted = seen[probabilities(head, test, seen).argmax(axis=1)]
        if len(asked) >= TESTED and found[-1] >= ENOUGH:
            break
    hits = predicted == truth
    recall = np.array([100 * hits[truth == c].mean() if (truth == c).any() else np.nan for c in range(K)])
    enough = next((EACH * (r + 1) for r, share in enumerate(found) if share >= ENOUGH), None)
    return {
        "rare": int(is_rare[y].sum()),
        "until": enough,
        "found": [round(share, 4) for share in found],
        "recall_rare": float(np.nanmean(recall[is_rare])),
        "recall_rarest": float(recall[np.argmin(np.where(counts > 0, counts, len(y) + 1))]),
        "recall": float(np.nanmean(recall[counts > 0])),
    }


def probabilities(head: Any, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Among the classes that have a label."""
    return torch.softmax(head.logits(torch.from_numpy(x))[:, seen], 1).numpy().astype(np.float32)


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            row | {"seed": int(row["seed"]), "found": json.loads(row["found"])}
            | {name: float(row[name]) if row[name] else None for name in ("until", *COLUMNS[6:])}
            for row in csv.DictReader(file)
        ]  # fmt: skip


def append(path: Path, row: dict[str, Any]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row | {"found": json.dumps(row["found"])})


def table(rows: list[dict[str, Any]], baseline: str) -> str:
    """Means over seeds, and p-values of the differences from the baseline by sign flips, corrected by Holm's method.

    For the labels until 90 % were found, a run that did not get there counts as one that needed all its labels.
    """
    lines = [
        "| data | strategy | found after 300 | 500 | 1,000 labels | 90 % found after | p | recall of rare | p "
        "| of the rarest | seeds |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for data in DATA:
        by: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
        for row in rows:
            if row["data"] == data:
                by[row["strategy"]][row["seed"]] = row | {"labels": row["until"] or ROUNDS[data] * EACH}
        names = [name for name in STRATEGIES if name in by]
        p = {metric: p_values(by, names, baseline, metric) for metric in ("labels", "recall_rare")}
        for name in names:
            runs = list(by[name].values())
            shares = [np.mean([run["found"][n // EACH - 1] for run in runs]) for n in (300, 500, TESTED)]
            found = " | ".join(f"{100 * share:.0f} %" for share in shares)
            reached = sum(run["until"] is not None for run in runs)
            when = f"{reached} of {len(runs)} seeds within {ROUNDS[data] * EACH:,}"
            if reached == len(runs):
                when = mean(runs, "labels", "{:,.0f}")
            recall, rarest = mean(runs, "recall_rare"), mean(runs, "recall_rarest")
            sure, right = (p[metric].get(name, "") for metric in p)
            lines.append(
                f"| {data} | {name} | {found} | {when} | {sure} | {recall} | {right} | {rarest} | {len(runs)} |"
            )
    return "\n".join(lines)


def p_values(by: dict[str, dict[int, dict[str, Any]]], names: list[str], baseline: str, metric: str) -> dict[str, str]:
    """Of each strategy's differences from the baseline, over the seeds that both have."""
    tests = {}
    for name in names:
        pairs = [s for s in by[name] if s in by.get(baseline, {})]
        if name != baseline and pairs:
            tests[name] = sign_flip_test(np.array([by[name][s][metric] - by[baseline][s][metric] for s in pairs]))
    return {name: f"{p:.3f}" for name, p in zip(tests, holm(list(tests.values())), strict=True)}


def mean(runs: list[dict[str, Any]], metric: str, form: str = "{:.1f}") -> str:
    """Mean and standard deviation."""
    values = np.array([run[metric] for run in runs])
    return form.format(values.mean()) + (" ± " + form.format(values.std(ddof=1)) if len(runs) > 1 else "")


if __name__ == "__main__":
    main()

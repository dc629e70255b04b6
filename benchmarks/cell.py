"""One cell of the paper's main table: the paper's figures, ours under its protocol, ours at `cpu` scale.

    python benchmarks/cell.py docs/results/paper/cell.csv docs/results/paper/cell-10.csv \
        docs/results/study/choosing.csv --table REPRODUCIBILITY.md

DER++ on split-cifar10 with a memory of 100. First what to quote, for fifty epochs, the paper's number, and for ten;
then A, average accuracy, and F, forgetting, mean and standard deviation over seeds, in %; then each other row minus
uniform with the paper's memory, paired by seed, with p-values by sign flips, corrected by Holm's method over the rows
of a scale.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from paired import Cells, differences, show, signed, summary

from accuacl.experiments import read_csv
from accuacl.experiments.report.comparison import LEVEL, holm, p_value, sign_flip_test
from accuacl.experiments.report.measures import MeanStd
from accuacl.experiments.report.paper import figures

METRICS = {"A": "average_accuracy", "F": "forgetting"}
ROWS = ("uniform/paper", "accuacl/paper", "uniform/coverage")
PAPER, TEN = "`paper`", "`paper`, 10 epochs"
SCALES = (PAPER, TEN, "`cpu`")
PROTOCOLS = {PAPER: "under the paper's protocol", TEN: "under the paper's protocol with ten epochs instead of fifty"}
START, END = "<!-- benchmarks/cell.py writes from here -->", "<!-- to here, benchmarks/cell.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="Tables of sweeps.")
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    given = parser.parse_args()
    scales = read(given.results)
    quotes = [sentence(scales[scale], how) for scale, how in PROTOCOLS.items() if scale in scales]
    text = "\n\n".join([*quotes, values(scales), changes(scales)])
    show(text, given.table, START, END)


def read(paths: list[Path]) -> dict[str, Cells]:
    """By scale, then query and memory policy: the runs of this cell by seed."""
    found: dict[str, Cells] = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for row in read_csv(path):
            if (row["benchmark"], row["learner"], int(row["memory"])) == ("split-cifar10", "der++", 100):
                cell = f"{row['strategy']}/{row['memory_policy']}"
                numbers = {name: float(row[key]) for name, key in METRICS.items()}
                scale = TEN if (row["scale"], int(row["epochs"])) == ("paper", 10) else f"`{row['scale']}`"
                found[scale][cell][int(row["seed"])] = numbers
    return found


def sentence(cells: Cells, protocol: str) -> str:
    """What the runs under a protocol show so far."""
    texts = [f"uniform ends at {_in_words(cells, ROWS[0])}; the paper has {_words(papers(ROWS[0]))}"]
    for row, name in ((ROWS[1], "AccuACL"), (ROWS[2], "Uniform with the covering memory")):
        changed = {metric: differences(cells, row, ROWS[0], metric) for metric in METRICS}
        n = len(changed["A"])
        theirs = [ours - base for ours, base in zip(papers(row), papers(ROWS[0]), strict=True)] if papers(row) else []
        in_paper = " and ".join(f"{signed(change)} in {m}" for change, m in zip(theirs, METRICS, strict=False))
        of_paper = f"; in the paper it is {in_paper}" if theirs else ""
        if not n:
            minus = f"; in the paper, minus uniform, it is {in_paper}" if theirs else ""
            texts.append(f"{name} has not been measured yet{minus}")
            continue
        means = " and ".join(f"{signed(np.mean(d))}{_spread(d)} in {metric}" for metric, d in changed.items())
        texts.append(f"{name} minus uniform, paired by seed, is {means} ({_seeds(n)}{_cannot_tell(n)}{of_paper})")
    return f"**DER++ on split-cifar10 with a memory of 100, {protocol}: {'. '.join(texts)}.**"


def _in_words(cells: Cells, row: str) -> str:
    numbers = summary(cells[row], list(METRICS)).split(" | ")
    named = " and ".join(f"{metric} {text}" for metric, text in zip(METRICS, numbers, strict=True))
    return f"{named} ({_seeds(len(cells[row]))})"


def _words(numbers: list[float]) -> str:
    return " and ".join(f"{number:.1f}" for number in numbers)


def _spread(changed: list[float]) -> str:
    return f" ± {np.std(changed, ddof=1):.1f}" if len(changed) > 1 else ""


def _seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def _cannot_tell(n: int) -> str:
    return ", which cannot tell" if 2 / 2**n > LEVEL else ""


def values(scales: dict[str, Cells]) -> str:
    titles = ["paper, 3 seeds", *(f"ours, {scale}" for scale in SCALES)]
    header = " | ".join(f"A, {title} | F" for title in titles)
    lines = [f"| query / memory | {header} |", "|---|" + "--:|" * (2 * len(titles))]
    for row in ROWS:
        cells = [of_paper(row), *(ours(scales[scale], row) for scale in SCALES)]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_paper(row: str) -> str:
    found = _of_paper(row)
    return " | ".join(f"{value.mean:.1f} ± {value.std:.1f}" for value in found) if found else " | "


def papers(row: str) -> list[float]:
    return [value.mean for value in _of_paper(row)]


def _of_paper(row: str) -> list[MeanStd]:
    """The paper's A and F; it has one memory."""
    strategy, memory = row.split("/")
    if memory != "paper":
        return []
    found = [figures()["main", "split-cifar10", 100, "der++", strategy, key] for key in METRICS.values()]
    return [next(iter(by_note.values())) for by_note in found]


def ours(cells: Cells, row: str) -> str:
    if row not in cells:
        return "not yet | "
    return f"{summary(cells[row], list(METRICS))} ({_seeds(len(cells[row]))})"


def changes(scales: dict[str, Cells]) -> str:
    """Each other row minus the first, by scale."""
    lines = [f"| minus {ROWS[0]} | scale | A | p | F | p | pairs |", "|---|---|--:|--:|--:|--:|--:|"]
    for scale in SCALES:
        pairs = {row: {m: differences(scales[scale], row, ROWS[0], m) for m in METRICS} for row in ROWS[1:]}
        there = {row: by_metric for row, by_metric in pairs.items() if by_metric["A"]}
        ps = {m: holm([sign_flip_test(by_metric[m]) for by_metric in there.values()]) for m in METRICS}
        for i, (row, by_metric) in enumerate(there.items()):
            n = len(by_metric["A"])
            numbers = [f"{signed(np.mean(by_metric[m]))} | {p_value(ps[m][i])}" for m in METRICS]
            lines.append(f"| {row} | {scale} | {' | '.join(numbers)} | {n}{_cannot_tell(n)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Who wins on which stream: tables of the sweeps in docs/results/streams, paired by seed.

    python benchmarks/streams.py docs/results/streams/frozen.csv docs/results/streams/derpp.csv --table docs/streams.md

For every benchmark a table of streams and strategies: the mean over seeds (mean recall of the classes in %, unless
--metric says otherwise), the best in bold, with a star where it differs from BASELINE: p below 0.05 by sign flips,
corrected by Holm's method over the strategies. The last line has the mean difference from BASELINE over all streams.
Streams that share a seed are not independent, so that a seed counts once, with the mean over its streams: p, corrected
in the same way, is over seeds. Where the seeds are too few for a p below 0.05, it says instead in how many of them the
difference has the same sign. A number in brackets: the mean is over so many seeds, or the difference over so many
streams, because there are no more. Below the table: how the strategy with the highest mean compares with each other.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.files import write_text
from accuacl.experiments import read_csv
from accuacl.experiments.report.comparison import holm, sign_flip_test

START, END = "<!-- benchmarks/streams.py writes from here -->", "<!-- to here -->"
STREAMS = {
    "domains": "domains", "recurring": "recurring", "blur": "blurry", "imbalance": "long-tailed", "label_noise": "noisy"
}  # fmt: skip
LEVEL = 0.05

Values = dict[str, dict[int, float]]  # by strategy and seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="Tables of sweeps.")
    parser.add_argument("--metric", default="class_accuracy", help="A column of the tables; larger must be better.")
    parser.add_argument("--baseline", default="uniform", help="The strategy that all others are compared with.")
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    given = parser.parse_args()
    rows = [row for path in given.results for row in read_csv(path)]
    text = "\n\n".join(section(name, streams, given.baseline) for name, streams in grouped(rows, given.metric).items())
    if given.table:
        page = given.table.read_text()
        before, after = page[: page.index(START) + len(START)], page[page.index(END) :]
        write_text(given.table, f"{before}\n\n{text}\n\n{after}")
    else:
        print(text)


def grouped(rows: list[dict[str, Any]], metric: str) -> dict[str, dict[str, Values]]:
    """By benchmark and learner, and by stream."""
    found: dict[str, dict[str, Values]] = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for row in rows:
        if row.get(metric) is None:
            continue
        usual = {"imbalance": 1.0}
        parts = [
            f"{word} {row[name]:g}" for name, word in STREAMS.items() if row.get(name, 0) not in (0, usual.get(name))
        ]
        stream = ", ".join(parts) or ("as given" if row.get("arrival") == "given" else "tidy")
        strategy = str(row["strategy"])
        strategy += "/balanced" if row.get("sampling") == "balanced" else ""
        strategy += f"/{row['memory_policy']}" if row.get("memory_policy", "paper") != "paper" else ""
        regime = f"{row['learner']} on {str(row['benchmark']).removesuffix('-looks').removesuffix('-features')}"
        found[regime][stream][strategy][int(row["seed"])] = float(row[metric])
    return found


def section(regime: str, streams: dict[str, Values], baseline: str) -> str:
    strategies = list(dict.fromkeys(name for values in streams.values() for name in values))
    lines = [f"**{regime}**", "", f"| stream | {' | '.join(strategies)} |", "|---|" + "--:|" * len(strategies)]
    lines += [stream_line(stream, values, strategies, baseline) for stream, values in streams.items()]
    every = {name: differences(streams.values(), name, baseline) for name in strategies if name != baseline}
    texts = compared(every)
    cells = []
    for name in strategies:
        shared = sum(bool(differences([values], name, baseline)) for values in streams.values())
        some = "" if shared == len(streams) else f" ({shared} of {len(streams)} streams)"
        cells.append(texts[name] + some if name in texts else "")
    lines.append(f"| minus {baseline}, all streams | {' | '.join(cells)} |")
    return "\n".join([*lines, *runners_up(streams, strategies)])


def stream_line(stream: str, values: Values, strategies: list[str], baseline: str) -> str:
    """The mean of each strategy over its seeds."""
    ps = corrected({name: differences([values], name, baseline) for name in strategies if name != baseline})
    means = {name: float(np.mean(list(values[name].values()))) for name in strategies if values.get(name)}
    best, seeds = max(round(mean, 1) for mean in means.values()), max(map(len, values.values()))
    cells = []
    for name in strategies:
        cell = "-" if name not in means else f"{means[name]:.1f}"
        cell += "*" if name in means and ps.get(name, 1.0) < LEVEL else ""
        cell = f"**{cell}**" if name in means and round(means[name], 1) == best else cell
        cells.append(cell + (f" ({len(values[name])})" if name in means and len(values[name]) < seeds else ""))
    return f"| {stream} ({seeds} seed{'s' * (seeds > 1)}) | {' | '.join(cells)} |"


def runners_up(streams: dict[str, Values], strategies: list[str]) -> list[str]:
    """How the strategy with the highest mean over all streams compares with the others that have all of them."""
    whole = [name for name in strategies if all(values.get(name) for values in streams.values())]
    if len(whole) < 2:
        return []
    seeds = [set.intersection(*(set(values[name]) for name in whole)) for values in streams.values()]
    if not all(seeds):
        return []
    first, *others = sorted(whole, key=lambda name: -_mean(streams, seeds, name))
    pairs = {name: differences(streams.values(), first, name) for name in others}
    texts = [f"{name} {text}" for name, text in compared(pairs).items()]
    return ["", f"`{first}` has the highest mean over all streams; minus each other: {', '.join(texts)}."]


def _mean(streams: dict[str, Values], seeds: list[set[int]], name: str) -> float:
    means = [
        np.mean([values[name][seed] for seed in shared]) for values, shared in zip(streams.values(), seeds, strict=True)
    ]
    return float(np.mean(means))


def differences(streams: Iterable[Values], name: str, baseline: str) -> list[float]:
    """The strategy minus the baseline, one for each seed: the mean over the streams that have both with this seed."""
    by_seed: dict[int, list[float]] = defaultdict(list)
    for values in streams:
        for seed in values.get(name, {}).keys() & values.get(baseline, {}).keys():
            by_seed[seed].append(values[name][seed] - values[baseline][seed])
    return [float(np.mean(by_seed[seed])) for seed in sorted(by_seed)]


def compared(pairs: dict[str, list[float]]) -> dict[str, str]:
    """The mean of the differences, with p or, if the seeds are too few, how many of them have the mean's sign."""
    ps, texts = corrected(pairs), {}
    for name, values in pairs.items():
        if values:
            mean = float(np.mean(values))
            alike = sum(value * mean > 0 for value in values)
            sure = f"p {shown(ps[name])}" if name in ps else f"{alike} of {len(values)} seeds"
            texts[name] = f"{mean:+.1f} ({sure})"
    return texts


def corrected(pairs: dict[str, list[float]]) -> dict[str, float]:
    """p of those with seeds enough for one below LEVEL, corrected for their number."""
    able = {name: values for name, values in pairs.items() if 2 / 2 ** len(values) < LEVEL}
    return dict(zip(able, holm([sign_flip_test(values) for values in able.values()]), strict=True))


def shown(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


if __name__ == "__main__":
    main()

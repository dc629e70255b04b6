"""Whether two checkouts compute the same, to the last bit.

    python benchmarks/same_bits.py OLD NEW

Both do 18 small runs on split-digits, six strategies with three learners, whose results are compared without times;
and both ask every strategy for picks from the digits, which are compared with their scores. Strategies that only one
checkout has are named. Takes about ten seconds of CPU time for each checkout; the exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

STRATEGIES = ("uniform", "entropy", "kcenter", "badge", "coverage", "accuacl")
LEARNERS = ("er", "der++", "ridge")
PICKS = 20
TIMES = ("seconds",)  # keys of a result that no two runs have alike
Made = dict[str, Any]  # by "learner strategy" the result of a run, by strategy its picks and scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="*", metavar="OLD NEW", help="directories of two checkouts")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)  # in the process of one checkout
    given = parser.parse_args()
    if given.make:
        given.make.write_text(json.dumps({**made_by_runs(), **made_by_select()}))
        return
    if len(given.checkouts) != 2:
        parser.error("give two checkouts, OLD and NEW")
    old, new = map(made_in, given.checkouts)
    print(table(old, new))
    if any(old[name] != new[name] for name in old.keys() & new.keys()):
        sys.exit(1)


def made_in(checkout: Path) -> Made:
    """What a checkout computes, in a process of its own with one thread."""
    source = checkout.resolve() / "src"
    if not (source / "accuacl").is_dir():
        sys.exit(f"{checkout} has no src/accuacl; give the directory of a checkout")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "made.json"
        environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, __file__, "--make", out], cwd=folder, env=environment, check=True)
        made: Made = json.loads(out.read_text())
    return made


def made_by_runs() -> Made:
    from accuacl.experiments import make, run

    made = {}
    for learner in LEARNERS:
        for strategy in STRATEGIES:
            result = run(make({"learner": learner, "strategy": strategy}), Path(f"{learner}-{strategy}"))
            made[f"{learner} {strategy}"] = {name: value for name, value in result.items() if name not in TIMES}
    return made


def made_by_select() -> Made:
    """The picks of every strategy, with its scores, from half of the digits, with labels and a memory."""
    import numpy as np
    from sklearn.datasets import load_digits

    from accuacl import Features, select, strategy_names

    x, y = load_digits(return_X_y=True)
    means = np.stack([x[y == label].mean(axis=0) for label in range(10)])
    logits = x @ means.T / 300 - (means**2).sum(axis=1) / 600  # larger for the class with the nearer mean
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    features = Features((x / 16).astype(np.float32), (p / p.sum(axis=1, keepdims=True)).astype(np.float32))
    rows = np.random.default_rng(0).permutation(len(x))
    pool, labelled, memory = (features.rows(rows[part]) for part in (slice(900), slice(900, 960), slice(960, 1060)))
    made = {}
    for strategy in strategy_names():
        with warnings.catch_warnings(action="ignore"):
            known = {"labelled": labelled, "classes": y[rows[900:960]], "memory": memory, "past": 800}
            picked = select(strategy, pool=pool, budget=PICKS, seed=1, **known)
        scores = {name: values.tolist() for name, values in picked.scores.items()}
        made[strategy] = {"indices": picked.indices.tolist(), "scores": scores}
    return made


def table(old: Made, new: Made) -> str:
    """A line for each strategy: whether the results of its runs are the same, and its picks with their scores."""
    names = [name for name in dict.fromkeys([*old, *new]) if " " not in name]
    lines = [f"| strategy | {' | '.join(LEARNERS)} | select |", f"|---|{'---|' * (len(LEARNERS) + 1)}"]
    for strategy in names:
        keys = [*(f"{learner} {strategy}" for learner in LEARNERS), strategy]
        lines.append(f"| {strategy} | {' | '.join(compared(old.get(key), new.get(key)) for key in keys)} |")
    return "\n".join(lines)


def compared(old: Made | None, new: Made | None) -> str:
    """Whether both are the same, or which keys differ."""
    if old is None or new is None:
        return "" if old is new else f"only in {'new' if old is None else 'old'}"
    differing = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return f"differ in {', '.join(differing)}" if differing else "same"


if __name__ == "__main__":
    main()

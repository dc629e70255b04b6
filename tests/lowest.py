"""What an install without extras can do, in a few seconds: run by `make test-lowest` with the oldest versions allowed.

Every strategy that needs no torch keeps its contract, files give the same picks as memory, scikit-learn's classifiers
are taken, and the commands work.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from accuacl import Features, pools, select, strategy_names
from accuacl.experiments.checks import check_strategy

PLUGIN = """
import numpy as np
from accuacl import Query, Selection, register


@register("least")
def least(query: Query, *, power: float = 1.0) -> Selection:
    order = np.argsort(np.asarray(query.pool.probabilities, np.float64).max(axis=1) ** power, kind="stable")
    return Selection(order[: query.count], {})
"""


def main() -> None:
    for name in strategy_names():
        if name != "bait":  # needs torch
            broken = [result for result in check_strategy(name) if result.fault]
            assert not broken, (name, broken)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 8)), np.arange(300) % 4
    pool = Features.from_estimator(LogisticRegression().fit(X, y), X, ids=np.arange(300))
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        pools.write_pool(at / "pool.parquet", pool.ids, pool.embeddings, pool.probabilities)
        (at / "mine.py").write_text(PLUGIN, encoding="utf-8")
        for name in ("coverage", "accuacl", "badge", "kcenter"):
            expected = select(name, pool=pool, budget=9).ids.tolist()
            command("select", "--pool", at / "pool.parquet", "--budget", "9", "--strategy", name, "--out", at / "p.csv")
            lines = (at / "p.csv").read_text(encoding="utf-8").splitlines()[1:]
            assert [int(line.split(",")[0]) for line in lines] == expected, (name, lines, expected)
        command("check", at / "mine.py")
        command("doctor")
    versions = {each.name.lower(): each.version for each in metadata.distributions()}
    print("as it should be, with", ", ".join(f"{name} {version}" for name, version in sorted(versions.items())))


def command(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "accuacl", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()

"""A query that needs a memory and has none says what it does instead; a run's first task says nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accuacl import Features, select, strategies
from accuacl.experiments import advice, make, run
from commands import SMALL, accuacl

RNG = np.random.default_rng(0)
POOL = Features(RNG.normal(size=(12, 3)), RNG.dirichlet(np.ones(2), 12))
EMPTY = Features(np.empty((0, 3)), np.empty((0, 2)))


@pytest.mark.parametrize(
    ("strategy", "given", "says"),
    [
        ("badge+memory", {}, "badge+memory avoids what the memory holds; without a memory it picks as badge does"),
        ("kcenter+memory", {}, "it picks as kcenter does"),
        ("coverage+memory", {}, "it picks as coverage does"),
        ("accuacl", {"past": 7}, "past says how much the memory weighs, and no memory was given"),
        ("entropy", {"past": 7}, "past says how much the memory weighs"),
        ("accuacl", {"lam": 0.5}, "lam says how much the memory weighs, and no memory was given"),
        ("accuacl", {"lam": 0.0}, "lam says how much"),
    ],
)
def test_it_is_said_in_memory_and_over_files(tmp_path, strategy, given, says):
    with pytest.warns(UserWarning, match="without a memory|no memory was given") as caught:
        picked = select(strategy, pool=POOL, budget=3, **given)
    assert [says in str(w.message) for w in caught] == [True]
    assert caught[0].filename == __file__
    columns = {"id": list(range(12)), "embedding": POOL.embeddings.tolist(), "probability": POOL.probabilities.tolist()}
    pq.write_table(pa.table(columns), tmp_path / "pool.parquet")
    options = [f"--{name}={value}" for name, value in given.items()]
    words = ["--strategy", strategy, "--pool", "pool.parquet", "--budget", 3, "--out", "out.csv", *options]
    with warnings.catch_warnings(action="default"):
        ended = accuacl("select", *words, cwd=tmp_path, width=300)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("note: ") == 1
    assert says in ended.stdout
    base = strategy.removesuffix("+memory")
    assert picked.indices.tolist() == select(base, pool=POOL, budget=3).indices.tolist(), "and it is so"


def test_a_run_is_told_of_what_its_strategy_lacks_not_of_what_it_is_called(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import accuacl\n"
        "@accuacl.strategies.register('accuacl-mine')\n"
        "def mine(query): return accuacl.get_strategy('uniform')(query)\n"
    )
    strategies.load_plugins([tmp_path / "mine.py"])
    try:
        said = {
            name: [
                sentence for sentence in advice(make({"strategy": name, "memory": 0})) if "--memory is 0" in sentence
            ]
            for name in ("accuacl-mine", "accuacl-full", "accuacl", "accuacl+uniform", "coverage+memory", "bait")
        }
    finally:
        del strategies.REGISTRY["accuacl-mine"]
    assert [name for name, sentences in said.items() if sentences] == ["accuacl", "accuacl+uniform", "coverage+memory"]
    assert said["accuacl"][0].endswith("it sees no past.")
    assert said["coverage+memory"][0].endswith("it picks as coverage does.")


def test_nothing_is_said_where_nothing_is_lacking(tmp_path):
    with warnings.catch_warnings(action="error"):
        select("accuacl", pool=POOL, budget=3)
        select("accuacl", pool=POOL, budget=3, past=0)
        select("bait", pool=POOL, budget=3, ridge=0.5)
        select("badge+memory", pool=POOL, budget=3, memory=EMPTY, past=0)
        select("accuacl", pool=POOL, budget=3, memory=POOL, past=7)
        run(make(SMALL | {"strategy": "badge+memory", "memory": 3}), tmp_path / "run")

"""Wrong input: one sentence saying what was given and what to do, before anything is computed."""

from __future__ import annotations

import errno
import os
import re

import numpy as np
import pytest
from torch.nn import Linear

from accuacl import Features, experiments, pools, select, strategy_names, torch
from accuacl.base.errors import InputError
from accuacl.base.files import path_error
from accuacl.experiments import data
from accuacl.strategies import TooLarge, options_of
from commands import accuacl
from problems import features

RNG = np.random.default_rng(0)
POOL, OTHER = features(RNG, 20, 4, 3), features(RNG, 5, 4, 3)
WIDE, MORE = features(RNG, 5, 6, 3), features(RNG, 5, 4, 2)


@pytest.mark.parametrize(
    ("strategy", "arguments", "says"),
    [
        ("accuacl", {"budget": -1}, "budget is -1; give a whole number"),
        ("accuacl", {"budget": 2.5}, r"budget is 2.5; give a whole number"),
        ("accuacl", {"budget": True}, "budget is True"),
        ("accuacl", {"seed": -3}, "seed is -3"),
        ("accuacl", {"past": -1}, "past is -1"),
        ("accuacl", {"chunk": "x"}, "chunk is 'x'"),
        ("coverage", {"progress": True}, "progress is True; give a function"),
        ("accuacl", {"pool": np.ones((3, 3))}, r"pool is an ndarray; give Features"),
        ("accuacl", {"memory": np.ones((3, 3))}, r"memory is an ndarray; give Features"),
        ("accuacl", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl-magnitude", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl-distribution", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl-full", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl", {"memory": WIDE, "past": 5}, "embeddings of 4 numbers and 3 classes, but memory has 6 and 3"),
        ("kcenter", {"labelled": MORE}, "the pool has embeddings of 4 numbers and 3 classes, but labelled has 4 and 2"),
        ("accuacl", {"lam": 1.5}, "lam is 1.5"),
        ("accuacl", {"lam": float("nan")}, "lam is nan"),
        ("accuacl", {"lam": "much"}, "lam is 'much'"),
        ("accuacl", {"keep": 0}, "keep is 0"),
        ("accuacl", {"keep": 2.0}, "keep is 2.0"),
        ("accuacl", {"variant": "new"}, "variant is 'new'; give 'released' or 'paper'"),
        ("accuacl", {"oversample": 0.5}, "oversample is 0.5"),
        ("accuacl", {"total_classes": 2}, "total_classes is 2; give a whole number of at least 3"),
        ("accuacl", {"lamda": 1}, r"accuacl has no option 'lamda'; did you mean lam\? Its options are variant, keep"),
        ("entropy", {"keep": 1}, "entropy has no option 'keep'; it has no options"),
        ("accuacle", {}, r"there is no strategy 'accuacle'; did you mean accuacl\? The strategies are uniform"),
        ("bait", {"ridge": 0}, "ridge is 0; give a number from 1e-6 to 1e6"),
        ("bait", {"oversample": None}, "oversample is None"),
        ("bait", {"memory_limit": "1GB"}, "memory_limit is '1GB'"),
        ("accuacl", {"lam": True}, "lam is True"),
        ("accuacl", {"keep": True}, "keep is True"),
        ("accuacl", {"oversample": True}, "oversample is True"),
        ("accuacl", {"oversample": float("inf")}, "oversample is inf"),
        ("fisher-ratio", {"memory": OTHER}, "memory was given without past or lam"),
        ("fisher-ratio", {"lam": 2}, "lam is 2"),
        ("fisher-ratio", {"ridge": 0}, "ridge is 0; give a number from 1e-6"),
        (["accuacl"], {}, r"there is no strategy \['accuacl'\]"),
    ],
)
def test_refused(strategy, arguments, says):
    with pytest.raises(ValueError, match=says) as raised:
        select(strategy, **({"pool": POOL, "budget": 3} | arguments))
    assert "\n" not in str(raised.value)


def test_bait_refuses_before_allocating_and_says_how_many_bytes():
    n, d, K = 50, 2_000, 100
    pool = Features(np.ones((n, d), np.float32), np.full((n, K), 1 / K, np.float32))
    least = 40 * (d * K) ** 2 + 16 * n * K**2  # 1.6 TB: an attempt would not go unnoticed
    with pytest.raises(TooLarge, match="bait needs 1,600,") as refusal:
        select("bait", pool=pool, budget=5)
    assert isinstance(refusal.value, InputError)
    assert least <= refusal.value.bytes < 1.01 * least
    with pytest.raises(ValueError, match="and 1,000 are allowed"):
        select("bait", pool=POOL, budget=5, memory_limit=1000)


@pytest.mark.parametrize(
    ("name", "need"),
    [
        ("coverage", 24_080),
        ("coverage+memory", 24_080),
        ("uncertain-coverage", 24_080),
        ("accuacl+coverage", 24_080),
        ("fisher-ratio", 33_024),
        ("typiclust", 50_383_808),
    ],
)
def test_set_strategies_refuse_before_allocating_and_say_how_many_bytes(name, need, monkeypatch):
    monkeypatch.setattr("accuacl.strategies.api.available_memory", lambda: 10_000)
    says = rf"^{re.escape(name)} needs {need:,} bytes for 20 .*d=4, and 10,000 are free; give a smaller pool(.*)\.$"
    with pytest.raises(TooLarge, match=says) as refusal:
        select(name, pool=POOL, budget=5)
    assert refusal.value.bytes == need
    assert ("or sample=" in str(refusal.value)) == ("sample" in options_of(name))
    if "sample" in options_of(name):
        assert len(select(name, pool=POOL, budget=1, sample=4)) == 1


@pytest.mark.parametrize(("scale", "ridge"), [(1e9, 0.01), (1e8, 1e-6)])
def test_bait_says_so_where_float64_cannot_hold_its_matrices(scale, ridge):
    pool = features(np.random.default_rng(0), 40, 6, 3, scale=scale)
    with pytest.raises(ValueError, match="bait's matrices are singular in float64"):
        select("bait", pool=pool, budget=10, ridge=ridge)


def test_numpy_numbers_are_numbers():
    plain = select("accuacl", pool=POOL, budget=3, seed=3, memory=OTHER, lam=1, keep=2, oversample=2)
    numpy = select(
        "accuacl",
        pool=POOL,
        budget=np.int16(3),
        seed=np.uint8(3),
        memory=OTHER,
        lam=np.int64(1),
        keep=np.int32(2),
        oversample=np.float32(2),
    )
    np.testing.assert_array_equal(plain.indices, numpy.indices)
    uniform = [select("uniform", pool=POOL, budget=5, seed=seed).indices for seed in (3, np.int64(3), np.uint8(3))]
    assert (uniform[0] == uniform[1]).all()
    assert (uniform[0] == uniform[2]).all()


@pytest.mark.parametrize("name", strategy_names())
def test_huge_chunks_and_budgets_cost_nothing(name):
    check = select(name, pool=POOL, budget=10**400, chunk=10**13, memory=OTHER, past=5, labelled=OTHER)
    assert len(check) == len(POOL)


def test_memory_weight_can_come_from_lam_or_past():
    by_past = select("accuacl", pool=POOL, budget=3, memory=OTHER, labelled=OTHER, past=75)
    by_lam = select("accuacl", pool=POOL, budget=3, memory=OTHER, lam=0.75)  # 75 / (75 + 20 + 5)
    np.testing.assert_array_equal(by_past.indices, by_lam.indices)
    np.testing.assert_array_equal(by_past.scores["distribution"], by_lam.scores["distribution"])


@pytest.mark.parametrize(
    ("variant", "total", "keep"), [("released", 12, 20), ("released", None, 5), ("paper", 10, 10), ("paper", 12, 5)]
)
def test_default_keep(variant, total, keep):
    pool = features(np.random.default_rng(4), 60, 30, 3)
    default = select("accuacl", pool=pool, budget=9, variant=variant, total_classes=total)
    given = select("accuacl", pool=pool, budget=9, variant=variant, keep=keep)
    np.testing.assert_array_equal(default.scores["distribution"], given.scores["distribution"])
    other = select("accuacl", pool=pool, budget=9, variant=variant, keep=keep + 1)
    assert not np.array_equal(default.scores["distribution"], other.scores["distribution"])


@pytest.mark.parametrize(
    "call",
    [
        lambda out: pools.select(out / "none.parquet", "entropy", budget=1, progress=True),
        lambda out: torch.features(Linear(2, 2), [], classes=[0], progress=True),
        lambda out: data.load("digits", progress=True),
        lambda out: experiments.run(experiments.make({}), out / "run", progress=True),
    ],
    ids=["pools", "torch", "data", "run"],
)
def test_progress_that_cannot_be_called_is_refused_before_any_work(tmp_path, call):
    with pytest.raises(InputError, match=r"^progress is True; give a function, which is called with a `Progress`, or"):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


LONG = "n" * 300
LONG_NAMES = [
    f"run --benchmark split-digits --scale smoke --out {LONG}",
    f"run --benchmark {LONG}.csv --out a",
    f"sweep {LONG}",
    f"report {LONG}",
    f"paper main --out {LONG}",
    f"embed --data a --model {LONG}.py:f --out b",
    f"select --pool {LONG} --budget 2 --out a.csv",
    f"select --pool . --budget 2 --out {LONG}.csv",
    f"select --pool . --budget 2 --out a.csv --plugin {LONG}.py",
    f"project status {LONG}",
    f"project new {LONG} --texts texts.csv",
    f"project new a --texts {LONG}",
    f"doctor --data-dir {LONG}",
]


@pytest.mark.parametrize("command", LONG_NAMES, ids=lambda command: command.replace(LONG, "LONG"))
def test_a_name_that_is_too_long_is_one_sentence(command, tmp_path):
    ended = accuacl(*command.split(), cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENAMETOOLONG, "give a shorter name"),
        (errno.EACCES, "change its permissions, or give another path"),
        (errno.EROFS, "give a path on a disk that can be written to"),
        (errno.ENOSPC, "free some space, or give a path on another disk"),
    ],
)
def test_what_the_system_refuses_is_one_sentence_with_the_path(number, advice, tmp_path, monkeypatch):
    """Wherever a command meets it: here in a look whether a folder is there."""

    def refuse(path):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("pathlib.Path.is_dir", refuse)
    ended = accuacl("run", "--benchmark", "photos", "--classes-per-task", "2", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == f"accuacl: photos: {os.strerror(number).lower()}; {advice}.\n"


def test_an_error_of_the_system_that_no_path_caused_is_a_bug():
    assert path_error(OSError(errno.EIO, "Input/output error", "disk")) is None
    assert path_error(OSError(errno.EACCES, "Permission denied")) is None

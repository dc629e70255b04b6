"""The Ray engine, on a cluster of this machine: the same picks, faults survived. One start for all checks."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accuacl import select
from accuacl.engines.ray import Ray
from pool_files import write
from problems import features

POOL = features(np.random.default_rng(0), 3000, 6, 4)
# Ray looks for its own address through a public one; in a network of its own there is none to reach.
ALONE = ["unshare", "-n", "bash", "-c", 'ip link set lo up && exec "$0" "$@"']


def alone() -> bool:
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed; it is in the extra 'cluster'")
    if not alone():
        pytest.skip("a network of its own (unshare -n) is not permitted here")
    folder, places = tmp_path_factory.mktemp("pool"), tmp_path_factory.mktemp("places")
    order = np.random.default_rng(1).permutation(3000)
    for i, rows in enumerate(np.array_split(order, 3)):
        write(folder / f"{i}.parquet", rows, POOL.rows(rows), 25)
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path[1:]])
    # Ray's workers would wait for everything else that runs: 15 is Ray's niceness for them.
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "PYTHONPATH": path}
    script = str(Path(__file__).with_name("ray_checks.py"))
    done = subprocess.run(
        [*ALONE, sys.executable, script, str(folder), str(places)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_same_picks_as_in_memory(found):
    for name, picks in found["picks"].items():
        assert picks == select(name, pool=POOL, budget=300, seed=3).indices.tolist()


def test_a_cluster_that_is_connected_is_used_and_left_alone(found):
    assert found["connected"] == found["picks"]["accuacl"]
    assert found["shut"]  # by the engine that had started it
    assert found["workers"] == 2


def test_a_worker_killed_in_the_middle_of_a_scan_changes_nothing(found):
    assert found["kills"]
    assert found["killed"] == found["picks"]["margin"]


def test_errors_and_deaths(found):
    assert found["errors"] == [None, "one is wrong", None, None]
    assert found["once"] == [0, 1, 2, 3, 4, 5]
    assert found["always"][0].startswith("its worker died 3 times (")
    assert found["always"][1] == 5
    assert "bad.parquet, row group 0, row 1: embeddings: column 2 is nan" in found["bad"]


def test_it_is_told_how_far_each_item_is(found):
    for index in (0, 1):
        news = [(share, text) for i, share, text in found["told"] if i == index]
        steps = [round(share * 10**6) for share, _ in news]
        assert len(steps) >= 2
        assert steps == sorted(set(steps))
        assert [text for _, text in news] == [f"{index} at {step}" for step in steps]


def test_another_board_comes_where_one_was_killed(found):
    assert found["without board"] == [0, 1]


def test_a_sweep_whose_worker_dies_goes_on_from_the_journal(found):
    assert found["sweep"] == {"failed": {}, "same": True, "runs": 2}


def test_nobody_at_the_address(found):
    assert found["nobody"].startswith("no Ray cluster answers at 127.0.0.1:1 (")
    assert "\n" not in found["nobody"]


def test_without_ray_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        ValueError, match=r"the engine ray needs the extra `cluster`; install it: pip install 'accuacl\[cluster\]'"
    ):
        Ray()
    with pytest.raises(ValueError, match="workers is -2; give a number of CPUs"):
        Ray(-2)

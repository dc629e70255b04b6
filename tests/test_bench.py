"""Measuring queries: in a process of its own, beside the floor and the dense definition, with threads."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accuacl import strategy_names
from accuacl.experiments.sweeps import efficiency
from accuacl.experiments.sweeps.efficiency import Case, Measurement, in_fresh_process, timed

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import bench


def test_every_strategy_is_in_the_standard_cases():
    assert {case.strategy for case in bench.standard()} == set(strategy_names())
    sizes = {(c.strategy, c.n, c.d, c.K, c.b) for c in bench.standard(full=True)}
    assert ("accuacl", 1_000_000, 512, 100, 1_000) in sizes
    assert ("bait", 5_000, 160, 100, 10) in sizes


def test_a_case_in_this_process():
    result = bench.compare(Case("accuacl", 3000, 128, 50, 20, m=50), 1 << 30)
    assert result.measured.cpu > 0
    assert result.dense_cpu > 0
    assert result.floor_cpu > 0
    assert result.dense_memory > result.measured.memory >= 0  # 0: what earlier tests left free was enough
    assert result.ratios["speedup"] == result.dense_cpu / result.measured.cpu


def test_the_peak_of_memory_is_measured_and_not_the_end():
    def job():
        np.ones(64 << 20, np.uint8)  # so large that it is never taken from memory that the process has left over

    _, _, extra = timed(job)
    assert 59 << 20 <= extra <= 94 << 20


def test_the_dense_definition_is_left_out_where_it_does_not_fit():
    assert bench.compare(Case("accuacl", 400, 64, 20, 20), 1000).dense_cpu is None


@pytest.mark.parametrize("name", strategy_names())
def test_the_problem_is_one_each_strategy_can_solve(name):
    case = Case(name, 60, 6, 4, 5, m=10, labelled=8)
    assert efficiency.measure(case).cpu >= 0
    assert bench.compare(case, 1 << 20).measured.needs is None


@pytest.mark.parametrize("name", ["badge", "kcenter", "bait", "coverage"])
def test_a_budget_may_be_larger_than_the_pool(name):
    assert bench.compare(Case(name, 5, 6, 4, 20, m=10), 1 << 20).measured.cpu >= 0


def test_a_refusal_is_a_row_not_a_crash():
    case = Case("bait", 10, 5_000, 100, 5, m=0)
    result = bench.compare(case, 0)
    assert result == bench.Compared(case, Measurement(needs=result.measured.needs))
    assert result.measured.needs == efficiency.measure(case).needs > 40 * 500_000**2
    assert result.cells()[0] == "needs"


def test_threads_are_compared_quiet_and_beside_a_busy_process(monkeypatch):
    monkeypatch.setattr(bench, "SECONDS", 0)
    quiet, busy = bench.both(Case("coverage", 50, 6, 4, 5, m=10))
    assert (quiet.busy, busy.busy) == (False, True)
    for row in (quiet, busy):
        assert min(row.one_cpu, row.one_wall, row.cpu, row.wall) > 0
        assert row.as_dict()["wall_ratio"] == row.wall / row.one_wall
    assert multiprocessing.active_children() == []
    assert bench.both(Case("bait", 10, 5_000, 100, 5, m=0)) == []


def process_of(case, threads):
    return os.getpid(), [os.environ.get(name) for name in efficiency.THREAD_VARIABLES]


def test_each_case_has_a_process_of_its_own_with_the_threads_that_were_asked_for():
    process, threads = in_fresh_process(process_of, Case("uniform", 60, 6, 4, 5), 3, threads=3)
    assert process != os.getpid()
    assert threads == ["3"] * 3


def test_the_script_prints_a_table_and_writes_json(tmp_path):
    options = ("--strategy", "accuacl", "--n", "60", "--d", "8", "--classes", "4", "--budget", "10", "20")
    command = [sys.executable, bench.__file__, *options, "--json", tmp_path / "bench.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accuacl ") == 2
    assert done.stdout.count("x dense") == 2  # a table for each size
    results = json.loads((tmp_path / "bench.json").read_text())["results"]
    assert [(each["case"]["strategy"], each["case"]["b"]) for each in results] == [("accuacl", 10), ("accuacl", 20)]
    assert all(each["measured"]["cpu"] > 0 for each in results)


def test_lines_are_narrow_enough_for_a_terminal(capsys):
    large = Case("accuacl-distribution", 10_000_000, 2048, 1000, 10_000, m=100_000, labelled=100_000)
    bench.show([bench.Compared(large, Measurement(1234.5678, 1234.5678, 99_999 << 20), 0.01, 9e6, 1 << 50)], True)
    bench.show([bench.Threads(large, busy, 123.456, 123.456, 123.456, 123.456) for busy in (False, True)], True)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 92 for line in lines)
    assert sum("accuacl-distribution" in line for line in lines) == 3

"""`accuacl bench`: what it measures, what it prints, what it refuses."""

from __future__ import annotations

import json
import multiprocessing
import os

import numpy as np
import pytest

from accuacl import NAMES, bench
from accuacl.bench import Case, Measurement, measuring, threads
from accuacl.bench.timing import timed
from commands import accuacl


def test_every_strategy_is_in_the_standard_cases():
    assert {case.strategy for case in bench.standard()} == set(NAMES)
    sizes = {(c.strategy, c.n, c.d, c.K, c.b) for c in bench.standard(full=True)}
    assert ("accuacl", 1_000_000, 512, 100, 1_000) in sizes
    assert ("bait", 5_000, 160, 100, 10) in sizes


def test_a_case_in_this_process():
    result = bench.measure(Case("accuacl", 3000, 128, 50, 20, m=50), 1 << 30)
    assert result.cpu > 0
    assert result.dense_cpu > 0
    assert result.floor_cpu > 0
    assert result.dense_memory > result.memory >= 0  # 0: what earlier tests left free was enough
    assert result.speedup == result.dense_cpu / result.cpu


def test_the_peak_of_memory_is_measured_and_not_the_end():
    def job():
        np.ones(64 << 20, np.uint8)  # so large that it is never taken from memory that the process has left over

    _, _, extra = timed(job)
    assert 59 << 20 <= extra <= 94 << 20


def test_the_dense_definition_is_left_out_where_it_does_not_fit():
    assert bench.measure(Case("accuacl", 400, 64, 20, 20), dense_limit=1000).dense_cpu is None


@pytest.mark.parametrize("name", NAMES)
def test_the_problem_is_one_each_strategy_can_solve(name):
    assert bench.measure(Case(name, 60, 6, 4, 5, m=10, labelled=8), 0).cpu >= 0


@pytest.mark.parametrize("name", ["badge", "kcenter", "bait", "coverage"])
def test_a_budget_may_be_larger_than_the_pool(name):
    assert bench.measure(Case(name, 5, 6, 4, 20, m=10), 1 << 20).cpu >= 0


def test_a_refusal_is_a_row_not_a_crash():
    result = bench.measure(Case("bait", 10, 5_000, 100, 5, m=0), 0)
    assert result == Measurement(result.case, needs=result.needs)
    assert result.needs > 40 * 500_000**2


def test_threads_are_compared_quiet_and_beside_a_busy_process(monkeypatch):
    monkeypatch.setattr("accuacl.bench.threads.SECONDS", 0)
    quiet, busy = threads.both(Case("coverage", 50, 6, 4, 5, m=10))
    assert (quiet.busy, busy.busy) == (False, True)
    for row in (quiet, busy):
        assert min(row.one_cpu, row.one_wall, row.cpu, row.wall) > 0
        assert row.cpu_ratio == row.cpu / row.one_cpu
        assert row.as_dict()["wall_ratio"] == row.wall / row.one_wall
    assert multiprocessing.active_children() == []
    assert threads.both(Case("bait", 10, 5_000, 100, 5, m=0)) == []


def process_of(case, threads):
    return os.getpid(), [os.environ.get(name) for name in measuring.THREAD_VARIABLES]


def test_each_case_has_a_process_of_its_own_with_the_threads_that_were_asked_for():
    case = Case("uniform", 60, 6, 4, 5)
    process, threads = measuring.in_fresh_process(process_of, case, 3, threads=3)
    assert process != os.getpid()
    assert threads == ["3"] * 3


def test_command_prints_a_table_and_writes_json(tmp_path, monkeypatch):
    here = lambda function, *given, threads: function(*given)  # noqa: E731
    monkeypatch.setattr(measuring, "in_fresh_process", here)
    out = tmp_path / "bench.json"
    options = "--strategy accuacl --strategy bait --n 60 --d 8 --classes 4 --budget 10 --budget 20 --memory 20"
    code, text, error = accuacl("bench", *options.split(), "--json", out, width=160)
    assert code == 0, error
    assert text.count("accuacl ") >= 2
    assert "x dense" in text
    results = json.loads(out.read_text())["results"]
    assert [(r["case"]["strategy"], r["case"]["b"]) for r in results] == [
        ("accuacl", 10), ("accuacl", 20), ("bait", 10), ("bait", 20)]  # fmt: skip
    assert all(r["cpu"] > 0 for r in results)
    assert [p.name for p in tmp_path.iterdir()] == ["bench.json"]


@pytest.mark.parametrize("width", [80, 500])
def test_tables_fit_a_narrow_terminal_and_break_no_name_nor_number(width, monkeypatch):
    large = Case("accuacl-distribution", 10_000_000, 2048, 1000, 10_000, m=100_000, labelled=100_000)
    rows = [
        Measurement(large, 1234.5678, 1234.5678, 99_999 << 20, 0.01, 9e6, 1 << 50),
        Measurement(large, needs=999 << 30),
    ]
    compared = [threads.Threads(large, busy, 123.456, 123.456, 123.456, 123.456) for busy in (False, True)]
    monkeypatch.setattr(bench, "run", lambda cases, count: iter(rows))
    monkeypatch.setattr(bench, "compare", lambda cases: iter([compared]))
    options = ["bench", "--n", 5, "--strategy", "uniform", "--strategy", "margin"]
    text = accuacl(*options, width=width)[1] + accuacl(*options[:-2], "--compare-threads", width=width)[1]
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("accuacl-distribution" in line for line in lines) == 4
    for whole in ("1234.568", "99,999", "999 GiB", "123.456", "nothing"):
        assert whole in text
    assert "\u2026" not in text, "nothing is cut off"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bench", "--strategy", "best"], "there is no strategy 'best'"),
        (["bench", "--d", "3"], "give --n too"),
        (["bench", "--n", "5", "--json", "no/such/folder/x.json"], "there is no folder"),
        (["bench", "--n", "5", "--json", "."], "is a folder"),
        (["bench", "--n", "zero"], "'--n': Input should be a valid integer"),
        (["bench", "--nn", "3"], "--nn"),
        (["bunch"], "bunch"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(arguments, says):
    code, _, error = accuacl(*arguments)
    assert code == 2
    assert says in error
    assert len(error.splitlines()) == 1


def test_help_and_version():
    code, text, _ = accuacl("--help")
    assert code == 0
    assert "bench" in text
    code, text, _ = accuacl("--version")
    assert (code, text) == (0, "accuacl 0.1.0\n")

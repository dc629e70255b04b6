"""Reports read tables of query times, alone or beside runs, and name the processor."""

from __future__ import annotations

import csv

import pytest

from accuacl.base import machine
from accuacl.base.errors import InputError
from accuacl.experiments import make, report, run
from commands import SMALL, accuacl
from test_report_pages import check
from test_report_rows import grid, table

COLUMNS = ["strategy", "n", "d", "K", "b", "m", "labelled", "cpu_seconds", "wall_seconds", "extra_bytes", "machine"]
CPU = "an abacus, 2 cores"


def query_times(path, seconds=None, classes=(2, 4), **lacking):
    """A table in which a strategy's query takes so many seconds a class; lacking: classes it was not asked at."""
    seconds = seconds or {"uniform": 0.25, "bait": 50.0, "accuacl": 0.5}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, each in seconds.items():
            for K in classes:
                if K not in lacking.get(name, ()):
                    writer.writerow([name, 1000, 8, K, 10, 0, 50, each * K, each * K, 2**20 * K, CPU])
    return path


def test_a_table_of_query_times_alone(tmp_path):
    path = query_times(tmp_path / "efficiency.csv")
    for place in (path, tmp_path):
        page = check(report.write([place], tmp_path / "r.html").read_text())
        assert "Time and memory of queries" in page.text
        assert "10 picks of 1,000 examples, 8 wide, one query for each number of classes (2, 4)" in page.text
        assert "uniform 1.5 0.50 4 1.00" in page.text  # 6 classes in all at 0.25 s; as much memory
        assert "bait 300 100.00 4 1.00" in page.text
        assert CPU in page.text
        assert f"Read from {path} (6 queries)." in page.text


def test_query_times_beside_runs_have_a_section(tmp_path):
    table(tmp_path / "results.csv", grid(strategy=["uniform", "accuacl"]))
    query_times(tmp_path / "efficiency.csv")
    ended = accuacl("report", tmp_path, "--out", tmp_path / "r.html", width=500)
    assert ended.returncode == 0, ended.stderr
    assert "results.csv (2 rows)" in ended.stdout
    assert "efficiency.csv (6 queries)" in ended.stdout
    page = check((tmp_path / "r.html").read_text())
    assert page.tags.count("h1") == 1
    assert "Time and memory of queries" in page.text
    for name, format in (("r.md", "md"), ("r.tex", "latex")):
        assert "Time and memory of queries" in report.write([tmp_path], tmp_path / name, format).read_text()
    assert "cpu_seconds" not in report.write([tmp_path], tmp_path / "r.csv", "csv").read_text()


def test_a_strategy_that_lacks_a_size_is_named_and_left_out(tmp_path):
    path = query_times(tmp_path / "a.csv", bait=(4,))
    page = check(report.write([path], tmp_path / "r.html").read_text())
    assert "Not measured at all sizes, and left out: bait." in page.text
    assert "bait 100" not in page.text


def test_what_is_no_table_of_query_times(tmp_path):
    (tmp_path / "efficiency.csv").write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(InputError, match="has no rows; give a table with at least one query"):
        report.write([tmp_path], tmp_path / "r.html")
    (tmp_path / "efficiency.csv").write_text(",".join(COLUMNS) + "\nbait,10,x,1,1,1,1,1,1,1,m\n")
    with pytest.raises(InputError, match=r"efficiency.csv cannot be read: invalid literal .*; fix it or give another"):
        report.write([tmp_path], tmp_path / "r.html")
    path = query_times(tmp_path / "efficiency.csv")
    with pytest.raises(InputError, match="holds query times and no runs; leave out --only and --format csv"):
        report.write([path], tmp_path / "r.csv", "csv")
    assert not list(tmp_path.glob("r.*"))


def test_the_processor_is_named(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Abacus 9000 @ 1 Hz\nflags\t: beads\n")
    monkeypatch.setattr(machine, "CPU_INFO", tmp_path / "cpuinfo")
    run(make(SMALL), tmp_path / "run")
    page = check(report.write([tmp_path / "run"], tmp_path / "r.html").read_text())
    assert "Machines: Abacus 9000 @ 1 Hz, " in page.text
    monkeypatch.setattr(machine, "CPU_INFO", tmp_path / "gone")
    assert machine.cpu_name()

"""Reports in LaTeX, compiled by a real TeX: no error, nothing wider than the page, nothing too long for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from accuacl.experiments import make, report, run
from accuacl.experiments.report.formats import PREAMBLE
from test_report_pages import EVIL
from test_report_queries import query_times
from test_report_rows import grid, table

WIDEST = 45  # points: names that cannot be broken stick out a little


def compiled(folder, name, widest=WIDEST):
    """Compile a report as its first lines say; returns TeX's log. widest: points that a line may stick out; 0: any."""
    if not shutil.which("pdflatex"):
        if os.environ.get("ACCUACL_REQUIRE_TEX"):
            pytest.fail("pdflatex is missing; install Debian's texlive-latex-recommended and lmodern")
        pytest.skip("pdflatex is not installed; Debian's texlive-latex-recommended and lmodern have it")
    main = "\n".join([
        r"\documentclass{article}", PREAMBLE, r"\usepackage{lmodern}",
        r"\begin{document}", rf"\input{{{name}}}", r"\end{document}",
    ])  # fmt: skip
    (folder / "main.tex").write_text(main)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "main.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
    log = (folder / "main.log").read_text(errors="replace")
    assert done.returncode == 0, log[-3000:]
    assert (folder / "main.pdf").read_bytes().startswith(b"%PDF")
    assert "Float too large" not in log
    too_wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)]
    assert not widest or max(too_wide, default=0) < widest, log
    return log


def test_a_report_of_many_runs_compiles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # which makes paths short
    rows = grid(learner=["er", "der++"], strategy=["uniform", "entropy", "badge", "accuacl", "full"], seed=[0, 1])
    paths = [table(Path("results.csv"), rows), query_times(Path("efficiency.csv"))]
    report.write(paths, tmp_path / "report.tex", "latex", figures=tmp_path / "figures")
    log = compiled(tmp_path, "report", widest=1)
    assert "figures/" in log, "the plots are in it"
    text = (tmp_path / "report.tex").read_text()
    assert r"\section{Time and memory of queries}" in text


def test_names_that_mean_something_to_tex_compile(tmp_path):
    rows = grid(strategy=["uniform", "accuacl", EVIL], benchmark=EVIL)
    rows = [row | {"note": EVIL, "machine": EVIL, "version": "é ≥ 中"} for row in rows]
    report.write([table(tmp_path / "results.csv", rows)], tmp_path / "report.tex", "latex", title=EVIL)
    assert "Output written on main.pdf" in compiled(tmp_path, "report", widest=0)


def test_a_report_of_one_run_compiles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"benchmark": "split-digits", "tasks": 2, "labels": 4, "rounds": 2, "epochs": 1, "pool": 20, "test": 20}
    run(make(settings), Path("run"))
    report.write([Path("run")], tmp_path / "report.tex", "latex", figures=tmp_path / "figures")
    log = compiled(tmp_path, "report")
    assert "picked-images" in log
    assert r"\begin{longtable}" in (tmp_path / "report.tex").read_text()

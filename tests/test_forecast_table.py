"""The tables of the page on heads are those of the recorded rows; forecasts are by the present rule."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from accuacl.labeling.project.estimates import share
from accuacl.labeling.project.stopping import Measured

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import forecasts
import heads_study

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("right", "held"), [(0, 1), (9, 15), (15, 15), (29, 30), (150, 200)])
def test_the_held_out_items_are_known_by_their_interval(right, held):
    found = share(right, held)
    recorded = [round(number, 2) for number in (found.value, found.low, found.high)]
    assert forecasts.measured(85, [0, *recorded, 50.0]) == Measured(85, right, held)


def test_the_page_has_the_table_and_no_forecast_in_it_contradicts_an_estimate(monkeypatch):
    monkeypatch.setattr(forecasts, "RESULTS", ROOT / forecasts.RESULTS)
    parts = list(forecasts.PARTS["report"]())
    assert forecasts.report(parts) in (ROOT / "docs" / "heads.md").read_text(encoding="utf-8")
    rows = [row for name, seed in parts[:8] for row in forecasts.with_forecasts(forecasts.rows_of(name, seed))]
    assert any(row["forecast"].in_doubt for row in rows if row["forecast"])
    for found in (row["forecast"] for row in rows if row["forecast"]):
        if found.text.startswith("about"):
            assert found.labels > 10 or found.target - found.last.percent < 5


@pytest.mark.parametrize("part", heads_study.MARKS)
def test_the_page_has_the_tables_of_the_study(monkeypatch, part):
    monkeypatch.chdir(ROOT)
    assert heads_study.report(part) in (ROOT / "docs" / "heads.md").read_text(encoding="utf-8")

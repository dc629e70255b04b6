"""Metrics against their definitions on random accuracy matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from accuacl.experiments import metrics


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_definitions(tasks, seed):
    a = np.random.default_rng(seed).uniform(0, 100, (tasks, tasks))
    matrix = [[float(a[t, j]) if j <= t else None for j in range(tasks)] for t in range(tasks)]
    got = metrics.summary(matrix)
    last = tasks - 1
    assert got["average_accuracy"] == pytest.approx(np.mean(a[last]))
    assert got["learning_accuracy"] == pytest.approx(np.mean(np.diag(a)))
    if tasks > 1:
        assert got["forgetting"] == pytest.approx(np.mean([a[j, j] - a[last, j] for j in range(last)]))
        best = [max(a[t, j] for t in range(j, tasks)) for j in range(last)]
        assert got["forgetting_max"] == pytest.approx(np.mean([best[j] - a[last, j] for j in range(last)]))
        assert got["forgetting_max"] >= got["forgetting"] - 1e-9
    else:
        assert got["forgetting"] == got["forgetting_max"] == 0


@pytest.mark.parametrize("matrix", [[], [[1, 2]], [[1], [2]], [[1, None], [2, None]]])
def test_what_is_no_accuracy_matrix_is_refused(matrix):
    with pytest.raises(ValueError, match="row t of an accuracy matrix has"):
        metrics.summary(matrix)


def test_calibration_of_an_overconfident_and_of_an_honest_model():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 200_000)
    assert metrics.calibration_error(confidence, rng.random(200_000) < confidence) < 0.5
    assert metrics.calibration_error(np.full(1000, 0.9), rng.random(1000) < 0.5) == pytest.approx(40, abs=5)
    assert metrics.calibration_error(np.empty(0), np.empty(0, bool)) == 0

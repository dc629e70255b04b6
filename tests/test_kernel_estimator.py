"""The kernel head as a scikit-learn estimator."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import accuacl
from accuacl.experiments.heads import KernelRidgeHead


def digits():
    """Labelled rows and their classes, rows of the pool, rows to test and their classes."""
    x, numbers = load_digits(return_X_y=True)
    y = np.array([f"digit {c}" for c in numbers])
    return x[:60], y[:60], x[60:700], x[700:], y[700:]


@pytest.mark.filterwarnings("ignore:Skipping check")  # those that need pandas, or are for other arrays than NumPy's
def test_it_passes_the_checks_of_scikit_learn():
    check_estimator(KernelRidgeHead())


@pytest.mark.parametrize("kernels", ["gaussian", ("linear", "arc-cosine"), "chosen"])
def test_it_learns_with_any_kernels(kernels):
    x, y, _, test, answers = digits()
    head = clone(KernelRidgeHead(kernels=kernels)).fit(x, y)
    assert head.score(test, answers) > 0.75
    np.testing.assert_allclose(head.predict_proba(test).sum(axis=1), 1)


def test_the_pool_helps_with_few_labels():
    x, y, pool, test, answers = digits()
    plain = KernelRidgeHead().fit(x, y).score(test, answers)
    taught = KernelRidgeHead(pool_learning="self").fit(x, y, pool=pool)
    assert taught.head_.learned["pseudo_labels"] == round(0.8 * len(pool))
    assert taught.score(test, answers) > plain


def test_it_can_be_searched_over():
    x, y, *_ = digits()
    found = GridSearchCV(KernelRidgeHead(), {"ridge": [0.01, 1.0]}, cv=3).fit(np.tile(x, (3, 1)), np.tile(y, 3))
    assert found.best_params_["ridge"] in (0.01, 1.0)


def test_blocks_are_scaled_apart():
    x, y, _, test, answers = digits()
    wide = [np.hstack([rows, 1000 * rows[:, ::-1]]) for rows in (x, test)]
    head = KernelRidgeHead(blocks=[(0, 64), (64, 128)]).fit(wide[0], y)
    assert head.score(wide[1], answers) == pytest.approx(KernelRidgeHead().fit(x, y).score(test, answers), abs=0.01)


def test_heads_are_at_the_top_and_need_no_torch():
    code = (
        "import sys, accuacl, numpy as np;"
        "x = np.eye(4); head = accuacl.heads.fit(x, np.array([0, 0, 1, 1]));"
        "print(head.probabilities(x).shape, accuacl.heads.KernelRidgeHead().fit(x, [0, 0, 1, 1]).predict(x).shape);"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["(4,", "2)", "(4,)"]
    assert "heads" in dir(accuacl)

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
@pytest.mark.parametrize("options", [{}, {"kernels": "chosen", "pool_learning": "self"}], ids=["usual", "chosen"])
def test_it_passes_the_checks_of_scikit_learn(options):
    check_estimator(KernelRidgeHead(**options))


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


def test_a_given_ridge_is_kept_with_and_without_a_pool():
    x, y, pool, *_ = digits()
    for way in ("off", "self", "smooth"):
        assert KernelRidgeHead(ridge=3.0, pool_learning=way).fit(x, y, pool=pool).head_.ridge == 3.0


@pytest.mark.parametrize("way", ["self", "smooth"])
def test_the_order_of_the_pool_changes_no_bit(way):
    x, y, pool, test, _ = digits()
    pool = np.vstack([pool, pool[:40]])  # some rows twice
    one, other, as_lists = (
        KernelRidgeHead(pool_learning=way).fit(x, y, pool=rows).predict_proba(test)
        for rows in (pool, pool[::-1], pool.tolist())
    )
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, as_lists)


def test_a_large_pool_is_sampled():
    x, y, pool, *_ = digits()
    large = np.vstack([pool + 1e-3 * i for i in range(5)])
    head = KernelRidgeHead(pool_learning="smooth").fit(x, y, pool=large).head_
    assert len(head.smoothing.reference) == 1200
    several = KernelRidgeHead(pool_learning="smooth").fit(x, y, pool=[large] * 4).head_
    assert len(several.smoothing.reference) == 4 * 900
    equal = KernelRidgeHead(pool_learning="smooth").fit(x, y, pool=np.vstack([np.zeros((2000, 64)), large])).head_
    assert 300 < (equal.smoothing.reference == 0).all(axis=1).sum() < 600  # as many as their share


@pytest.mark.parametrize(
    ("more", "pool", "says"),
    [
        ({"pool_learning": "nonsense"}, None, "there is no pool-learning mode 'nonsense'"),
        ({"ridge": -1.0}, None, r"the ridge is -1.0; give a number above 0"),
        ({"ridge": np.nan}, None, r"the ridge is nan; give a number above 0"),
        ({"ridge": 0.0}, None, r"the ridge is 0.0; give a number above 0, or None"),
        ({"kernels": ()}, None, "a sum of kernels is empty"),
        ({"blocks": []}, None, "blocks is empty; give ranges of columns"),
        ({"blocks": [], "kernels": "chosen"}, None, "blocks is empty; give ranges of columns"),
        ({"pool_learning": "self"}, np.ones((5, 9)), "the pool has 9 columns and the labelled rows have 64"),
        ({"pool_learning": "self"}, [np.ones((5, 64)), np.ones((5, 2))], "the pool has 2 columns"),
        ({"pool_learning": "self"}, np.full((5, 64), np.nan), "pool contains NaN"),
    ],
)
def test_wrong_options_and_pools_are_named(more, pool, says):
    x, y, *_ = digits()
    with pytest.raises(ValueError, match=says):
        KernelRidgeHead(**more).fit(x, y, pool=pool)


def test_a_pool_without_rows_teaches_nothing():
    x, y, pool, *_ = digits()
    for empty in ([], pool[:0], [pool[:0], pool[:0]]):
        assert not KernelRidgeHead(pool_learning="self").fit(x, y, pool=empty).head_.learned

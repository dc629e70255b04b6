"""scikit-activeml both ways. The contract of its query strategies is that of its own test template."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB

from accuacl import Features, Query, register, select, strategy_names
from accuacl.base.errors import InputError
from commands import forgetting

pytest.importorskip("skactiveml", reason="the extra `skactiveml` is not installed")
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import Badge, CoreSet, QueryByCommittee, TypiClust, UncertaintySampling

from accuacl.skactiveml import AccuaclQueryStrategy, from_skactiveml

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5))
TRUTH = (X[:, 0] > 0).astype(float) + (X[:, 1] > 0.5)
Y = np.where(np.arange(40) < 8, TRUTH, np.nan)


def classifier(**more):
    return SklearnClassifier(LogisticRegression(), classes=[0, 1, 2], **more)


def ask(name="coverage", **given):
    strategy = AccuaclQueryStrategy(name, given.pop("options", None), random_state=given.pop("random_state", 1))
    return strategy.query(**{"X": X, "y": Y, "clf": classifier(), "batch_size": 5} | given)


def features(rows, clf):
    return Features(X[rows], clf.predict_proba(X[rows]))


@pytest.mark.parametrize("name", strategy_names())
def test_every_strategy_picks_unlabelled_rows_as_select_does(name):
    picked = ask(name)
    assert len(set(picked.tolist())) == 5
    assert picked.min() >= 8
    if name not in ("uniform", "badge", "badge+memory", "typiclust", "accuacl+uniform", "direct", "anchoral"):
        clf = classifier().fit(X, Y)
        pool, labelled = np.arange(8, 40), np.arange(8)
        known = {"labelled": features(labelled, clf), "classes": Y[labelled].astype(int)}
        same = select(name, pool=features(pool, clf), budget=5, **known)
        assert picked.tolist() == pool[same.indices].tolist()


def test_the_memory_counts():
    clf = classifier().fit(X, Y)
    remembered = X[:6] + 1
    picked = ask("accuacl", memory=remembered, past=100)
    same = select(
        "accuacl",
        pool=features(np.arange(8, 40), clf),
        budget=5,
        labelled=features(np.arange(8), clf),
        memory=Features(remembered, clf.predict_proba(remembered)),
        past=100,
    )
    assert picked.tolist() == (8 + same.indices).tolist()


@pytest.mark.parametrize("name", ["badge", "uniform", "coverage"])
def test_a_query_repeats_and_leaves_everything_as_it_was(name):
    strategy = AccuaclQueryStrategy(name, random_state=np.random.RandomState(0))
    clf = classifier().fit(X, Y)
    before = copy.deepcopy(clf.__dict__)
    for fit in (False, True):
        first, utilities = strategy.query(X, Y, clf, fit_clf=fit, batch_size=3, return_utilities=True)
        again, others = strategy.query(X, Y, clf, fit_clf=fit, batch_size=3, return_utilities=True)
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(utilities, others)
    assert clf.__dict__.keys() == before.keys()
    np.testing.assert_array_equal(clf.estimator_.coef_, before["estimator_"].coef_)


def test_utilities_tell_the_picks():
    picked, utilities = ask(return_utilities=True)
    assert utilities.shape == (5, 40)
    assert np.isnan(utilities[0]).sum() == 8
    for step, row in enumerate(picked):
        assert np.nanargmax(utilities[step]) == row
        assert np.isnan(utilities[step, picked[:step]]).all()


def test_candidates_by_row_and_by_value():
    picked, utilities = ask(return_utilities=True)
    unlabelled = np.arange(8, 40)
    by_row, same = ask(return_utilities=True, candidates=unlabelled)
    np.testing.assert_array_equal(picked, by_row)
    np.testing.assert_array_equal(utilities, same)
    by_value, of_candidates = ask(return_utilities=True, candidates=X[8:])
    np.testing.assert_array_equal(picked, by_value + 8)
    np.testing.assert_array_equal(utilities[:, 8:], of_candidates)
    one, alone = ask(return_utilities=True, candidates=[12], batch_size=1)
    assert one.tolist() == [12]
    assert np.isnan(alone).sum() == 39


def test_more_than_there_are():
    with pytest.warns(UserWarning, match="batch_size"):
        assert sorted(ask(batch_size=50)) == list(range(8, 40))


@pytest.mark.parametrize("labels", [0, 1, 39])
@pytest.mark.filterwarnings("ignore")  # its classifiers warn where they could not be fitted
def test_any_number_of_labels(labels):
    y = np.where(np.arange(40) < labels, TRUTH, np.nan)
    assert ask("badge", y=y, batch_size=1)[0] >= labels


@pytest.mark.parametrize(
    ("missing", "classes"), [(np.nan, [1.0, 2.0]), (0, [1, 2]), (None, ["A", "B"]), ("", ["A", "B"])]
)
def test_labels_of_any_type(missing, classes):
    y = np.full(40, missing, dtype=object if missing is None else np.array([missing, *classes]).dtype)
    y[:2] = classes
    clf = SklearnClassifier(LogisticRegression(), classes=classes, missing_label=missing)
    assert len(AccuaclQueryStrategy("margin", missing_label=missing).query(X, y, clf, batch_size=3)) == 3


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"clf": GaussianNB()}, TypeError),
        ({"clf": "x"}, TypeError),
        ({"fit_clf": "x"}, TypeError),
        ({"X": "x"}, (ValueError, TypeError)),
        ({"X": np.vstack([X, X])}, ValueError),
        ({"y": np.vstack([Y, Y])}, ValueError),
        ({"batch_size": 0}, ValueError),
        ({"batch_size": 1.2}, TypeError),
        ({"return_utilities": "x"}, TypeError),
        ({"candidates": np.nan}, ValueError),
        ({"sample_weight": np.ones(41)}, ValueError),
        ({"random_state": "x"}, ValueError),
        ({"name": "x"}, InputError),
        ({"options": [1]}, InputError),
        ({"clf": SklearnClassifier(Perceptron(), classes=[0, 1, 2])}, InputError),
    ],
)
def test_wrong_uses_are_refused_with_its_own_errors(given, error):
    with pytest.raises(error):
        ask(**given)


class WithEmbeddings(SklearnClassifier):
    """A classifier that can also return what its last layer is given."""

    def predict_proba(self, X, embed=False):
        probabilities = super().predict_proba(X)
        return (probabilities, X[:, :2]) if embed else probabilities


@pytest.mark.parametrize("flag", ["embed", {"embed": True}])
def test_embeddings_of_the_classifier(flag):
    clf = WithEmbeddings(LogisticRegression(), classes=[0, 1, 2]).fit(X, Y)
    strategy = AccuaclQueryStrategy("kcenter", clf_embedding_flag_name=flag)
    picked = strategy.query(X, Y, clf, fit_clf=False, batch_size=4)
    pool = Features(X[8:, :2], clf.predict_proba(X[8:]))
    same = select("kcenter", pool=pool, budget=4, labelled=Features(X[:8, :2], clf.predict_proba(X[:8])))
    assert picked.tolist() == (8 + same.indices).tolist()


def problem():
    clf = classifier().fit(X, Y)
    return {"pool": features(np.arange(8, 40), clf), "labelled": features(np.arange(8), clf)}, clf


@pytest.mark.parametrize(
    "theirs",
    [Badge(), CoreSet(), TypiClust(), UncertaintySampling(method="margin_sampling")],
    ids=lambda s: type(s).__name__,
)
def test_its_strategies_as_ours(theirs):
    sets, _ = problem()
    with forgetting():
        register("theirs")(from_skactiveml(theirs))
        picked = select("theirs", budget=6, seed=3, **sets)
        assert len(set(picked.indices.tolist())) == 6
        np.testing.assert_array_equal(picked.indices, select("theirs", budget=6, seed=3, **sets).indices)
        assert len(select("theirs", pool=sets["pool"], budget=0)) == 0


def test_it_is_asked_with_the_models_own_probabilities():
    sets, clf = problem()
    theirs = UncertaintySampling(method="entropy", random_state=0)
    picked = from_skactiveml(theirs)(Query(budget=4, **sets))
    same = theirs.query(X, Y, clf, fit_clf=False, batch_size=4)
    assert sorted(picked.indices + 8) == sorted(same)
    assert picked.scores["utility"].shape == (4,)


def test_core_set_and_kcenter_reach_the_same_radius():
    sets, _ = problem()
    theirs, ours = from_skactiveml(CoreSet())(Query(budget=5, **sets)), select("kcenter", budget=5, **sets)
    np.testing.assert_array_equal(theirs.indices, ours.indices)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "the query strategy is a NoneType, which has no `query`; give one of scikit-activeml's, such as"),
        (CoreSet, "CoreSet is a class; give a query strategy, CoreSet()."),
    ],
)
def test_what_is_no_query_strategy_is_refused(given, says):
    with pytest.raises(InputError) as refused:
        from_skactiveml(given)
    assert says in str(refused.value)


def test_a_strategy_that_wants_more_is_refused():
    with pytest.raises(InputError, match="QueryByCommittee also needs ensemble"):
        from_skactiveml(QueryByCommittee())

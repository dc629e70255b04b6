"""Features of scikit-learn's classifiers, from arrays and frames; picks as ids."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from accuacl import Features, InputError, select, strategy_names

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), np.arange(40) % 3
NAMES = [f"item-{row}" for row in range(40)]
FITTED = LogisticRegression().fit(X, Y)
EVEN = KNeighborsClassifier(3).fit(X, Y)


def test_a_classifier_sees_its_columns_and_a_pipeline_what_its_last_step_sees():
    plain = Features.from_estimator(FITTED, X)
    np.testing.assert_array_equal(plain.embeddings, X)
    np.testing.assert_array_equal(plain.probabilities, FITTED.predict_proba(X))
    assert plain.ids is None
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    np.testing.assert_allclose(
        Features.from_estimator(pipeline, X).embeddings, (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-12
    )
    given = Features.from_estimator(pipeline, X, embeddings=np.eye(40))
    assert (given.d, given.K) == (40, 3)
    texts = ["a red car", "a blue car", "my red home", "my old home"] * 10
    words = make_pipeline(TfidfVectorizer(), TruncatedSVD(2), LogisticRegression()).fit(texts, Y)
    assert Features.from_estimator(words, texts).d == 2


def test_whole_numbers_are_vectors_too():
    counts = RNG.integers(0, 9, (40, 3))
    np.testing.assert_array_equal(Features.from_estimator(EVEN, counts).embeddings, counts)


@pytest.mark.parametrize("name", strategy_names())
def test_picks_of_every_strategy_have_their_ids(name):
    pool = Features.from_estimator(FITTED, X, ids=NAMES)
    picked = select(name, pool=pool, budget=5)
    assert picked.ids.tolist() == [NAMES[row] for row in picked.indices]
    without = select(name, pool=Features(X, FITTED.predict_proba(X)), budget=5)
    np.testing.assert_array_equal(without.indices, picked.indices)
    assert without.ids is None


def test_ids_follow_their_rows():
    pool = Features.from_estimator(FITTED, X, ids=NAMES)
    some, others = pool.rows(np.array([7, 3])), pool.rows(slice(10, 12))
    assert some.ids.tolist() == ["item-7", "item-3"]
    assert Features.concat([some, others]).ids.tolist() == ["item-7", "item-3", "item-10", "item-11"]
    assert Features.concat([some, Features(X, FITTED.predict_proba(X))]).ids is None
    shown = repr(select("uniform", pool=pool, budget=1, seed=1))
    assert shown.splitlines()[1].split() == ["id", "draw"]
    assert shown.splitlines()[2].split()[0] in NAMES


def test_a_table_of_pyarrow_and_ids_from_its_column():
    table = pa.table({"key": NAMES, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    with warnings.catch_warnings(action="ignore"):  # scikit-learn's: the classifier was fitted without names
        pool = Features.from_estimator(EVEN, table.drop(["key"]), ids=table["key"])
    np.testing.assert_array_equal(pool.embeddings, X)
    np.testing.assert_array_equal(pool.probabilities, EVEN.predict_proba(X))
    assert pool.ids.tolist() == NAMES


def test_the_index_of_pandas_names_the_rows():
    pandas = pytest.importorskip("pandas", reason="the extra `frames` is not installed")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).sample(frac=1, random_state=0)[5:]
    fitted = LogisticRegression().fit(frame, Y[frame.index])
    picked = select("margin", pool=Features.from_estimator(fitted, frame), budget=4)
    np.testing.assert_array_equal(picked.ids, frame.index[picked.indices])
    assert picked.to_frame()["id"].tolist() == picked.ids.tolist()
    named = frame.assign(key=[NAMES[row] for row in frame.index])
    by_column = select("margin", pool=Features.from_estimator(fitted, frame, ids=named["key"]), budget=4)
    assert by_column.ids.tolist() == [NAMES[row] for row in picked.ids]


def test_polars_and_ids_from_its_column():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"key": NAMES, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    fitted = LogisticRegression().fit(frame.drop("key"), Y)
    picked = select("margin", pool=Features.from_estimator(fitted, frame.drop("key"), ids=frame["key"]), budget=4)
    assert picked.ids.tolist() == [NAMES[row] for row in picked.indices]
    assert frame.filter(polars.col("key").is_in(picked.ids.tolist())).height == 4


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Features.from_estimator(LogisticRegression, X), "is the class LogisticRegression; give a fitted one"),
        (lambda: Features.from_estimator(LogisticRegression(), X), "LogisticRegression has not been fitted"),
        (lambda: Features.from_estimator(Perceptron().fit(X, Y), X), "Perceptron has no predict_proba"),
        (lambda: Features.from_estimator("svm", X), "str has no predict_proba"),
        (
            lambda: Features.from_estimator(FITTED, X[:, :2]),
            "LogisticRegression does not take this X: X has 2 features",
        ),
        (lambda: Features.from_estimator(FITTED, X, ids=NAMES[1:]), "39 ids for 40 rows"),
        (lambda: Features.from_estimator(FITTED, X, ids=NAMES[:1] * 40), "'item-0' is the id of rows 0 and 1"),
        (lambda: Features.from_estimator(FITTED, X, ids=[None, *NAMES[1:]]), "row 0 has none"),
        (lambda: Features.from_estimator(FITTED, X, ids=[np.nan, *range(39)]), "row 0 has none"),
        (lambda: Features.from_estimator(FITTED, X, ids="key"), "ids are a str of shape ()"),
        (lambda: Features.from_estimator(FITTED, X, ids=3), "ids are an int of shape ()"),
        (lambda: Features.from_estimator(FITTED, X, ids=X), "ids are an ndarray of shape (40, 3)"),
        (lambda: Features.from_estimator(FITTED, X, ids=[[1], [2, 3]]), "a list of unequal lists"),
        (lambda: Features.from_estimator(FITTED, X, embeddings=X[1:]), "embeddings have 39 rows and probabilities 40"),
        (
            lambda: Features.from_estimator(KNeighborsClassifier(3).fit(X, np.stack([Y, Y], axis=1)), X),
            "predicts 2 outputs at once",
        ),
        (
            lambda: Features.from_estimator(
                make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(NAMES, Y), NAMES
            ),
            "are a sparse matrix of shape (40, 31)",
        ),
        (
            lambda: Features.from_estimator(
                make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(NAMES, Y),
                NAMES,
                embeddings=pa.table({"name": NAMES}),
            ),
            "the column 'name' of X holds object, not numbers",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(make, says):
    with pytest.raises(InputError) as refused:
        make()
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)

"""scikit-activeml, both ways: our strategies as its query strategies, its query strategies as ours.

    from accuacl.skactiveml import AccuaclQueryStrategy
    rows = AccuaclQueryStrategy("coverage").query(X, y, clf, batch_size=20)

    from accuacl.skactiveml import from_skactiveml
    accuacl.strategies.register("prob-cover")(from_skactiveml(skactiveml.pool.ProbCover()))

Needs the extra `skactiveml`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, a_type, install
from accuacl.features import Features
from accuacl.strategies import Query, Selection, select

try:
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier
    from skactiveml.utils import MISSING_LABEL, check_equal_missing_label, check_scalar, check_type, is_labeled
    from sklearn import clone
except ModuleNotFoundError as error:
    raise InputError(f"this needs the extra `skactiveml` ({error}); {install('skactiveml')}.") from None

__all__ = ["AccuaclQueryStrategy", "from_skactiveml"]

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class AccuaclQueryStrategy(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """A strategy of accuacl as a query strategy of scikit-activeml.

    strategy: its name, such as "coverage". options: its keyword arguments, such as {"share": 0.3}.
    clf_embedding_flag_name: as for scikit-activeml's Badge: what makes `clf.predict_proba` return (probabilities,
    embeddings); without it, and where the classifier returns probabilities alone, X itself is the embedding.
    """

    def __init__(
        self,
        strategy: str = "accuacl",
        options: dict[str, Any] | None = None,
        clf_embedding_flag_name: str | dict[str, Any] | None = None,
        missing_label: Any = MISSING_LABEL,
        random_state: Any = None,
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.strategy = strategy
        self.options = options
        self.clf_embedding_flag_name = clf_embedding_flag_name

    def query(
        self,
        X: Any,
        y: Any,
        clf: Any,
        fit_clf: bool = True,
        sample_weight: Any = None,
        memory: Any = None,
        past: int | None = None,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Which candidates should be labelled next? Rows of X, or of the candidates where these are samples.

        X, y, candidates and batch_size are as everywhere in scikit-activeml.

        clf: a SkactivemlClassifier; SklearnClassifier makes one of anything with `predict_proba`. fit_clf:
        whether a copy of it is fitted first, with sample_weight. memory: samples of finished tasks, for
        strategies that keep the past alive. past: how many samples these tasks had. return_utilities: also
        give, for each pick, a utility of each candidate: 1 for the first pick down to 1 / batch_size for the
        last, 0 for the others, NaN for what is labelled or was picked before. Sets allow no finer ones.
        """
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        samples, rows = self._transform_candidates(candidates, X, y)
        check_type(clf, "clf", SkactivemlClassifier)
        check_equal_missing_label(clf.missing_label, self.missing_label_)
        check_scalar(fit_clf, "fit_clf", bool)
        if not hasattr(clf, "predict_proba"):
            raise InputError(f"clf is {clf}, which has no predict_proba; give a classifier that has one.")
        if self.options is not None and not isinstance(self.options, dict):
            raise InputError(f'options is {self.options!r}; give a dict of arguments, such as {{"share": 0.3}}.')
        if fit_clf:
            clf = clone(clf).fit(X, y) if sample_weight is None else clone(clf).fit(X, y, sample_weight)
        known = X[is_labeled(y, self.missing_label_)]
        picked = select(
            self.strategy,
            pool=self._features(clf, samples),
            budget=batch_size,
            labelled=self._features(clf, known) if len(known) else None,
            memory=self._features(clf, np.asarray(memory)) if memory is not None else None,
            past=past,
            seed=int(self.random_state_.randint(2**31)),
            **(self.options or {}),
        ).indices
        width = len(samples) if rows is None else len(X)
        columns = np.arange(len(samples)) if rows is None else rows
        query_indices = columns[picked]
        return (query_indices, _utilities(columns, query_indices, width)) if return_utilities else query_indices

    def _features(self, clf: Any, samples: NDArray[Any]) -> Features:
        flag = self.clf_embedding_flag_name
        given = clf.predict_proba(samples, **({flag: True} if isinstance(flag, str) else flag or {}))
        probabilities, embeddings = given if isinstance(given, tuple) else (given, samples)
        return Features(np.reshape(embeddings, (len(samples), -1)).astype(float), probabilities)


def _utilities(columns: NDArray[np.int64], picked: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    utilities = np.full((len(picked), width), np.nan)
    utilities[:, columns] = 0.0
    utilities[:, picked] = 1 - np.arange(len(picked)) / max(1, len(picked))
    for step in range(1, len(picked)):
        utilities[step, picked[:step]] = np.nan
    return utilities


class _KnownProbabilities(SkactivemlClassifier):  # type: ignore[misc]
    """A fitted classifier that answers with the probabilities of the query, found by a sample's embedding."""

    def __init__(self, features: tuple[Features, ...] = (), missing_label: Any = MISSING_LABEL) -> None:
        super().__init__(classes=range(features[0].K) if features else None, missing_label=missing_label)
        self.features = features
        self.classes_ = np.arange(features[0].K) if features else None
        self._found = {
            _key(h): p
            for part in features
            for h, p in zip(np.asarray(part.embeddings), np.asarray(part.probabilities), strict=True)
        }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.array([self._found[_key(h)] for h in X], dtype=float)


def _key(row: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(row, dtype=float).tobytes()


def from_skactiveml(query_strategy: Any, **arguments: Any) -> Callable[[Query], Selection]:
    """A query strategy of scikit-activeml as one of ours, to be given to `register`.

    Its samples are the embeddings of the pool and of what is labelled in this task; its classifier, if it asks for one,
    answers with the model's probabilities and is never fitted. A query does not hold labels: labelled examples have the
    class that the model predicts. arguments: further ones of its `query`, such as an ensemble.

    >>> from skactiveml.pool import CoreSet
    >>> pool = Features(np.eye(4, 2), np.full((4, 2), 0.5))
    >>> len(from_skactiveml(CoreSet())(Query(pool, 2)))
    2
    """
    if inspect.isclass(query_strategy):
        raise InputError(f"{query_strategy.__name__} is a class; give a query strategy, {query_strategy.__name__}().")
    if not callable(getattr(query_strategy, "query", None)):
        raise InputError(
            f"the query strategy is {a_type(query_strategy)}, which has no `query`; give one of "
            "scikit-activeml's, such as skactiveml.pool.CoreSet()."
        )
    accepted = inspect.signature(query_strategy.query).parameters
    wanted = {each.name for each in accepted.values() if each.default is each.empty and each.kind in NAMED}
    missing = wanted - {"X", "y", "clf"} - set(arguments)
    if missing:
        raise InputError(
            f"{type(query_strategy).__name__} also needs {', '.join(sorted(missing))}; give that to from_skactiveml, "
            "by name."
        )

    def strategy(query: Query) -> Selection:
        known = (query.labelled,) if query.labelled is not None else ()
        sets = (query.pool, *known)
        X = np.concatenate([np.asarray(features.embeddings, dtype=float) for features in sets])
        y = np.full(len(X), np.nan)
        for features in known:
            y[len(query.pool) :] = np.asarray(features.probabilities).argmax(axis=1)
        if query.count == 0:
            return Selection(np.empty(0, np.int64), {})
        given = dict(arguments)
        if "clf" in accepted and "clf" not in given:
            given |= {"clf": _KnownProbabilities(sets)} | ({"fit_clf": False} if "fit_clf" in accepted else {})
        ask = clone(query_strategy).set_params(random_state=query.seed % 2**32)
        picked, utilities = ask.query(X=X, y=y, batch_size=query.count, return_utilities=True, **given)
        indices = np.asarray(picked, dtype=np.int64)
        utility = np.asarray(utilities, dtype=float)[np.arange(len(indices)), indices]
        return Selection(indices, {"utility": utility} if np.isfinite(utility).all() else {})

    strategy.__name__ = type(query_strategy).__name__
    strategy.__doc__ = query_strategy.__doc__
    return strategy

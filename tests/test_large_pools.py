"""Large pools: coverage looks at a sample, which is recorded and said; small pools are looked at as a whole."""

from __future__ import annotations

import numpy as np

from accuacl.labeling.project import describe_sample
from commands import accuacl
from scripted import finish, new_project, outcome, records

COVERING = {"learner": "ridge", "head": "linear", "strategy": "coverage", "first_round": "coverage", "per_round": 2}


def test_picks_come_from_a_sample_that_stays(tmp_path):
    with new_project(tmp_path / "p", sample=40, **COVERING) as project:
        project.advance()
        (query,) = records(project, "*/query").values()
        assert (query["sample"], query["pool"]) in ((40, 60), (41, 60))  # the held-out item is drawn from all
        assert "task 1, round 1: chosen from " in accuacl("project", "status", project.directory).stdout
        finish(project)
        queries = list(records(project, "*/query").values())
        assert [query["sample"] for query in queries[1:]] == [40]
        assert describe_sample(project.journal).startswith(
            "task 1, round 2: chosen from 40 of the 58 items left, drawn at random"
        )


def test_gains_are_those_of_the_whole_pool(tmp_path):
    gains = []
    for sample in (0, 40):
        with new_project(tmp_path / str(sample), sample=sample, **COVERING) as project:
            project.advance()
            (query,) = records(project, "*/query").values()
            gains.append(next(gain for gain in query["scores"]["gain"] if gain is not None))
    assert np.isclose(*gains, rtol=0.3)
    assert gains[0] != gains[1]


def test_a_pool_that_is_not_larger_has_the_same_picks_and_says_nothing(tmp_path):
    outcomes = []
    for sample in (0, 60, 5000):
        with new_project(tmp_path / str(sample), sample=sample, **COVERING) as project:
            finish(project)
            assert describe_sample(project.journal) == ""
            outcomes.append(outcome(project))
    assert outcomes[0] == outcomes[1] == outcomes[2]

"""Statistics of a report: paired differences from a baseline, the sign-flip test against brute force, the paper's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments.report import comparison, documents, paper
from accuacl.experiments.report.comparison import (
    Baseline,
    compare,
    difference_tables,
    find_baseline,
    holm,
    sign_flip_test,
)
from accuacl.experiments.report.document import Table, Text
from accuacl.experiments.report.groups import BASELINES, make_groups
from test_report_rows import grid, made_up, with_metrics

UNIFORM = Baseline(("strategy",), ("uniform",))
MORE = (("uniform", 10), ("accuacl", 30))
few_numbers = st.lists(st.integers(-30, 30).map(lambda x: x / 10), min_size=1, max_size=9)


def texts(table, group=0):
    """The cells of a table's rows, by their heads; what is small stands behind the value."""
    return {row.heads[0]: [f"{c.text} {c.small}".strip() for c in row.cells] for row in table.groups[group].rows}


def test_gains_of_the_papers_own_table():
    for baselines, gains, pairs in ((BASELINES, (23.8, 17.0), 24 * 5 + 8), (["uniform"], (10.0, 11.8), 24)):
        accuracy, forgetting = (paper.papers_changes(baselines, metric) for metric in paper.MAIN_METRICS)
        assert round(100 * np.mean(list(accuracy.values())), 1) == gains[0]
        assert round(-100 * np.mean(list(forgetting.values())), 1) == gains[1]
        assert len(accuracy) == pairs  # BAIT has values in eight cells


def test_gains_of_our_runs_by_hand():
    values = {"uniform": (10, 40), "entropy": (8, 50), "accuacl": (12, 30), "full": (50, 1)}
    rows = [
        with_metrics(made_up(strategy=name, seed=s, memory=100), a + s, f)
        for name, (a, f) in values.items()
        for s in (-1, 1)
    ]
    cells = texts(paper.gain_table(make_groups(rows)))
    assert cells["uniform"][:2] == ["+20.0 %", "-25.0 %"]
    assert cells["all of uniform, entropy"][:2] == ["+35.0 %", "-32.5 %"]
    assert cells["all of uniform, entropy"][-1] == "2"
    assert list(cells) == ["uniform", "all of uniform, entropy"]
    better = [with_metrics(row, 20, 10) if row["strategy"] == "entropy" else row for row in rows]
    assert texts(paper.gain_table(make_groups(better)))["entropy, the strongest"][:2] == ["-40.0 %", "+200.0 %"]
    odd = [with_metrics(row, 1, 90) for row in grid(strategy=["uniform", "accuacl"], memory=100, lr=0.5)]
    assert texts(paper.gain_table(make_groups(rows + odd))) == cells  # another setting is not the paper's table
    assert paper.gain_table(make_groups(odd)) is None
    assert paper.gain_table(make_groups(grid(strategy=["uniform", "entropy"]))) is None
    assert paper.gain_table(make_groups(grid(strategy="accuacl"))) is None


def test_gains_are_of_the_seeds_that_both_have():
    values = {"uniform": {0: 10, 1: 20, 2: 90}, "accuacl": {0: 12, 1: 24}}
    rows = [with_metrics(made_up(strategy=s, seed=i), a, a) for s, by in values.items() for i, a in by.items()]
    rows += [with_metrics(made_up(strategy="uniform", seed=0, memory=200), 0, 0)]  # nothing to be relative to
    rows += [with_metrics(made_up(strategy="accuacl", seed=0, memory=200), 5, 5)]
    cells = texts(paper.gain_table(make_groups(rows)))["uniform"]
    assert cells[:2] == ["+20.0 %", "+20.0 %"]
    assert cells[-1] == "1"


def test_the_papers_gain_is_over_exactly_our_pairs():
    names = {"er": ["uniform", "accuacl"], "gss": ["badge", "kcenter", "accuacl"], "der++": ["uniform"]}
    rows = [row for learner, some in names.items() for row in grid(learner=learner, strategy=some, memory=[100, 200])]
    rows += grid(learner="er", strategy=["uniform", "accuacl"], memory=123)  # the paper has no such cell
    cells = texts(paper.gain_table(make_groups(rows)))["all of uniform, kcenter, badge"]
    ours = [("er", "uniform"), ("gss", "badge"), ("gss", "kcenter")]
    expected = []
    for metric in ("average_accuracy", "forgetting"):
        of_paper = paper.main_cells(metric)
        values = [(of_paper["split-cifar10", memory, name], base) for memory in (100, 200) for name, base in ours]
        expected.append(100 * np.mean([(cell["accuacl"] - cell[base]) / cell[base] for cell, base in values]))
    assert cells[2:4] == [f"{change:+.1f} %" for change in expected]
    assert cells[-1] == "7"


@pytest.mark.parametrize(
    "setting",
    [
        {"tasks": 3},
        {"tasks": 5, "last_rounds": 8},
        {"model": "resnet18"},
        {"labels": 500},
        {"rounds": 10},
        {"replay": "cycled"},
        {"order": "classes"},
        {"memory": 123},
        {"benchmark": "split-digits", "memory": 50},
    ],
)
def test_other_settings_have_no_value_of_the_papers(setting):
    rows = grid(**({"benchmark": "split-cifar100", "memory": 500, "strategy": ["uniform", "accuacl"]} | setting))
    groups = make_groups(rows)
    gains = paper.gain_table(groups)
    assert gains is None or texts(gains)["uniform"][2:4] == ["-", "-"]
    (table,) = [
        block for block in documents.many_runs(rows).blocks if isinstance(block, Table) and "learning" in block.note
    ]
    assert "paper" not in [column.name for column in table.columns]
    assert "aper" not in table.note


def test_settings_that_change_no_result_keep_the_papers_values():
    rows = grid(strategy=["uniform", "accuacl"], memory=100, threads=2, evaluate="round")
    assert "-" not in texts(paper.gain_table(make_groups(rows)))["uniform"]


@given(few_numbers)
def test_sign_flips_against_brute_force(differences):
    d = np.array(differences)
    means = [abs(np.mean(d * signs)) for signs in itertools.product((1, -1), repeat=len(d))]
    expected = np.mean([mean >= abs(d.mean()) - 1e-9 for mean in means])
    assert sign_flip_test(differences) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), max_size=6), st.floats(0, 1))
def test_holm_rejects_what_the_step_down_procedure_rejects(ps, level):
    """By its definition: from the smallest p on, reject while p <= level / (number of those not yet rejected)."""
    left, rejected = sorted(range(len(ps)), key=lambda i: ps[i]), set()
    while left and ps[left[0]] * len(left) <= level:
        rejected.add(left.pop(0))
    corrected = holm(ps)
    assert {i for i in range(len(ps)) if corrected[i] <= level} >= rejected
    assert all(corrected[i] > level or level == 1 for i in left)


@given(few_numbers)
def test_sign_flips_look_at_both_sides(differences):
    assert sign_flip_test(differences) == sign_flip_test([-d for d in differences])
    assert 2 / 2 ** len(differences) <= sign_flip_test(differences) + 1e-12 <= 1 + 1e-9


def test_many_pairs_are_sampled_reproducibly_and_near_the_exact_p():
    d = np.random.default_rng(0).normal(0.4, 1.0, 16)
    exact = sign_flip_test(d)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "FLIPS", 50_000)  # of 65,536
        sampled = sign_flip_test(d)
        assert sampled == sign_flip_test(d)
    assert sampled == pytest.approx(exact, abs=0.005)
    assert sign_flip_test(np.full(30, 1.0)) == pytest.approx(1e-5, rel=0.01)
    signs = 1 - 2 * ((np.arange(2**16)[:, None] >> np.arange(16)) & 1)
    assert exact == np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-9)


def test_no_difference_is_no_evidence():
    assert sign_flip_test([0.0, 0.0, 0.0]) == 1.0
    with pytest.raises(ValueError, match="at least one"):
        sign_flip_test([])


def test_pairs_are_of_the_same_cell_and_seed():
    rows = grid(strategy=["uniform", "accuacl"], learner=["er", "gss"], seed=[0, 1])
    rows += grid(strategy="accuacl", learner="er", seed=[7])  # uniform has no seed 7
    rows += grid(strategy="accuacl", learner="der++", seed=[0])  # nor this learner
    ((pooled,),) = compare(make_groups(rows), UNIFORM).values()
    by = {(r["learner"], r["strategy"], r["seed"]): r["average_accuracy"] for r in rows}
    expected = [by[name, "accuacl", s] - by[name, "uniform", s] for name in ("er", "gss") for s in (0, 1)]
    differences = pooled.differences["average_accuracy"]
    assert [differences[s][i] for i in range(2) for s in (0, 1)] == pytest.approx(expected)
    assert pooled.by_seed("average_accuracy") == pytest.approx([np.mean(expected[::2]), np.mean(expected[1::2])])
    assert (pooled.labels, len(pooled.cells), set(differences), pooled.seeds) == (("accuacl",), 2, {0, 1}, 2)
    by_cell = compare(make_groups(rows), UNIFORM, by_cell=True)
    title = "split-cifar10, memory 100, 1000 labels a task (cpu scale)"
    assert list(by_cell) == [f"{title}, er", f"{title}, gss"]
    assert [one.pairs for (one,) in by_cell.values()] == [2, 2]


def test_the_same_run_counts_once():
    rows = grid(strategy=["uniform", "accuacl"], memory=100, seed=[0, 1])
    rows += [row | {"memory": 200} for row in rows]  # both larger than all labels
    rows += [row | {"memory": 300, "accuracy_matrix": None} for row in rows[:4]]  # nobody knows
    other = [row | {"memory": 400} for row in rows[:4]]
    changed = [row | ({"accuracy_matrix": [[1.0]]} if row["strategy"] == "accuacl" else {}) for row in other]
    for some, pairs, cells in ((rows[:8], 2, 1), (rows, 4, 2), (rows[:4] + changed, 4, 2)):
        ((found,),) = compare(make_groups(some), UNIFORM).values()
        assert (found.pairs, len(found.cells), found.seeds) == (pairs, cells, 2)


def test_too_few_seeds_cannot_tell():
    for seeds, says in (
        ([0], "1 seed cannot tell"),
        ([0, 1, 2], "3 seeds cannot tell"),
        (list(range(5)), "5 seeds cannot tell"),
        (list(range(6)), "0.031 better"),
    ):
        rows = [with_metrics(made_up(strategy="uniform", seed=s), 10 + s, 50) for s in seeds]
        rows += [with_metrics(made_up(strategy="accuacl", seed=s), 30 + s, 70) for s in seeds]
        (table,) = difference_tables(make_groups(rows), UNIFORM)
        cells = texts(table)["accuacl"]
        assert cells[0] == "+20.00"
        assert cells[1] == says
        assert cells[2] == "+20.00"
        assert cells[3] == says.replace("better", "worse")
    many = grid(strategy=["uniform", "accuacl"], memory=[100, 200, 300], learner=["er", "gss", "er-ace"])
    assert texts(difference_tables(make_groups(many), UNIFORM)[0])["accuacl"][1] == "1 seed cannot tell"
    two = grid(strategy=["uniform", "accuacl"], memory=[100, 200, 300], seed=[0, 1])
    assert texts(difference_tables(make_groups(two), UNIFORM)[0])["accuacl"][1] == "2 seeds cannot tell"


def test_cells_that_share_a_seed_count_once():
    """Over seeds the differences are 1, 2, ..., 6: the four cells of a seed are not four of them."""
    cells = [(learner, memory) for learner in ("er", "gss") for memory in (100, 200)]
    rows = [
        with_metrics(made_up(strategy=name, seed=s, learner=learner, memory=memory), 20 + better * (s + 1 + i), 50)
        for s in range(6)
        for i, (learner, memory) in zip((-3, -1, 1, 3), cells, strict=True)
        for name, better in (("uniform", 0), ("accuacl", 1))
    ]
    ((pooled,),) = compare(make_groups(rows), UNIFORM).values()
    assert pooled.by_seed("average_accuracy") == [1, 2, 3, 4, 5, 6]
    cells = texts(difference_tables(make_groups(rows), UNIFORM)[0])["accuacl"]
    assert cells[:2] == ["+3.50", "0.031 better"]
    assert cells[-3:] == ["24", "4", "6"]
    few = [row for row in rows if row["seed"] < 3]
    assert texts(difference_tables(make_groups(few), UNIFORM)[0])["accuacl"][1] == "3 seeds cannot tell"


def test_strategies_are_not_compared_over_bounds_where_there_are_learners():
    axes = {"strategy": ["uniform", "accuacl"], "seed": list(range(6))}
    bounds = grid(learner=["finetune", "joint"], memory=0, **axes)
    rows = grid(learner=["er", "icarl"], **axes) + grid(learner="lwf", memory=0, **axes) + bounds
    groups = make_groups(rows)
    pooled, by_cell = difference_tables(groups, UNIFORM)
    assert texts(pooled)["accuacl"][-3:] == ["18", "3", "6"]
    assert "so are lower and upper bounds over all cells, unless learners or memories are compared" in pooled.note
    assert len(by_cell.groups) == 5
    only = difference_tables(make_groups(bounds), UNIFORM)
    assert texts(only[0])["accuacl"][-3:] == ["12", "2", "6"]
    shown = texts(difference_tables(groups, find_baseline("er", groups))[0])
    assert set(shown) == {"icarl", "finetune", "joint", "lwf, alpha 0.1"}
    memories = make_groups(grid(memory=[0, 100], seed=[0, 1]))
    assert list(texts(difference_tables(memories, Baseline(("memory",), ("100",)))[0])) == ["0"]


def test_p_is_corrected_for_the_number_of_rows():
    rows = []
    for s in range(8):
        noise = [0.3, -0.2][s % 2]
        for name, a, f in (("uniform", 15, 30), ("entropy", 20 + noise, 20), ("kcenter", 14.9 + noise, 30)):
            rows.append(with_metrics(made_up(strategy=name, seed=s), a, f))
        rows.append(with_metrics(made_up(strategy="accuacl", seed=s), 10, 40))
    (table,) = difference_tables(make_groups(rows), UNIFORM)
    cells = texts(table)
    assert cells["accuacl"] == ["-5.00", "0.023 worse", "+10.00", "0.023 worse", "8", "1", "8"]  # 3 x 2 / 2^8
    assert cells["entropy"][:2] == ["+5.05", "0.023 better"]
    assert cells["kcenter"][1] == f"{sign_flip_test([0.2, -0.3] * 4):.3f}"
    ranks = {row.heads[0]: [cell.rank for cell in row.cells] for row in table.groups[0].rows}
    assert ranks["entropy"] == ["", "best", "", "best", "", "", ""]
    assert set(ranks["accuacl"]) == {""}


def test_cells_with_seeds_enough_are_tested_apart():
    rows = grid(strategy=["uniform", "accuacl"], memory=[100, 200], seed=list(range(6)))
    pooled, by_cell = difference_tables(make_groups(rows), UNIFORM)
    assert pooled.caption == "Differences from uniform, over all cells"
    assert texts(pooled)["accuacl"][-3:] == ["12", "2", "6"]
    assert [group.title.split(",")[1] for group in by_cell.groups] == [" memory 100", " memory 200"]
    assert texts(by_cell, 1)["accuacl"][-3:] == ["6", "1", "6"]
    few = grid(strategy=["uniform", "accuacl"], memory=[100, 200], seed=[0, 1])
    assert len(difference_tables(make_groups(few), UNIFORM)) == 1


def test_scales_are_apart_and_runs_that_stop_early_left_out():
    axes = {"strategy": ["uniform", "accuacl"], "seed": [0, 1]}
    rows = grid(**axes) + grid(**axes, tasks=3)
    (table,) = difference_tables(make_groups(rows), UNIFORM)
    assert texts(table)["accuacl"][-3:] == ["2", "1", "2"]
    (early,) = difference_tables(make_groups(rows[4:]), UNIFORM)
    assert texts(early)["accuacl"][-3:] == ["2", "1", "2"]
    (both,) = difference_tables(make_groups(rows[:4] + grid(**axes, scale="paper")), UNIFORM)
    assert [group.title for group in both.groups] == ["cpu scale", "paper scale"]


def test_the_baseline_by_any_name():
    rows = grid(
        strategy=["uniform", "accuacl"], learner=["er", "der++"], memory_policy=["paper", "coverage"], seed=[0, 1]
    )
    rows += grid(strategy="accuacl", learner="er", lam=[0.5], seed=[0, 1])
    groups = make_groups(rows)
    for name, baseline, labels, pairs in (
        ("uniform", Baseline(("strategy",), ("uniform",)), ["accuacl", "accuacl, lam 0.5"], [8, 2]),
        ("accuacl", Baseline(("strategy",), ("accuacl",)), ["uniform", "accuacl, lam 0.5"], [8, 2]),
        ("er", Baseline(("learner",), ("er",)), ["der++"], [8]),
        ("coverage", Baseline(("memory_policy",), ("coverage",)), ["paper"], [8]),
        ("memory-policy=paper", Baseline(("memory_policy",), ("paper",)), ["coverage"], [8]),
        ("strategy=uniform,", Baseline(("strategy",), ("uniform",)), ["accuacl", "accuacl, lam 0.5"], [8, 2]),
        (
            "strategy=accuacl,lam=0.5",
            Baseline(("strategy", "lam"), ("accuacl", "0.5")),
            ["uniform / unset", "accuacl / unset"],
            [2, 2],
        ),
        ("lambda=0.5", Baseline(("lam",), ("0.5",)), ["unset"], [2]),
        (
            "strategy=uniform, memory-policy=paper",
            Baseline(("strategy", "memory_policy"), ("uniform", "paper")),
            ["uniform / coverage", "accuacl / paper", "accuacl / coverage", "accuacl, lam 0.5 / paper"],
            [4, 4, 4, 2],
        ),
    ):
        assert find_baseline(name, groups) == baseline
        (compared,) = compare(groups, baseline).values()
        assert {" / ".join(one.labels): one.pairs for one in compared} == dict(zip(labels, pairs, strict=True)), name
    for wrong, says in (
        ("entropy", "no run has the baseline 'entropy'; the runs have strategy uniform, accuacl"),
        ("labels=3", "no run has the baseline 'labels=3'; the runs have labels 1000"),
        ("memry=3", "there is no setting 'memry'; did you mean memory?"),
        ("=3", "'=3' names no setting; give its name before the equals sign, as in labels=100."),
        (",", "no run has the baseline ','; the runs have strategy uniform, accuacl"),
        ("strategy=uniform,memry=3", "there is no setting 'memry'; did you mean memory?"),
        ("strategy=uniform,labels=3", "the runs have strategy / labels uniform / 1000, accuacl / 1000"),
    ):
        with pytest.raises(InputError) as refused:
            find_baseline(wrong, groups)
        assert says in str(refused.value)


def test_a_name_that_is_a_strategy_and_a_memory_policy_is_refused():
    axes = {"strategy": ["uniform", "coverage"], "memory_policy": ["paper", "coverage"], "seed": [0, 1]}
    groups = make_groups(grid(**axes))
    with pytest.raises(InputError, match="give strategy=coverage or memory_policy=coverage"):
        find_baseline("coverage", groups)
    for name, caption, row in (
        ("strategy=coverage", "coverage", "uniform"),
        ("memory_policy=coverage", "memory policy coverage", "memory policy paper"),
    ):
        (table,) = difference_tables(groups, find_baseline(name, groups))
        assert table.caption == f"Differences from {caption}, over all cells"
        assert list(texts(table)) == [row]
    both = find_baseline("strategy=uniform,memory_policy=paper", groups)
    (table,) = difference_tables(groups, both)
    assert table.caption.startswith("Differences from uniform / memory policy paper: split-cifar10, ")
    assert "uniform / memory policy coverage" in texts(table)
    for only in ("strategy", "memory_policy"):  # the other has nothing to be compared with
        alike = make_groups(grid(**(axes | {name: "coverage" for name in axes if name not in ("seed", only)})))
        assert find_baseline("coverage", alike) == Baseline((only,), ("coverage",))


def test_the_usual_baseline():
    for axes, expected in (
        ({"strategy": ["accuacl", "uniform"]}, Baseline(("strategy",), ("uniform",))),
        ({"strategy": ["accuacl", "badge"]}, Baseline(("strategy",), ("badge",))),
        ({"learner": ["gss", "er"]}, Baseline(("learner",), ("er",))),
        ({"memory_policy": ["coverage", "paper"]}, Baseline(("memory_policy",), ("paper",))),
        ({"strategy": ["uniform", "full"]}, None),
        ({"labels": [10, 20]}, None),
    ):
        assert find_baseline("", make_groups(grid(**axes))) == expected
    twenty, thirty = (Baseline(("labels",), (label,)) for label in ("20", "30"))
    assert find_baseline("", make_groups(grid(labels=[10, 20])), twenty) == Baseline(("labels",), ("20",))
    assert find_baseline("", make_groups(grid(labels=[10, 20])), thirty) is None
    assert str(Baseline(("labels", "learner"), ("20", "er"))) == "labels 20, learner er"


def test_a_sample_of_the_pool_is_an_option_of_the_strategy():
    axes = {"strategy": "coverage", "seed": [0, 1]}
    groups = make_groups(grid(**(axes | {"strategy": "uniform"})) + grid(**axes, sample=5000))
    (table,) = difference_tables(groups, find_baseline("", groups))
    assert list(texts(table)) == ["coverage, sample 5000"]
    for name in ("coverage", "strategy=coverage"):
        assert find_baseline(name, groups) == Baseline(("strategy",), ("coverage, sample 5000",))
    several = find_baseline("strategy=coverage,memory_policy=paper", groups)
    assert several == Baseline(("strategy", "memory_policy"), ("coverage, sample 5000", "paper"))
    more = make_groups(grid(**axes, sample=[5000, 9000]))
    with pytest.raises(InputError, match="no run has the baseline 'coverage'"):  # two of them have that name
        find_baseline("coverage", more)
    assert "--sample 0 " in documents.command(make_groups(grid(**axes))[0])
    assert "--sample" not in documents.command(make_groups(grid(strategy="uniform"))[0])


def test_the_usual_baseline_is_one_that_has_pairs():
    seeds = {"seed": [0, 1]}
    rows = grid(strategy="uniform", learner=["er", "der++"], rounds=2, **seeds)
    groups = make_groups(rows + grid(strategy="coverage", learner="er", rounds=5, **seeds))
    assert find_baseline("", groups) == Baseline(("learner",), ("er",))
    assert find_baseline("", groups, Baseline(("rounds",), ("5",))) == Baseline(
        ("learner",), ("er",)
    )  # the paths' own has no pair


def test_what_is_not_compared_is_said_and_why():
    nothing = "Nothing is compared: no two runs with the same seed differ only in strategy, learner or memory policy"
    for rows, says in (
        (grid(strategy="uniform", seed=0) + grid(strategy="accuacl", seed=1), f"{nothing}."),
        (grid(labels=[100, 500]), f"{nothing}; --baseline labels=100 compares everything that differs."),
        (
            grid(strategy="uniform", memory_policy="paper") + grid(strategy="accuacl", memory_policy="coverage"),
            "--baseline strategy=uniform,memory_policy=paper compares everything that differs.",
        ),
        (grid(labels=100, memory=100) + grid(labels=200, memory=200), "--baseline memory=100,labels=100 compares"),
    ):
        shown = [block.text for block in documents.many_runs(rows).blocks if isinstance(block, Text)]
        assert any(says in text for text in shown), shown
    assert not any("Nothing" in block.text for block in documents.many_runs(grid()).blocks if isinstance(block, Text))


def test_tables_of_differences_state_the_labels_per_task():
    axes = {"strategy": ["uniform", "accuacl"], "seed": [0, 1]}
    (one,) = difference_tables(make_groups(grid(**axes, labels=500)), UNIFORM)
    assert one.caption == "Differences from uniform: split-cifar10, memory 100, 500 labels a task (cpu scale), er"
    (several,) = difference_tables(make_groups(grid(**axes, labels=[100, 500, 1000])), UNIFORM)
    assert several.caption == "Differences from uniform, over all cells"
    assert several.note.startswith("The cells have 100 labels a task, 500 labels a task or 1000 labels a task. ")


def test_seeds_that_tell_one_difference_may_not_tell_several():
    """Six pairs give p = 0.031 at best, and 0.062 if two are compared; twelve pairs beside them change nothing."""
    rows = []
    for s in range(6):
        for name, a in (("uniform", 10), ("entropy", 20), ("accuacl", 30)):
            rows.append(with_metrics(made_up(strategy=name, seed=s), a + s, 50))
    (table,) = difference_tables(make_groups(rows), UNIFORM)
    assert texts(table)["entropy"][1] == "0.062 6 seeds cannot tell"
    (table,) = difference_tables(make_groups([row for row in rows if row["strategy"] != "accuacl"]), UNIFORM)
    assert texts(table)["entropy"][1] == "0.031 better"
    more = [with_metrics(made_up(strategy=n, seed=s), a + s, 50) for s in range(6, 12) for n, a in MORE]
    (table,) = difference_tables(make_groups(rows + more), UNIFORM)
    assert texts(table)["entropy"][1] == "0.031 better"  # the other has the smaller p, so this one counts once
    assert texts(table)["accuacl"][1] == "< 0.001 better"


def test_a_learner_without_memory_is_compared_with_every_memory():
    rows = grid(learner="er", memory=[100, 200], strategy="uniform", seed=[0, 1])
    rows += grid(learner="finetune", memory=0, strategy="uniform", seed=[0, 1])
    for baseline, label in (("er", "finetune"), ("finetune", "er")):
        ((found,),) = compare(make_groups(rows), find_baseline(baseline, make_groups(rows))).values()
        assert (found.labels, found.pairs, len(found.cells)) == ((label,), 4, 2)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_kendall_against_all_pairs(points):
    signs = [(np.sign(a - c), np.sign(b - d)) for (a, b), (c, d) in itertools.combinations(points, 2)]
    ordered = sum(abs(a) for a, _ in signs) * sum(abs(b) for _, b in signs)
    if not ordered or len(points) < 3:
        assert paper.kendall(points) is None
    else:
        assert paper.kendall(points) == pytest.approx(sum(a * b for a, b in signs) / np.sqrt(ordered))


def test_where_the_papers_ordering_holds_and_where_not():
    theirs = {"uniform": 10.9, "entropy": 9.9, "accuacl": 14.1}  # split-cifar100, M=500, er
    rows = [with_metrics(made_up(benchmark="split-cifar100", memory=500, strategy=s), a, -a) for s, a in theirs.items()]
    table = paper.agreement_table(make_groups(rows))
    assert "The best by A is the paper's best in 1 of 1 cells." in table.note
    assert texts(table)["er"][:2] == ["accuacl", "accuacl"]
    assert texts(table)["er"][4] == "1.00"
    worse = [row | ({"average_accuracy": 1.0} if row["strategy"] == "accuacl" else {}) for row in rows]
    table = paper.agreement_table(make_groups(worse))
    assert "The best by A is the paper's best in 0 of 1 cells." in table.note
    assert texts(table)["er"][:2] == ["uniform", "accuacl"]
    assert paper.agreement_table(make_groups(grid(benchmark="split-digits", strategy=["uniform", "accuacl"]))) is None

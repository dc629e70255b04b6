"""Statistics of a report: gains against the paper's own, the sign-flip test against brute force, rank agreement."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accuacl.report import agreement, paper, significance
from accuacl.report.gains import gain, in_words, relative, sentences
from accuacl.report.groups import BASELINES, make_groups, usual
from accuacl.report.significance import paired, sign_flip
from test_report_rows import grid, made_up, with_metrics

few_numbers = st.lists(st.integers(-30, 30).map(lambda x: x / 10), min_size=1, max_size=9)


def test_gains_of_the_papers_own_table():
    accuracy, forgetting = paper.main_cells("average_accuracy"), paper.main_cells("forgetting")
    everywhere = gain(accuracy, forgetting, "accuacl", BASELINES)
    assert (round(everywhere.accuracy, 1), round(everywhere.less_forgetting, 1)) == (23.8, 17.0)
    assert everywhere.pairs == 24 * 5 + 8  # BAIT has values in eight cells
    uniform = gain(accuracy, forgetting, "accuacl", ["uniform"])
    assert (round(uniform.accuracy, 1), round(uniform.less_forgetting, 1)) == (10.0, 11.8)
    assert in_words(uniform) == "+10.0 % average accuracy and 11.8 % less forgetting"


def test_gains_leave_out_full_what_is_missing_and_what_has_no_base():
    cells = [{"accuacl": 12.0, "uniform": 10.0, "full": 99.0}, {"accuacl": 5.0, "uniform": 0.0}, {"uniform": 3.0}]
    assert relative(cells, "accuacl", BASELINES) == [pytest.approx(0.2)]
    assert gain({}, {}, "accuacl", BASELINES) is None


def test_gains_in_words():
    values = {"uniform": (10, 40), "entropy": (8, 50), "accuacl": (12, 30), "full": (50, 1)}
    rows = [
        with_metrics(made_up(strategy=name, seed=s, memory=100), a + s, f)
        for name, (a, f) in values.items()
        for s in (-1, 1)
    ]
    said = sentences(make_groups(rows))
    assert said[0].startswith(
        "accuacl against all baselines (uniform, entropy): +35.0 % average accuracy and 32.5 % less"
    )
    assert "the mean over 2 cells and baselines" in said[0]
    assert "The paper has +23.8 % average accuracy and 17.0 % less forgetting over all its cells" in said[0]
    assert said[1].startswith("accuacl against uniform: +20.0 % average accuracy and 25.0 % less")
    assert len(said) == 2
    odd = [with_metrics(row, 1, 90) for row in grid(strategy=["uniform", "accuacl"], memory=100, lr=0.5)]
    assert sentences(make_groups(rows + odd)) == said  # another setting is not the paper's table
    assert len(sentences(make_groups(odd))) == 1  # but if there is nothing else
    kept = ("strategy", "seed", "memory")
    other = [row | usual(row["benchmark"], "paper") | {name: row[name] for name in kept} for row in rows]
    both = sentences(make_groups(rows + other))
    assert [text.split(",")[0] for text in both] == ["At cpu scale"] * 2 + ["At paper scale"] * 2
    assert sentences(make_groups(grid(strategy=["uniform", "entropy"]))) == []
    assert sentences(make_groups(grid(strategy="accuacl"))) == []


@given(few_numbers)
def test_sign_flips_against_brute_force(differences):
    d = np.array(differences)
    means = [abs(np.mean(d * signs)) for signs in itertools.product((1, -1), repeat=len(d))]
    expected = np.mean([mean >= abs(d.mean()) - 1e-9 for mean in means])
    assert sign_flip(differences) == pytest.approx(expected)


@given(few_numbers)
def test_sign_flips_look_at_both_sides(differences):
    assert sign_flip(differences) == sign_flip([-d for d in differences])
    assert 2 / 2 ** len(differences) <= sign_flip(differences) + 1e-12 <= 1 + 1e-9


def test_many_pairs_are_sampled_reproducibly_and_near_the_exact_p():
    d = np.random.default_rng(0).normal(0.4, 1.0, 16)
    exact = sign_flip(d)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(significance, "EXACT", 8)
        sampled = sign_flip(d)
        assert sampled == sign_flip(d)
    assert sampled == pytest.approx(exact, abs=0.005)
    assert sign_flip(np.full(30, 1.0)) == pytest.approx(1e-5, rel=0.01)
    reference = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert exact == pytest.approx(reference.pvalue)


def test_no_difference_is_no_evidence():
    assert sign_flip([0.0, 0.0, 0.0]) == 1.0
    with pytest.raises(ValueError, match="at least one"):
        sign_flip([])


def test_pairs_are_of_the_same_cell_and_seed():
    rows = grid(strategy=["uniform", "accuacl"], learner=["er", "gss"], seed=[0, 1])
    rows += grid(strategy="accuacl", learner="er", seed=[7])  # uniform has no seed 7
    rows += grid(strategy="accuacl", learner="der++", seed=[0])  # nor this learner
    found, cells = paired(make_groups(rows), "accuacl", "uniform", "average_accuracy")
    by = {(r["learner"], r["strategy"], r["seed"]): r["average_accuracy"] for r in rows}
    expected = [by[name, "accuacl", s] - by[name, "uniform", s] for name in ("er", "gss") for s in (0, 1)]
    assert found == pytest.approx(expected)
    assert cells == 2


def test_what_is_sure_is_said_and_what_is_not_too():
    rows = []
    for s in range(8):
        noise = [0.3, -0.2][s % 2]
        for name, a, f in (("uniform", 10, 40), ("entropy", 20 + noise, 20), ("kcenter", 14.9 + noise, 30)):
            rows.append(with_metrics(made_up(strategy=name, seed=s), a, f))
        rows.append(with_metrics(made_up(strategy="accuacl", seed=s), 15, 30))
    said, table = significance.compare(make_groups(rows))
    assert "better than uniform; worse than entropy; not surely better or worse than kcenter" in said[0]
    assert "In forgetting, accuacl is better than uniform; worse than entropy" in said[1]
    cells = {line.heads[0]: [cell.text for cell in line.cells] for line in table.blocks[0].lines}
    assert cells["uniform"] == ["+5.00", "0.008", "-10.00", "0.008", "8", "1"]  # 2 / 2^8


def test_runs_that_begin_alike_count_once():
    rows = grid(strategy=["uniform", "accuacl"], seed=[0, 1]) + grid(
        strategy=["uniform", "accuacl"], tasks=3, seed=[0, 1]
    )
    _, table = significance.compare(make_groups(rows))
    assert [cell.text for cell in table.blocks[0].lines[0].cells[-2:]] == ["2", "1"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_kendall_against_scipy(pairs):
    x, y = zip(*pairs, strict=True)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert agreement.kendall(x, y) is None
    else:
        assert agreement.kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic)


def test_where_the_papers_ordering_holds_and_where_not():
    theirs = {"uniform": 10.9, "entropy": 9.9, "accuacl": 14.1}  # split-cifar100, M=500, er
    rows = [with_metrics(made_up(benchmark="split-cifar100", memory=500, strategy=s), a, -a) for s, a in theirs.items()]
    short, said, table = agreement.compare(make_groups(rows))
    assert short[0] == "The best strategy in average accuracy is the paper's best in 1 of 1 cells and learners."
    assert said[0] == "The paper's best in average accuracy in split-cifar100, memory 500 (cpu scale) with er."
    assert [cell.text for cell in table.blocks[0].lines[0].cells][:2] == ["accuacl", "accuacl"]
    assert table.blocks[0].lines[0].cells[4].text == "1.00"
    worse = [row | ({"average_accuracy": 1.0} if row["strategy"] == "accuacl" else {}) for row in rows]
    short, said, table = agreement.compare(make_groups(worse))
    assert "0 of 1" in short[0]
    assert said[0].endswith("it is uniform (10.9), in the paper accuacl, which has 1.0 here.")
    assert agreement.compare(make_groups(grid(benchmark="split-digits", strategy=["uniform", "accuacl"]))) == (
        [],
        [],
        None,
    )

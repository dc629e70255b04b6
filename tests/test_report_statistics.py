"""Statistics of a report: gains against the paper's own, the sign-flip test against brute force, rank agreement."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from accuacl.experiments.report import documents, paper, paper as agreement, significance
from accuacl.experiments.report.document import Table
from accuacl.experiments.report.gains import changes, mean_gain, sentences
from accuacl.experiments.report.groups import BASELINES, defaults, make_groups
from accuacl.experiments.report.paper import agreement_table
from accuacl.experiments.report.significance import differences, holm, sign_flip_test, significance_table
from test_report_rows import grid, made_up, with_metrics


def compared(groups):
    """What a report says about significance, and its table."""
    comparisons = significance.compare(groups)
    return significance.sentences(comparisons), significance_table(comparisons)


few_numbers = st.lists(st.integers(-30, 30).map(lambda x: x / 10), min_size=1, max_size=9)


def test_gains_of_the_papers_own_table():
    accuracy, forgetting = paper.main_cells("average_accuracy"), paper.main_cells("forgetting")
    everywhere = mean_gain(changes(accuracy, "accuacl", BASELINES), changes(forgetting, "accuacl", BASELINES))
    assert (round(everywhere.accuracy, 1), round(everywhere.less_forgetting, 1)) == (23.8, 17.0)
    assert everywhere.pairs == 24 * 5 + 8  # BAIT has values in eight cells
    uniform = mean_gain(changes(accuracy, "accuacl", ["uniform"]), changes(forgetting, "accuacl", ["uniform"]))
    assert (round(uniform.accuracy, 1), round(uniform.less_forgetting, 1)) == (10.0, 11.8)
    assert str(uniform) == "+10.0 % average accuracy and 11.8 % less forgetting"


def test_gains_leave_out_full_what_is_missing_and_what_has_no_base():
    cells = [{"accuacl": 12.0, "uniform": 10.0, "full": 99.0}, {"accuacl": 5.0, "uniform": 0.0}, {"uniform": 3.0}]
    assert changes(dict(enumerate(cells)), "accuacl", BASELINES) == {(0, "uniform"): pytest.approx(0.2)}
    assert mean_gain({}, {}) is None


def test_gains_in_words():
    values = {"uniform": (10, 40), "entropy": (8, 50), "accuacl": (12, 30), "full": (50, 1)}
    rows = [
        with_metrics(made_up(strategy=name, seed=s, memory=100), a + s, f)
        for name, (a, f) in values.items()
        for s in (-1, 1)
    ]
    said = sentences(make_groups(rows))
    assert said[0].startswith(
        "accuacl compared with the strongest baseline, uniform: +20.0 % average accuracy and 25.0 % less"
    )
    assert said[1].startswith(
        "accuacl compared with all baselines (uniform, entropy): +35.0 % average accuracy and 32.5 % less"
    )
    assert "(mean relative change over 2 pairs of a cell and a baseline)" in said[1]
    assert "The paper has +23.8 % average accuracy and 17.0 % less forgetting over all its cells" in said[1]
    assert len(said) == 2
    better = [with_metrics(row, 20, 10) if row["strategy"] == "entropy" else row for row in rows]
    first, second, third = sentences(make_groups(better))
    assert first.startswith("accuacl compared with the strongest baseline, entropy: -40.0 % average accuracy")
    assert second.startswith("accuacl compared with uniform: +20.0 %")
    assert "all baselines" in third
    odd = [with_metrics(row, 1, 90) for row in grid(strategy=["uniform", "accuacl"], memory=100, lr=0.5)]
    assert sentences(make_groups(rows + odd)) == said  # another setting is not the paper's table
    (alone,) = sentences(make_groups(odd))  # but if there is nothing else, without the paper's
    assert alone.endswith("+0.0 % average accuracy and 0.0 % less forgetting (relative change in one cell).")
    kept = ("strategy", "seed", "memory")
    other = [row | defaults(row["benchmark"], "paper") | {name: row[name] for name in kept} for row in rows]
    both = sentences(make_groups(rows + other))
    assert [text.split(",")[0] for text in both] == ["At cpu scale"] * 2 + ["At paper scale"] * 2
    assert sentences(make_groups(grid(strategy=["uniform", "entropy"]))) == []
    assert sentences(make_groups(grid(strategy="accuacl"))) == []


def test_the_papers_gain_is_over_exactly_our_pairs():
    names = {"er": ["uniform", "accuacl"], "gss": ["badge", "kcenter", "accuacl"], "der++": ["uniform"]}
    rows = [row for learner, some in names.items() for row in grid(learner=learner, strategy=some, memory=[100, 200])]
    rows += grid(learner="er", strategy=["uniform", "accuacl"], memory=123)  # the paper has no such cell
    said = sentences(make_groups(rows))[-1]
    theirs = [paper.main_cells(metric) for metric in ("average_accuracy", "forgetting")]
    ours = [("er", "uniform"), ("gss", "badge"), ("gss", "kcenter")]
    parts = []
    for cells in theirs:
        values = [
            cells["split-cifar10", memory, learner] | {"base": base} for memory in (100, 200) for learner, base in ours
        ]
        parts.append(100 * np.mean([(cell["accuacl"] - cell[cell["base"]]) / cell[cell["base"]] for cell in values]))
    assert "(mean relative change over 7 pairs of a cell and a baseline). " in said
    expected = (
        f"{parts[0]:+.1f} % average accuracy and {-parts[1]:.1f} % less forgetting over the 6 of these that it has."
    )
    assert said.endswith(f"over all its cells, {expected}")


def test_uniform_alone_is_not_all_baselines():
    (said,) = sentences(make_groups(grid(strategy=["uniform", "accuacl"], memory=100)))
    assert said.startswith("accuacl compared with uniform: ")
    assert "The paper has +10.0 % average accuracy and 11.8 % less forgetting over all its cells, " in said
    assert "23.8" not in said


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
def test_other_settings_have_gains_but_not_the_papers(setting):
    rows = grid(**({"benchmark": "split-cifar100", "memory": 500, "strategy": ["uniform", "accuacl"]} | setting))
    groups = make_groups(rows)
    (said,) = sentences(groups)
    assert said.startswith("accuacl compared with uniform: ")
    assert "paper" not in said
    assert agreement.cells_of_paper(groups) == []
    (table,) = [
        block for block in documents.many_runs(rows).blocks if isinstance(block, Table) and "learning" in block.note
    ]
    assert "paper" not in [column.name for column in table.columns]
    assert "aper" not in table.note


def test_settings_that_change_no_result_keep_the_papers_values():
    rows = grid(strategy=["uniform", "accuacl"], memory=100, threads=2, evaluate="round")
    assert "The paper has" in sentences(make_groups(rows))[0]


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
        patch.setattr(significance, "FLIPS", 50_000)  # of 65,536
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
    pairs = differences(make_groups(rows), "accuacl", "uniform", "average_accuracy")
    by = {(r["learner"], r["strategy"], r["seed"]): r["average_accuracy"] for r in rows}
    expected = [by[name, "accuacl", s] - by[name, "uniform", s] for name in ("er", "gss") for s in (0, 1)]
    assert pairs.values == pytest.approx(expected)
    assert (pairs.cells, pairs.seeds) == (2, 2)


def test_the_same_run_counts_once():
    rows = grid(strategy=["uniform", "accuacl"], memory=100, seed=[0, 1])
    rows += [row | {"memory": 200} for row in rows]  # both larger than all labels
    rows += [row | {"memory": 300, "accuracy_matrix": None} for row in rows[:4]]  # nobody knows
    other = [row | {"memory": 400} for row in rows[:4]]
    changed = [row | ({"accuracy_matrix": [[1.0]]} if row["strategy"] == "accuacl" else {}) for row in other]
    for some, pairs, cells in ((rows[:8], 2, 1), (rows, 4, 2), (rows[:4] + changed, 4, 2)):
        found = differences(make_groups(some), "accuacl", "uniform", "average_accuracy")
        assert (len(found.values), found.cells, found.seeds) == (pairs, cells, 2)


def test_gains_are_of_the_seeds_that_both_have_and_of_each_run_once():
    values = {"uniform": {0: 10, 1: 20, 2: 90}, "accuacl": {0: 12, 1: 24}}
    rows = [with_metrics(made_up(strategy=s, seed=i), a, a) for s, by in values.items() for i, a in by.items()]
    said = sentences(make_groups(rows))[0]
    expected = "accuacl compared with uniform: +20.0 % average accuracy and 20.0 % more forgetting (relative change in"
    assert said.startswith(f"{expected} one cell)")
    rows += [row | {"memory": 200} for row in rows]  # both larger than all labels
    assert sentences(make_groups(rows))[0].startswith(f"{expected} one cell)")


def test_one_seed_is_never_sure():
    rows = [
        with_metrics(made_up(strategy=s, memory=m, learner=name), a, 1 / a)
        for s, a in (("uniform", 10), ("accuacl", 20))
        for m in (100, 200, 300)
        for name in ("er", "gss", "er-ace")
    ]
    said, table = compared(make_groups(rows))
    assert said == ["All runs of accuacl that can be compared share one seed, which is too few to test a difference."]
    assert [cell.rank for cell in table.groups[0].rows[0].cells] == [""] * 6
    assert table.groups[0].rows[0].cells[1].text == "0.004"
    assert "Pairs that share a seed are treated as independent" in table.note


def test_the_summary_is_about_the_same_cells_and_each_scale_apart():
    axes = {"strategy": ["uniform", "accuacl"], "seed": [0, 1]}
    usual_ones = grid(learner=["er", "gss", "der++"], memory=[100, 200], **axes)
    rows = [with_metrics(row, 20 if row["strategy"] == "accuacl" else 10) for row in usual_ones]
    odd = [with_metrics(row, 10 if row["strategy"] == "accuacl" else 90) for row in grid(labels=[10, 20, 30], **axes)]
    said, table = compared(make_groups(rows + odd))
    assert said[0].startswith("In average accuracy, accuacl is significantly better than uniform (")
    assert [group.title for group in table.groups] == ["accuacl minus", "accuacl, all settings pooled, minus"]
    assert [group.rows[0].cells[-2].text for group in table.groups] == ["12", "18"]
    assert "left out" not in table.note
    said, table = compared(make_groups(odd))
    assert said[0].endswith("paired by seed and cell, with different settings).")
    assert [group.title for group in table.groups] == ["accuacl, all settings pooled, minus"]
    assert " (mean relative change over 3 cells with different settings)." in sentences(make_groups(odd))[0]
    kept = ("strategy", "learner", "seed", "memory")
    other = [
        row | defaults(row["benchmark"], "paper") | {name: row[name] for name in kept} | {"average_accuracy": 20}
        for row in rows
    ]
    said, table = compared(make_groups(rows + other))
    assert said[0].startswith("At cpu scale, in average accuracy, accuacl is significantly better than uniform")
    assert said[2].startswith(
        "At paper scale, in average accuracy, accuacl is not significantly different from uniform"
    )
    assert [group.title for group in table.groups] == ["accuacl at cpu scale minus", "accuacl at paper scale minus"]
    short, _ = agreement.sentences(agreement.cells_of_paper(make_groups(rows + other)))
    assert [text.split(" average")[0] for text in short[::2]] == [
        f"At {scale} scale, the best strategy in" for scale in ("cpu", "paper")
    ]
    assert all("of 6 cells" in text for text in short)


def test_what_is_sure_is_said_and_what_is_not_too():
    rows = []
    for s in range(8):
        noise = [0.3, -0.2][s % 2]
        for name, a, f in (("uniform", 10, 40), ("entropy", 20 + noise, 20), ("kcenter", 14.9 + noise, 30)):
            rows.append(with_metrics(made_up(strategy=name, seed=s), a, f))
        rows.append(with_metrics(made_up(strategy="accuacl", seed=s), 15, 30))
    said, table = compared(make_groups(rows))
    assert (
        "significantly better than uniform; significantly worse than entropy; not significantly different from kcenter"
        in said[0]
    )
    assert "In forgetting, accuacl is significantly better than uniform; significantly worse than entropy" in said[1]
    cells = {line.heads[0]: [cell.text for cell in line.cells] for line in table.groups[0].rows}
    assert cells["uniform"] == ["+5.00", "0.008", "-10.00", "0.008", "8", "1"]  # 2 / 2^8


def test_runs_that_begin_alike_count_once():
    rows = grid(strategy=["uniform", "accuacl"], seed=[0, 1]) + grid(
        strategy=["uniform", "accuacl"], tasks=3, seed=[0, 1]
    )
    _, table = compared(make_groups(rows))
    assert [cell.text for cell in table.groups[0].rows[0].cells[-2:]] == ["2", "1"]
    left_out = "Runs that stop early or go on longer than usual are left out."
    assert left_out in table.note
    for all_alike in (rows[:4], rows[4:]):
        _, table = compared(make_groups(all_alike))
        assert left_out not in table.note


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_kendall_against_all_pairs(points):
    x, y = zip(*points, strict=True)
    signs = [(np.sign(a - c), np.sign(b - d)) for (a, b), (c, d) in itertools.combinations(points, 2)]
    ordered = sum(abs(a) for a, _ in signs) * sum(abs(b) for _, b in signs)
    if not ordered:
        assert agreement.kendall(x, y) is None
    else:
        assert agreement.kendall(x, y) == pytest.approx(sum(a * b for a, b in signs) / np.sqrt(ordered))


def test_where_the_papers_ordering_holds_and_where_not():
    theirs = {"uniform": 10.9, "entropy": 9.9, "accuacl": 14.1}  # split-cifar100, M=500, er
    rows = [with_metrics(made_up(benchmark="split-cifar100", memory=500, strategy=s), a, -a) for s, a in theirs.items()]
    cells = agreement.cells_of_paper(make_groups(rows))
    short, said = agreement.sentences(cells)
    table = agreement_table(cells)
    assert short[0] == "The best strategy in average accuracy is the paper's best in 1 of 1 cell."
    assert (
        said[0]
        == "The paper's best in average accuracy is best here too in split-cifar100, memory 500 (cpu scale) with er."
    )
    assert [cell.text for cell in table.groups[0].rows[0].cells][:2] == ["accuacl", "accuacl"]
    assert table.groups[0].rows[0].cells[4].text == "1.00"
    worse = [row | ({"average_accuracy": 1.0} if row["strategy"] == "accuacl" else {}) for row in rows]
    short, said = agreement.sentences(agreement.cells_of_paper(make_groups(worse)))
    assert "0 of 1" in short[0]
    assert said[0].endswith("uniform is best in average accuracy (10.9), in the paper accuacl (here 1.0).")
    assert agreement.cells_of_paper(make_groups(grid(benchmark="split-digits", strategy=["uniform", "accuacl"]))) == []
    assert agreement.sentences([]) == ([], [])

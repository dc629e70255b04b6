"""Tables of a report: which there are, what is best in them, what stands beside it, and that nothing is lost."""

from __future__ import annotations

import itertools

import pytest

from accuacl.experiments import learners
from accuacl.experiments.models.nets import NETS
from accuacl.experiments.report import documents, paper
from accuacl.experiments.report.document import Table
from accuacl.experiments.report.groups import make_groups
from accuacl.experiments.report.measures import METRICS, ranks
from accuacl.experiments.report.tables import comparison_tables, order_tables, setting_tables
from accuacl.experiments.sweeps import read_recipe, runs_of
from test_report_rows import grid, made_up, with_metrics

A, F = METRICS["average_accuracy"], METRICS["forgetting"]
SIX = ["uniform", "entropy", "least-confidence", "kcenter", "badge", "accuacl"]


@pytest.mark.parametrize(
    ("values", "metric", "expected"),
    [
        ([1.0, 2.0, 3.0], A, ["", "second", "best"]),
        ([1.0, 2.0, 3.0], F, ["best", "second", ""]),
        ([3.0, 3.0, 2.0], A, ["best", "best", "second"]),
        ([3.01, 2.99, 2.0], A, ["best", "best", "second"]),  # the same as printed
        ([3.0, 2.0, 2.0], A, ["best", "second", "second"]),
        ([2.0, 2.0, 2.0], A, ["best", "best", "best"]),
        ([1.0, 2.0], A, ["", "best"]),
        ([1.0], A, [""]),
        ([None, 1.0], A, ["", ""]),
        ([None, 1.0, 2.0], A, ["", "", "best"]),
        ([1.0, 2.0, 3.0], METRICS["seconds_query"], ["", "", ""]),
        ([], A, []),
    ],
)
def test_best_and_second(values, metric, expected):
    assert ranks(values, metric) == expected


def lines(table: Table) -> dict[tuple[str, str], tuple]:
    return {(group.title, row.heads[0]): row.cells for group in table.groups for row in group.rows}


def main_table(rows) -> Table:
    return comparison_tables(make_groups(rows))[0]


def test_a_table_by_hand():
    values = {"uniform": (10, 5), "entropy": (8, 9), "accuacl": (12, 3), "full": (99, 0)}
    rows = [
        with_metrics(made_up(strategy=name, memory=100, seed=s), a + 2 * s, f)
        for (name, (a, f)), s in itertools.product(values.items(), (0, 1))
    ]
    table = main_table(rows)
    found = lines(table)
    assert [(c.text, c.small, c.rank) for c in found["er", "accuacl"][:2]] == [
        ("13.0", "± 1.4", "best"),
        ("20.7", "± 1.0", ""),
    ]
    assert found["er", "uniform"][0].rank == "second"
    assert found["er", "full"][0].rank == found["er", "full"][2].rank == "", "full is not ranked"
    assert [row.apart for group in table.groups for row in group.rows] == [False, False, False, True]
    assert [(c.shared, c.name) for c in table.columns[:4]] == [
        ("A ↑", "ours"),
        ("A ↑", "paper"),
        ("F ↓", "ours"),
        ("F ↓", "paper"),
    ]
    assert found["er", "accuacl"][2].rank == "best"
    assert "n = 2 seeds" in table.note
    assert "model conv4 (paper: resnet18)" in table.note


def test_learners_compete_among_themselves_only():
    rows = [
        with_metrics(row, i) for i, row in enumerate(grid(learner=["er", "der++"], strategy=["uniform", "accuacl"]))
    ]
    found = lines(main_table(rows))
    assert found["er", "accuacl"][0].rank == found["der++", "accuacl"][0].rank == "best"


def test_missing_seeds_are_said_and_missing_strategies_leave_no_hole():
    rows = grid(learner=["er", "der++"], strategy=["uniform", "accuacl"], seed=[0, 1, 2])
    rows = [r for r in rows if (r["learner"], r["strategy"], r["seed"]) != ("er", "accuacl", 2)]
    rows = [r for r in rows if (r["learner"], r["strategy"]) != ("der++", "accuacl")]
    found = lines(main_table(rows))
    assert found["er", "accuacl"][0].small.endswith("(n=2)")
    assert "n=" not in found["er", "uniform"][0].small
    assert ("der++", "accuacl") not in found
    assert found["der++", "uniform"][0].rank == "", "alone it is not best"


def test_the_paper_stands_beside_its_own_settings_only():
    rows = grid(benchmark="split-cifar100", memory=500, strategy=["uniform", "accuacl"], learner="er")
    (group, accuacl) = make_groups(rows)
    assert paper.value(("main",), group, "average_accuracy").mean == 10.9
    assert paper.value(("main",), accuacl, "average_accuracy").mean == 14.1
    for other in ({"lam": 0.5}, {"replay": "cycled"}, {"memory": 123}, {"order": "tasks"}, {"variant": "paper"}):
        (changed,) = make_groups(
            [made_up(**({"benchmark": "split-cifar100", "memory": 500, "strategy": "accuacl"} | other))]
        )
        assert paper.value(("main",), changed, "average_accuracy") is None, other


def captions(rows) -> list[str]:
    return [block.caption.split(":")[0] for block in documents.many_runs(rows).blocks if isinstance(block, Table)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {
                "memory": 500,
                "learner": "er-ace",
                "strategy": ["kcenter", "kcenter+memory", "badge", "badge+memory", "accuacl"],
            },
            "Baselines that start from the memory",
        ),
        (
            {"memory": 1000, "learner": "er-ace", "strategy": ["accuacl-magnitude", "accuacl-distribution", "accuacl"]},
            "Effect of the two scores",
        ),
        ({"memory": 1000, "learner": "der++", "strategy": [*SIX, "accuacl-full"]}, "Knowing all of the past"),
        ({"memory": 500, "learner": "der++", "strategy": SIX}, "Learning accuracy"),
        ({"memory": 500, "learner": "er", "strategy": SIX}, "Average accuracy and forgetting"),
    ],
)
def test_the_table_that_suits_and_the_papers_values_in_it(settings, expected):
    rows = grid(benchmark="split-cifar100", seed=[0, 1], **settings)
    found = comparison_tables(make_groups(rows))
    assert [table.caption.split(":")[0] for table in found] == [expected]
    theirs = [i for i, column in enumerate(found[0].columns) if column.name == "paper"]
    cells = [row.cells[i].text for group in found[0].groups for row in group.rows for i in theirs]
    assert cells
    assert "-" not in cells


def test_orders_of_the_tasks():
    axes = {"benchmark": "split-cifar100", "memory": 500, "strategy": ["uniform", "accuacl"], "seed": [0, 1]}
    rows = grid(order="fixed", **axes) + grid(order="tasks", order_seed=[0, 1, 2, 3], **axes)
    (table,) = order_tables(make_groups(rows))
    places = ["as they are", *(f"order {i}" for i in range(4)), "all permutations"]
    found = {tuple(row.heads): row.cells for row in table.groups[0].rows}
    assert list(found) == list(itertools.product(places, ["uniform", "accuacl"]))
    assert [(column.shared, column.name) for column in table.columns] == list(
        itertools.product(("A ↑", "F ↓"), ("ours", "paper"))
    )
    permuted = [r["average_accuracy"] for r in rows if r["order"] == "tasks" and r["strategy"] == "accuacl"]
    texts = [cell.text for cell in found["all permutations", "accuacl"]]
    assert texts[:2] == [f"{sum(permuted) / 8:.1f}", f"{(14.7 + 14.6 + 15.4 + 15.8) / 4:.1f}"]
    assert found["as they are", "accuacl"][1].text == "14.1"
    assert found["order 0", "accuacl"][1].text == "-"
    for place in places:
        assert sorted(found[place, s][0].rank for s in ("uniform", "accuacl")) == ["", "best"]
    assert captions(rows).count("Task orders") == 1
    (table,) = order_tables(make_groups([row | {"labels": 7} for row in rows]))
    assert [column.name for column in table.columns] == ["A ↑", "F ↓"]


@pytest.mark.parametrize("name", sorted({key[0] for key in paper.figures()} - {"efficiency"}))
def test_every_recipe_is_its_table_of_the_paper(name):
    recipe = read_recipe(name)
    parts = [recipe | part for part in recipe.get("grids", [{}])]
    names = ("benchmark", "memory", "learner", "strategy")
    found = set()
    for part in parts:
        values = [part[n] if isinstance(part[n], list) else [part[n]] for n in names]
        found |= set(itertools.product(*values))
    assert found == {key[1:5] for key in paper.figures() if key[0] == name}


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
def test_every_line_of_the_ingredients_is_another_run(scale):
    found = [run.config for run in runs_of(read_recipe("ingredients"), {"scale": scale})]
    nets = {(c.model, c.width or NETS[c.model][1]) for c in found}
    assert len(nets) == 3, "a small net and two of another width"
    assert len({(c.model, c.width or NETS[c.model][1], c.labels, c.rounds, c.replay, c.strategy) for c in found}) == 16
    assert {c.model for c in found} == {"conv3" if scale == "smoke" else "conv4", "resnet18"}


def test_settings_that_were_varied_are_rows():
    rows = grid(strategy=["uniform", "accuacl"], labels=[100, 200], learner="er", seed=[0, 1])
    rows += grid(strategy=["uniform", "accuacl"], learner="er", replay="cycled", labels=100)
    (table,) = setting_tables(make_groups(rows))
    assert list(table.heads) == ["labels", "replay"]
    assert [list(row.heads) for row in table.groups[0].rows] == [["100", "cycled"], ["100", "once"], ["200", "once"]]
    assert [c.shared for c in table.columns][::2] == ["A ↑", "F ↓", "rarest class", "commonest class"]


def test_no_group_of_runs_is_left_out_of_the_report():
    rows = grid(strategy=["uniform", "accuacl"], learner=["er", "gss"], seed=[0, 1])
    rows += grid(strategy=["uniform", "accuacl"], learner="er", labels=[7, 8])
    rows += grid(strategy=["margin", "accuacl-full", "my-own"], learner="er")
    rows += grid(strategy=["uniform"], order="classes", order_seed=[1, 2])
    rows += grid(strategy="accuacl", lam=[0.0, 0.5], tasks=4)
    rows += grid(strategy="full", benchmark="/my/data", learner="er-ace")
    shown = {
        cell.text
        for block in documents.many_runs(rows).blocks
        if isinstance(block, Table)
        for group in block.groups
        for row in group.rows
        for cell in row.cells
    }
    for group in make_groups(rows):
        assert f"{group.mean_std('average_accuracy').mean:.1f}" in shown, (group.title, group.strategy)


def test_two_benchmarks_with_few_strategies_and_one_of_them_varied():
    rows = grid(benchmark="split-cifar10", strategy=["uniform", "accuacl"], labels=[10, 20])
    rows += grid(benchmark="split-cifar100", strategy=["uniform", "accuacl"])
    assert captions(rows)[2:5] == [
        "Average accuracy and forgetting",
        "Order of the strategies, here and in the paper",
        "Average accuracy (%) and forgetting (points) by labels",
    ]


def test_bounds_are_rows_in_the_tables_of_every_memory():
    rows = grid(learner=["er", "der++"], memory=[100, 200], strategy="uniform", seed=[0, 1])
    rows += grid(learner=["finetune", "joint"], memory=0, strategy="uniform", seed=[0, 1])
    tables = [b for b in documents.many_runs(rows).blocks if isinstance(b, Table) and "LA" in b.note]
    assert [table.caption.split(",")[1] for table in tables] == [" memory 100", " memory 200"]
    values = {group.learner: group.mean_std("average_accuracy").mean for group in make_groups(rows) if group.bound}
    for table in tables:
        last = table.groups[-1]
        assert last.title == "bounds"
        heads = ["lower bound: finetune, uniform", "upper bound: joint, uniform"]
        assert [row.heads[0] for row in last.rows] == heads
        shown = [row.cells[0].text for row in last.rows]
        assert shown == [f"{values[name]:.1f}" for name in ("finetune", "joint")]
        assert all(not cell.rank for row in last.rows for cell in row.cells)
    rows += grid(learner="lwf", memory=0, strategy="uniform", alpha=1.0, seed=[0, 1])  # which is more than a bound
    tables = [b for b in documents.many_runs(rows).blocks if isinstance(b, Table) and "LA" in b.note]
    for table in tables:
        assert table.groups[-1].title == "bounds, and without a memory"
        heads = ["lower bound: finetune, uniform", "no memory: lwf, uniform", "upper bound: joint, uniform"]
        assert [row.heads[0] for row in table.groups[-1].rows] == heads
    alone = grid(learner="finetune", memory=0, strategy=["uniform", "entropy"])
    assert any(isinstance(b, Table) and "LA" in b.note for b in documents.many_runs(alone).blocks)


def test_a_plugins_learner_without_a_memory_is_no_bound():
    """Nobody knows what it does against forgetting, whether its file is loaded or not."""
    (group,) = make_groups(grid(learner="mine", memory=0))
    assert group.bound == "no memory"
    learners.REGISTRY["mine"] = learners.REGISTRY["er"]
    try:
        (group,) = make_groups(grid(learner="mine", memory=0))
        assert group.bound == "no memory"
    finally:
        del learners.REGISTRY["mine"]
    (er,) = make_groups(grid(learner="er", memory=0))
    assert er.bound == "lower bound"


def test_labels_per_task_are_always_stated():
    rows = grid(strategy=["uniform", "accuacl"], labels=[1000, 50])
    titles = {group.title for group in make_groups(rows)}
    assert titles == {f"split-cifar10, memory 100, {n} labels a task (cpu scale)" for n in (1000, 50)}
    (everything,) = make_groups(grid(strategy="full", labels=50))
    assert everything.title == "split-cifar10, memory 100, all labels (cpu scale)"

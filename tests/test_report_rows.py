"""Rows of a report: made up here for all its tests, collected, put into groups, averaged."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from accuacl.base.errors import InputError
from accuacl.experiments import make, metrics, report, run, write_csv
from accuacl.experiments.report import collecting
from accuacl.experiments.report.groups import defaults, make_groups
from accuacl.experiments.report.measures import mean_std

TASKS = {"split-digits": (5, 2), "split-cifar10": (5, 2), "split-cifar100": (10, 10), "split-tiny-imagenet": (10, 20)}


def made_up(**given):
    """The row of a run that never was: numbers from a generator seeded by its settings."""
    benchmark = given.setdefault("benchmark", "split-cifar10")
    config = defaults(benchmark, given.setdefault("scale", "cpu")) | given
    rng = np.random.default_rng(zlib.crc32(json.dumps(config, sort_keys=True).encode()))
    tasks, each = TASKS.get(benchmark, (4, 3))
    tasks = config["tasks"] or tasks
    learned = rng.uniform(60, 90, tasks)
    fall = rng.uniform(0.5, 0.8) * (0.8 if config["strategy"] == "accuacl" else 1.0)
    a = [[float(learned[j] * (1 - fall * (1 - 0.5 ** (t - j)))) for j in range(t + 1)] for t in range(tasks)]
    rounds = config["last_rounds"] or config["rounds"]
    tested = [[[x * (0.7 + 0.3 * r / (rounds - 1)) for x in line] for r in range(rounds)] for line in a]
    picked = rng.multinomial(config["labels"], rng.dirichlet(np.full(each, 20)), tasks)
    matrix = [line + [None] * (tasks - len(line)) for line in a]
    return {
        **config,
        **metrics.summary(matrix),
        "calibration_error": float(rng.uniform(5, 20)),
        **{
            f"seconds_{name}": float(rng.lognormal(1))
            for name in ("query", "train", "evaluate", "load", "other", "cpu")
        },
        "version": "0.1.0",
        "machine": "x86_64, AVX2, cpu, torch 2.9, numpy 2.3",
        "finished": f"2026-01-02T03:04:{rng.integers(10, 60)}Z",
        "accuracy_matrix": matrix,
        "picked": picked.tolist(),
        "round_accuracy": tested if config["evaluate"] == "round" else None,
        "note": "",
    }


def grid(**axes):
    """Rows for all combinations of the settings that are lists."""
    rows = [{}]
    for name, values in axes.items():
        rows = [row | {name: value} for row in rows for value in (values if isinstance(values, list) else [values])]
    return [made_up(**row) for row in rows]


def with_metrics(row, accuracy, forgetting=1.0):
    return row | {"average_accuracy": accuracy, "forgetting": forgetting}


def collect(paths):
    """All rows at these paths, each run once."""
    sources = collecting.read(paths)
    return collecting.merge({path: [row for source in found for row in source.rows] for path, found in sources.items()})


def table(path, rows):
    write_csv(path, rows)
    return path


def test_means_and_sample_deviations_by_hand(tmp_path):
    rows = [with_metrics(made_up(seed=s, strategy="uniform"), a, f) for s, a, f in ((0, 10, 4), (1, 13, 4), (2, 10, 7))]
    (group,) = make_groups(collect([table(tmp_path / "results.csv", rows)]))
    found = group.mean_std("average_accuracy")
    assert (found.mean, found.n) == (11, 3)
    assert found.std == pytest.approx(3**0.5)  # (1 + 4 + 1) / 2
    assert group.mean_std("forgetting").mean == 5
    assert mean_std([5.0]).std is None


@pytest.mark.parametrize(
    "differing",
    [
        {"labels": 500},
        {"model": "resnet18"},
        {"width": 8},
        {"rounds": 3},
        {"pool": 77},
        {"lam": 0.5},
        {"variant": "paper"},
        {"replay": "cycled"},
        {"learner_variant": "original"},
        {"order": "tasks"},
        {"threads": 2},
        {"scale": "paper"},
        {"memory": 7},
        {"tasks": 3},
        {"oversample": 3.0},
    ],
)
def test_nothing_is_averaged_over_different_settings(tmp_path, differing):
    one = made_up(strategy="accuacl", learner="er")
    other = one | differing | {"seed": 1}
    groups = make_groups(collect([table(tmp_path / "results.csv", [one, other])]))
    assert [len(group.rows) for group in groups] == [1, 1]
    names = {(group.title, group.learner, group.strategy) for group in groups}
    assert len(names) == 2, "they must be told apart by their names too"


@pytest.mark.parametrize(
    ("strategy", "differing", "name"),
    [
        ("accuacl+uniform", {"share": 0.25}, "accuacl+uniform, share 0.25"),
        ("fisher-ratio", {"uncertainty": "ignored"}, "fisher-ratio, uncertainty ignored"),
    ],
)
def test_a_strategy_with_other_options_is_another_one(tmp_path, strategy, differing, name):
    rows = [made_up(strategy=strategy), made_up(strategy=strategy, **differing)]
    groups = make_groups(collect([table(tmp_path / "results.csv", rows)]))
    assert [group.strategy for group in groups] == [strategy, name]


def test_a_learner_with_other_options_is_another_learner_in_the_same_setup(tmp_path):
    rows = [made_up(learner="der++"), made_up(learner="der++", alpha=0.3), made_up(learner="er")]
    groups = make_groups(collect([table(tmp_path / "results.csv", rows)]))
    assert [group.learner for group in groups] == ["er", "der++", "der++, alpha 0.3"]
    assert len({group.setup for group in groups}) == 1


def test_orders_of_the_tasks_are_groups_of_their_own():
    assert len(make_groups(grid(order="tasks", order_seed=[0, 1], seed=[0, 1]))) == 2


def test_what_a_strategy_does_not_look_at_does_not_split_it(tmp_path):
    rows = [made_up(strategy="uniform", lam=None, seed=0), made_up(strategy="uniform", lam=0.5, seed=1)]
    (group,) = make_groups(collect([table(tmp_path / "results.csv", rows)]))
    assert len(group.rows) == 2
    assert group.strategy == "uniform"


def test_a_run_counts_once_however_often_it_is_found(tmp_path):
    rows = grid(seed=[0, 1])
    table(tmp_path / "results.csv", rows)
    (tmp_path / "again").mkdir()
    newer = [row | {"finished": "2027-01-01T00:00:00Z", "average_accuracy": 1.0} for row in rows[:1]]
    table(tmp_path / "again" / "results.csv", newer)
    found = collect([tmp_path, tmp_path / "results.csv"])
    assert len(found) == 2
    assert [row["average_accuracy"] for row in found if row["seed"] == 0] == [1.0]


def test_two_directories_with_the_same_runs_are_compared(tmp_path):
    rows = grid(strategy=["uniform", "accuacl"], seed=[0, 1])
    again = [
        row | {"finished": "2027-01-01T00:00:00Z", "average_accuracy": row["average_accuracy"] + 1} for row in rows
    ]
    for name, some in (("old", rows), ("new", again), ("copy", rows)):
        (tmp_path / name).mkdir()
        table(tmp_path / name / "results.csv", some)
    found = collect([tmp_path / "old", tmp_path / "new"])
    assert [row["source"] for row in found] == ["old"] * 4 + ["new"] * 4
    assert {group.strategy for group in make_groups(found)} == {
        f"{strategy}, from {name}" for strategy in ("uniform", "accuacl") for name in ("old", "new")
    }
    text = report.write([tmp_path / "old", tmp_path / "new"], tmp_path / "r.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("| new |")]
    assert row.startswith("| new | +1.00 |")
    assert len(collect([tmp_path / "old", tmp_path / "copy"])) == 4  # the same runs, finished at the same time


def test_two_directories_with_other_settings_are_compared_by_these(tmp_path):
    for name, settings in (("long", {"epochs": 8}), ("short", {"epochs": 4}), ("other", {"epochs": 8, "lr": 0.5})):
        (tmp_path / name).mkdir()
        table(tmp_path / name / "results.csv", grid(strategy=["uniform", "accuacl"], seed=[0, 1], **settings))
    for names, caption, label in (
        (("long", "short"), "epochs 8", "4"),
        (("short", "long"), "epochs 4", "8"),
        (("short", "other"), f"epochs 4, lr {grid()[0]['lr']:g}", "8 / 0.5"),
    ):
        text = report.write([tmp_path / name for name in names], tmp_path / "r.md").read_text()
        assert f"**Differences from {caption}, over all cells**" in text
        assert any(line.startswith(f"| {label} |") for line in text.splitlines())
    (tmp_path / "both").mkdir()
    table(tmp_path / "both" / "results.csv", grid(strategy=["uniform", "accuacl"], epochs=[2, 4]))
    text = report.write([tmp_path / "long", tmp_path / "both"], tmp_path / "r.md").read_text()
    assert "**Differences from epochs 8, over all cells**" in text
    assert {"2", "4"} <= {line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()}
    text = report.write([tmp_path / "both", tmp_path / "long"], tmp_path / "r.md").read_text()
    assert "**Differences from uniform, over all cells**" in text  # two kinds of runs cannot be one baseline
    assert "No setting tells the paths apart, so their runs are taken together." in text


def folder(path, **settings):
    path.mkdir()
    table(path / "results.csv", grid(**settings))
    return path


def test_directories_whose_settings_overlap_are_compared_by_those_that_do_not(tmp_path):
    both = ["uniform", "accuacl"]
    few = folder(tmp_path / "few", strategy=both, memory=[100, 200], memory_policy="paper", seed=[0, 1])
    more = folder(tmp_path / "more", strategy="uniform", memory=[100, 500], memory_policy="coverage", seed=[0, 1])
    for paths, baseline, caption, label in (
        ([few, more], "", "memory policy paper", "memory policy coverage"),
        ([more, few], "", "memory policy coverage", "memory policy paper"),
        ([few, more], str(more), "memory policy coverage", "memory policy paper"),
    ):
        text = report.write(paths, tmp_path / "r.md", baseline=baseline).read_text()
        assert f"**Differences from {caption}: split-cifar10, memory 100, 1000 labels a task" in text
        assert any(line.startswith(f"| {label} |") for line in text.splitlines())
    alike = folder(tmp_path / "alike", strategy=both, memory=[100, 200], seed=2)
    with pytest.raises(InputError, match=r"no setting has one value in .*alike and other values in the other paths"):
        report.write([few, alike], tmp_path / "r.md", baseline=str(alike))


def test_directories_with_other_seeds_are_not_compared_and_the_report_says_so(tmp_path):
    first = folder(tmp_path / "first", strategy="uniform", seed=[0, 1])
    again = folder(tmp_path / "again", strategy="uniform", seed=[2, 3])
    other = folder(tmp_path / "other", strategy="accuacl", seed=[2, 3])
    text = report.write([first, other], tmp_path / "r.md").read_text()
    assert "Nothing is compared: no two runs with the same seed differ only in strategy, learner" in text
    text = report.write([first, again], tmp_path / "r.md").read_text()
    assert "No setting tells the paths apart, so their runs are taken together." in text


def test_a_path_is_a_baseline_in_any_spelling(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = grid(strategy=["uniform", "accuacl"], seed=[0, 1])
    again = [row | {"finished": "2027-01-01T00:00:00Z"} for row in rows]
    covering = grid(strategy=["uniform", "accuacl"], seed=[0, 1], memory_policy="coverage")
    options = grid(learner="lwf", memory=0, alpha=50.0, strategy=["uniform", "accuacl"], seed=[0, 1])
    for name, some in (("old", rows), ("new", again), ("covering", covering), ("lwf", options)):
        (tmp_path / name).mkdir()
        table(tmp_path / name / "results.csv", some)
    for names, baseline, caption in (
        (("old", "new"), "new", "new"),
        (("old", "new"), "./new", "new"),
        (("old", "new"), str(tmp_path / "new"), "new"),
        (("./old", str(tmp_path / "new")), "new/../new/", "new"),
        (("old", "covering"), "covering", "memory policy coverage"),
        (("old", "covering"), str(tmp_path / "covering"), "memory policy coverage"),
        (("old", "covering"), "old", "memory policy paper"),
        (("old", "covering"), "uniform", "uniform"),
        (("old", "lwf"), "lwf", "learner lwf, memory 0, alpha 50"),
    ):
        text = report.write([Path(name) for name in names], tmp_path / "r.md", baseline=baseline).read_text()
        assert f"**Differences from {caption}, over all cells**" in text, baseline
    with pytest.raises(InputError, match="no run has the baseline 'elsewhere'"):
        report.write([Path("old"), Path("covering")], tmp_path / "r.md", baseline="elsewhere")


def test_runs_and_tables_in_one_directory(tmp_path):
    config = make({"benchmark": "split-digits", "tasks": 2, "labels": 8, "epochs": 1, "pool": 40, "evaluate": "round"})
    result = run(config, tmp_path / "deep" / "a")
    table(tmp_path / "results.csv", grid(seed=[0, 1]))
    found = collect([tmp_path])
    assert len(found) == 3
    mine = next(row for row in found if row["benchmark"] == "split-digits")
    assert mine["average_accuracy"] == result["average_accuracy"]
    assert [sum(counts) for counts in mine["picked"]] == [8, 8]


def test_the_papers_order():
    names = ["full", "zeta", "margin", "accuacl", "bait", "badge", "kcenter", "least-confidence", "entropy", "uniform"]
    rows = grid(learner=["er-ace", "mine", "er"], strategy=names)
    groups = make_groups(rows)
    assert list(dict.fromkeys(group.learner for group in groups)) == ["er", "er-ace", "mine"]
    expected = [
        "uniform",
        "entropy",
        "least-confidence",
        "kcenter",
        "badge",
        "bait",
        "accuacl",
        "margin",
        "zeta",
        "full",
    ]
    assert [group.strategy for group in groups if group.learner == "er"] == expected


def test_class_balance_by_hand():
    row = made_up() | {"picked": [[1, 3], [2, 2], [0, 0]]}
    (group,) = make_groups([row])
    assert group.mean_std("picked_least").mean == pytest.approx((0.5 + 1) / 2)
    assert group.mean_std("picked_most").mean == pytest.approx((1.5 + 1) / 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"average_accuracy": float("nan")}, "average_accuracy is nan, not a number"),
        ({"forgetting": float("inf")}, "forgetting is inf"),
        ({"forgetting": None}, "forgetting is missing"),
        ({"accuracy_matrix": [[1, 2], [3, 4]]}, "row t of an accuracy matrix has"),
        ({"accuracy_matrix": [[float("nan")]]}, "accuracy_matrix is not 2 lists deep with numbers"),
        ({"picked": {"a": 1}}, "picked is not 2 lists deep with numbers"),
        ({"round_accuracy": [["x"]]}, "round_accuracy is not 3 lists deep with numbers"),
    ],
)
def test_rows_that_are_wrong_are_refused(tmp_path, change, says):
    path = table(tmp_path / "results.csv", [made_up() | change])
    with pytest.raises(ValueError, match=says) as raised:
        collect([path])
    assert "row 1" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_run_is_itself_and_not_what_lies_below_it(tmp_path):
    settings = {"benchmark": "split-digits", "tasks": 2, "labels": 8, "epochs": 1, "pool": 40}
    outer = run(make(settings | {"strategy": "uniform"}), tmp_path / "a")
    run(make(settings | {"strategy": "accuacl"}), tmp_path / "a" / "A")  # sorted before a's own result.json
    table(tmp_path / "a" / "results.csv", grid(seed=[0, 1]))
    (row,) = collect([tmp_path / "a"])
    assert (row["strategy"], row["average_accuracy"]) == ("uniform", outer["average_accuracy"])
    assert "split-digits, er with uniform" in report.write([tmp_path / "a"], format="md").read_text()
    assert len(collect([tmp_path])) == 4, "a directory of runs is all of them"


def test_no_table_is_opened_but_those_of_results(tmp_path, monkeypatch):
    opened = []
    read_csv = collecting.read_csv
    monkeypatch.setattr(collecting, "read_csv", lambda path: opened.append(path) or read_csv(path))
    for name in ("other.csv", "main.csv", "deep/results.csv", "deep/pool.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        table(tmp_path / name, grid(seed=[0]))
    ((source,),) = collecting.read([tmp_path]).values()
    assert opened == [source.path] == [tmp_path / "deep" / "results.csv"]
    (tmp_path / "deep" / "results.csv").unlink()
    with pytest.raises(InputError, match=r"finish a run first .* or one of its tables .*: main\.csv, other\.csv"):
        collecting.read([tmp_path])
    assert opened == [source.path], "a table is named, not opened"
    sources = collecting.read([tmp_path / "main.csv"])
    assert collecting.describe(sources, {}) == f"Read from {tmp_path / 'main.csv'} (1 row)."


def test_a_table_that_cannot_be_read_is_a_sentence(tmp_path, monkeypatch):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    path = table(tmp_path / "a.csv", grid(seed=[0]))
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(InputError, match=r"a\.csv cannot be read: permission denied; "):
        collect([path])

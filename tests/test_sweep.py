"""Sweeps: grids, one table, only what is missing, nothing lost."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from accuacl.base.files import Lock
from accuacl.base.progress import Progress
from accuacl.cli.sweep import _narrow_runs as narrow_runs
from accuacl.engines import Done, Failure, Local
from accuacl.experiments import add_to_csv, data_note, make, read_csv, read_yaml, row_settings, write_csv
from accuacl.experiments.sweeps import run_missing, runs_of
from accuacl.experiments.sweeps.running import do_job, job_for
from accuacl.strategies import REGISTRY
from commands import PLUGIN, SMALL, accuacl, sweep_file
from effort import wait_until
from pool_files import Inline
from processes import start_command


def without_times(path: Path) -> list[dict]:
    rows = read_csv(path)
    return [{k: v for k, v in row.items() if not k.startswith("seconds_") and k != "finished"} for row in rows]


def test_a_grid_is_every_combination_of_the_lists():
    names = [c.config for c in runs_of(SMALL | {"learner": ["er", "gss"], "seeds": [3, 4], "labels": 16, "lambda": 0})]
    assert [(c.learner, c.seed, c.labels, c.lam) for c in names] == [
        ("er", 3, 16, 0.0),
        ("er", 4, 16, 0.0),
        ("gss", 3, 16, 0.0),
        ("gss", 4, 16, 0.0),
    ]


def test_what_a_strategy_or_learner_ignores_makes_no_runs_of_its_own(tmp_path):
    wanted = runs_of(SMALL | {"strategy": ["uniform", "accuacl"], "lambda": [0, 0.5], "order_seed": [0, 1]})
    assert [(c.config.strategy, c.config.lam) for c in wanted] == [
        ("uniform", None),
        ("accuacl", 0.0),
        ("accuacl", 0.5),
    ]
    table = tmp_path / "results.csv"
    row = run_missing(wanted[:1], tmp_path, table, Inline()).rows[0]
    write_csv(table, [{**row, "lam": 0.5, "order_seed": 3}])  # as it was done before
    told = []
    run_missing(wanted[:1], tmp_path / "b", table, Inline(), on_end=lambda *end: told.append(end))
    assert not told


def test_grids_share_what_is_outside_them_and_settings_may_differ_by_scale():
    spec = {
        "title": "t",
        "seeds": {"smoke": 7, "cpu": [1, 2]},
        "learner": "er",
        "grids": [{"benchmark": "split-digits"}, {"benchmark": "split-cifar10", "learner": ["der++", "gss"]}],
    }
    smoke = [(c.config.benchmark, c.config.learner, c.config.seed) for c in runs_of(spec)]
    assert smoke == [("split-digits", "er", 7), ("split-cifar10", "der++", 7), ("split-cifar10", "gss", 7)]
    assert len(runs_of(spec, {"scale": "cpu"})) == 6


def test_runs_that_differ_in_anything_have_directories_of_their_own():
    spec = SMALL | {"lam": [0.1, 0.2], "replay": ["once", "cycled"], "order": ["fixed", "1,0,3,2"], "width": [0, 9]}
    names = {run.name for run in runs_of(spec)}
    assert len(names) == 16
    assert all("/" not in name for name in names)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"learner": []}, "empty list"),
        ({"learner": {"er": 1}}, "smoke, cpu and paper"),
        ({"labels": {"cpu": 3}}, "no value for --scale smoke"),
        ({"grids": 3}, "grids must be a list"),
        ({"colour": "red"}, "there is no setting colour; `accuacl run --print-config` shows all."),
        ({"epoch": 3}, "there is no setting epoch; did you mean epochs?"),
        ({"strategy": ["uniform", "magic"]}, "there is no strategy 'magic'"),
        ({"seeds": "0-2"}, "seed is '0-2'; give a number, or a list of numbers"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence(tmp_path, settings, says):
    done = accuacl("sweep", sweep_file(tmp_path, **settings), cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_missing_file_is_told_in_a_sentence(tmp_path):
    done = accuacl("sweep", tmp_path / "none.yaml", cwd=tmp_path)
    assert done.returncode == 2
    said = f"accuacl: {tmp_path / 'none.yaml'} cannot be read: no such file or directory; fix that and try again.\n"
    assert done.stderr == said


def test_the_table_reads_as_it_was_written(tmp_path):
    wanted = runs_of(SMALL | {"strategy": ["uniform", "accuacl"], "lam": [0.3], "evaluate": "round"})
    outcome = run_missing(wanted, tmp_path, tmp_path / "results.csv", Inline())
    assert not outcome.failed
    rows = read_csv(tmp_path / "results.csv")
    assert sorted(map(repr, rows)) == sorted(map(repr, outcome.rows))
    for row in rows:
        assert make(row_settings(row)) in [run.config for run in wanted]
        assert len(row["picked"]) == 2
        assert [sum(task) for task in row["picked"]] == [8, 8]
        assert [len(task) for task in row["picked"]] == [2, 2]
        assert row["round_accuracy"][1][1] == row["accuracy_matrix"][1]
        assert row["average_accuracy"] == pytest.approx(sum(row["accuracy_matrix"][-1]) / 2)


def test_what_the_table_has_is_not_done_again_even_without_its_directory(tmp_path):
    wanted = runs_of(SMALL | {"strategy": "uniform", "seeds": [0, 1]})
    first = run_missing(wanted[:1], tmp_path / "a", tmp_path / "results.csv", Inline())
    told = []
    second = run_missing(
        wanted, tmp_path / "b", tmp_path / "results.csv", Inline(), on_end=lambda run, row, why: told.append(run.name)
    )
    assert told == [wanted[1].name]
    assert first.rows[0] == second.rows[0]
    assert len(read_csv(tmp_path / "results.csv")) == 2
    assert not (tmp_path / "b" / wanted[0].name).exists()


def test_an_older_table_without_a_newer_setting_still_counts(tmp_path):
    wanted = runs_of(SMALL | {"strategy": "uniform"})
    table = tmp_path / "results.csv"
    run_missing(wanted, tmp_path, table, Inline())
    rows = read_csv(table)
    write_csv(table, [{key: value for key, value in row.items() if key != "replay"} for row in rows])
    told = []
    run_missing(wanted, tmp_path / "b", table, Inline(), on_end=lambda *end: told.append(end))
    assert not told


def test_one_failing_run_is_reported_and_does_not_stop_the_others(tmp_path):
    wanted = runs_of(
        SMALL | {"strategy": ["uniform", "entropy"], "model": ["mlp", "conv4"]}
    )  # conv4 cannot read vectors
    outcome = run_missing(wanted, tmp_path, tmp_path / "results.csv", Local(1))
    assert len(outcome.rows) == 2
    assert len(outcome.failed) == 2
    assert all("conv4" in name and why for name, why in outcome.failed.items())
    assert not list(tmp_path.rglob("error.txt"))  # wrong input is a sentence and leaves no trace
    done = accuacl("sweep", sweep_file(tmp_path, strategy="uniform", model=["mlp", "conv4"]), cwd=tmp_path)
    assert done.returncode == 2
    assert "failed:" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_traceback_of_a_failure_is_kept_and_named(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN.replace("return Selection", "return None + Selection"))
    path = sweep_file(tmp_path, strategy="last")
    command = ("sweep", path, "--plugin", tmp_path / "mine.py", "--out", tmp_path / "out")
    done = accuacl(*command, workers=True)
    assert done.returncode == 1
    (trace,) = tmp_path.rglob("error.txt")
    assert str(trace) in done.stderr
    assert "TypeError" in done.stdout
    assert 'mine.py", line' in trace.read_text()
    (tmp_path / "mine.py").write_text(PLUGIN)
    assert accuacl(*command).returncode == 0
    assert not trace.exists()


class Shelf:
    """An engine that keeps what it is given."""

    workers, cheap_progress = 1, True

    def map(self, function, items, on_progress=None):
        self.items = items
        return iter(())


def test_workers_elsewhere_are_given_places_that_hold_there_too(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    folder = tmp_path / "here/own"
    folder.mkdir(parents=True)
    for part, n in (("train", 40), ("test", 20)):
        np.save(folder / f"x_{part}.npy", rng.normal(size=(n, 3)).astype(np.float32))
        np.save(folder / f"y_{part}.npy", np.arange(n) % 4)
    (tmp_path / "here/data").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("ACCUACL_DATA", "data")
    shelf = Shelf()
    wanted = runs_of(SMALL | {"strategy": "uniform"}) + runs_of({"benchmark": "own", "classes_per_task": 2})
    run_missing(wanted, Path("out"), Path("out/results.csv"), shelf)
    assert [item[2] for item in shelf.items] == [tmp_path / "here/data", tmp_path / "here"]
    assert shelf.items[1][0]["benchmark"] == "own"  # what it is called in the table
    assert all(item[1].is_absolute() for item in shelf.items)


def test_a_sweep_says_how_far_it_is(tmp_path):
    class Steady(Shelf):
        def map(self, function, items, on_progress=None):
            on_progress(0, Progress(0.5))
            on_progress(0, Progress(0.75))
            yield Done(0, failure=Failure("bug", "it failed."))
            on_progress(1, Progress(0.0))
            on_progress(1, Progress(0.5))

    wanted, table = runs_of(SMALL | {"strategy": "uniform", "seeds": [0, 1, 2]}), tmp_path / "results.csv"
    run_missing(wanted[2:], tmp_path, table, Inline())
    told = []
    run_missing(wanted, tmp_path, table, Steady(), on_progress=told.append)
    assert [(told_.done, told_.work) for told_ in told] == [
        (1, 0.0),  # one run was in the table
        (1.5, 0.25),
        (1.75, 0.375),
        (2, 0.5),
        (2, 0.5),
        (2.5, 0.75),
    ]


@pytest.mark.posix
def test_the_bar_is_one_line_of_a_small_screen(tmp_path):
    path = sweep_file(tmp_path, strategy=["uniform", "entropy"], seeds=list(range(12)), model=["conv4"])
    start = "from accuacl.cli import main; main()"
    inner = shlex.join([sys.executable, "-c", start, "sweep", str(path), "--out", str(tmp_path / "out"), "--workers=1"])
    command = ["script", "-qec", f"stty rows 24 cols 80; {inner}", "/dev/null"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL).stdout
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]+", shown)]
    bars = [line for line in lines if "\u2501" in line]
    assert bars
    assert all("/24" in line and len(line) <= 80 for line in bars)
    told = [line for line in lines if "conv4 is a net for" in line]
    assert len(told) == 2  # when the first run fails, and at the end; the others fail for the same reason


def test_what_is_printed_elsewhere_counts_all_runs(tmp_path):
    path = sweep_file(tmp_path, strategy="uniform", seeds=[0, 1, 2])
    accuacl("sweep", path, "--only", "seed=1", "--out", tmp_path / "out")
    done = accuacl("sweep", path, "--out", tmp_path / "out", "--workers", 1)
    assert f"with plots: accuacl report {tmp_path / 'out'}\n" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[:2]] == ["2/3", "3/3"]


def test_missing_data_are_told_once_and_the_other_benchmarks_go_on(tmp_path):
    path = sweep_file(tmp_path, benchmark=["split-digits", "split-cifar100"], strategy=["uniform", "entropy"])
    (tmp_path / "nothing").mkdir()
    done = accuacl("sweep", path, "--data-dir", tmp_path / "nothing", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("failed:") == 1
    assert len(read_csv(tmp_path / "runs/sweep/results.csv")) == 2


def under_way(out, begun):
    """Whether so many runs have begun, and one of them has not finished."""
    journals = list(out.glob("*/journal.sqlite"))
    return len(journals) >= begun and not all((journal.parent / "result.json").exists() for journal in journals)


@pytest.mark.posix
def test_killed_at_any_moment_it_goes_on_and_the_table_is_the_same(tmp_path):
    path = sweep_file(tmp_path, strategy=["uniform", "accuacl", "badge"], seeds=[0, 1], epochs=10)
    whole = accuacl("sweep", path, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    for begun in (1, 3):  # runs
        process = start_command("sweep", path, "--out", tmp_path / "cut", "--workers", 1)
        wait_until(lambda begun=begun: under_way(tmp_path / "cut", begun), process)
        process.kill()
        assert process.wait().returncode == -signal.SIGKILL  # it had not come to its end
    last = accuacl("sweep", path, "--out", tmp_path / "cut")
    assert last.returncode == 0, last.stdout + last.stderr
    assert without_times(tmp_path / "cut/results.csv") == without_times(tmp_path / "whole/results.csv")


def test_a_second_sweep_in_the_same_place_is_told_so(tmp_path):
    (tmp_path / "out").mkdir()
    with Lock(tmp_path / "out/sweep.lock"):
        done = accuacl("sweep", sweep_file(tmp_path), "--out", tmp_path / "out")
    assert done.returncode == 2
    assert f"another sweep (process {os.getpid()}) is working in" in done.stderr


def test_a_strategy_of_ones_own_sweeps_like_any_other(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    path = sweep_file(tmp_path, strategy=["uniform", "last"])
    done = accuacl("sweep", path, "--plugin", tmp_path / "mine.py", "--out", tmp_path / "out", workers=True)
    assert done.returncode == 0, done.stderr
    assert {row["strategy"] for row in read_csv(tmp_path / "out/results.csv")} == {"uniform", "last"}
    assert "last" not in REGISTRY
    assert accuacl("sweep", path, "--out", tmp_path / "none").returncode == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "registers nothing"),
        (PLUGIN.replace('"last"', '"uniform"'), "cannot be called 'uniform'"),
        (PLUGIN.replace("query.count", "query.count - 1"), "picked 3 rows; pick query.count of them, here 4"),
    ],
)
def test_a_wrong_plugin_is_told_in_a_sentence(tmp_path, text, says):
    (tmp_path / "mine.py").write_text(text)
    options = [f"--{key}={value}" for key, value in SMALL.items()]
    done = accuacl("run", *options, "--strategy=last", "--plugin", tmp_path / "mine.py", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_only_narrows(tmp_path):
    path = sweep_file(tmp_path, strategy=["uniform", "entropy"], seeds=[0, 1])
    done = accuacl("sweep", path, "--only", "strategy=entropy", "--only", "seed=1", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    rows = read_csv(tmp_path / "out/results.csv")
    assert [(row["strategy"], row["seed"]) for row in rows] == [("entropy", 1)]
    numbers = runs_of(SMALL | {"lambda": [0, 0.5, 2 / 3], "seeds": [0, 1000, 1001]})
    chosen = narrow_runs(numbers, ["lambda=0,0.667", "seed=1000"])
    assert [(run.config.lam, run.config.seed) for run in chosen] == [(0.0, 1000), (2 / 3, 1000)]
    orders = runs_of(SMALL | {"order": ["fixed", "1,0,2,3,4,5,6,7,8,9"]})
    (chosen,) = narrow_runs(orders, ["order=1,0,2,3,4,5,6,7,8,9"])
    assert chosen.config.order == "1,0,2,3,4,5,6,7,8,9"
    assert len(narrow_runs(numbers, ["seed=0, 1000"])) == 6
    for wrong, says in (("strategy=badge", "no run has strategy badge"), ("colour=red", "give setting=value")):
        done = accuacl("sweep", path, "--only", wrong, "--out", tmp_path / "out")
        assert (done.returncode, says in done.stderr) == (2, True)


def test_a_table_takes_rows_with_newer_settings_and_stays_readable(tmp_path):
    table = tmp_path / "results.csv"
    run_missing(runs_of(SMALL | {"strategy": "uniform"}), tmp_path, table, Inline())
    rows = read_csv(table)
    older = [{key: value for key, value in row.items() if key not in ("width", "lam_from", "test")} for row in rows]
    write_csv(table, [{**older[0], "seed": 7}])
    add_to_csv(table, rows)
    both = read_csv(table)
    assert [row["seed"] for row in both] == [0, 7]
    assert both[0]["width"] == both[1]["width"] == 0
    bare = ["benchmark,memory,learner,strategy,average_accuracy,forgetting,width", "split-digits,5,er,uniform,50,3,"]
    table.write_text("\n".join(bare) + "\n")
    assert row_settings(read_csv(table)[0])["width"] == 0


def test_two_sweeps_may_share_a_table(tmp_path):
    table = tmp_path / "results.csv"
    first = run_missing(runs_of(SMALL | {"strategy": "uniform"}), tmp_path / "a", table, Inline()).rows

    def meanwhile(run, row, why):
        add_to_csv(table, [{**first[0], "seed": 99}])

    run_missing(runs_of(SMALL | {"strategy": ["entropy", "margin"]}), tmp_path / "b", table, Inline(), on_end=meanwhile)
    found = sorted((row["strategy"], row["seed"]) for row in read_csv(table))
    assert found == [("entropy", 0), ("margin", 0), ("uniform", 0), ("uniform", 99)]


def test_a_wrong_order_fails_its_own_run_only(tmp_path):
    wanted = runs_of(SMALL | {"strategy": "uniform", "order": ["9,9,1,2", "fixed"]})
    outcome = run_missing(wanted, tmp_path, tmp_path / "results.csv", Inline())
    assert len(outcome.rows) == len(outcome.failed) == 1


def test_folders_of_the_same_name_are_different_runs(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "data").mkdir(parents=True)
    folders = [str(tmp_path / name / "data") for name in ("a", "b")]
    assert len({run.name for run in runs_of({"benchmark": folders, "classes_per_task": 2, "model": "mlp"})}) == 2
    assert max(len(run.name) for run in runs_of(SMALL | {"order": ",".join(map(str, range(100)))})) < 200


def test_a_setting_under_two_names_is_refused():
    with pytest.raises(ValueError, match="seed and seeds are the same setting"):
        runs_of(SMALL | {"seed": [0, 1], "seeds": [5]})


def test_scales_may_be_a_list_too():
    found = runs_of({"scale": ["smoke", "cpu"], "labels": {"smoke": 10, "cpu": 20}})
    assert [(run.config.scale, run.config.labels) for run in found] == [("smoke", 10), ("cpu", 20)]


def test_classes_without_a_test_example_are_counted_too(tmp_path):
    outcome = run_missing(
        runs_of(SMALL | {"strategy": "uniform", "test": 1}), tmp_path, tmp_path / "results.csv", Inline()
    )
    assert [len(task) for task in outcome.rows[0]["picked"]] == [2, 2]
    assert [sum(task) for task in outcome.rows[0]["picked"]] == [8, 8]


def test_what_is_known_about_the_data_is_told_at_once_and_kept(tmp_path):
    assert data_note("split-cifar100", 50_000) == data_note("split-digits", 3) == ""
    wanted, table = runs_of(SMALL | {"strategy": "uniform"}), tmp_path / "results.csv"
    row = run_missing(wanted, tmp_path, table, Inline()).rows[0]
    assert row["note"] == ""
    write_csv(table, [{**row, "note": "half of it"}])
    told = []
    run_missing(wanted, tmp_path, table, Inline(), on_note=told.append)
    assert told == ["half of it"]


def test_a_table_with_another_label_column_is_swept_and_notes_on_it_are_told_once(tmp_path):
    lines = [f"{i},{'ab'[i % 2]},{i % 2}" for i in range(40)]
    (tmp_path / "own.csv").write_text("\n".join(["n,species,task", *lines]))
    spec = {"benchmark": str(tmp_path / "own.csv"), "label_column": "species", "strategy": "uniform", "seeds": [0, 1]}
    done = accuacl("sweep", sweep_file(tmp_path, **spec), "--out", tmp_path / "out", width=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("own.csv has no test split; a fifth of each class, 8 of 40 examples, is held out") == 1
    assert done.stdout.count("note:") == 1
    assert "Warning" not in done.stdout + done.stderr


def test_ctrl_c_says_how_to_go_on(tmp_path):
    path = sweep_file(tmp_path, strategy=["accuacl"], epochs=500, tasks=5)
    process = start_command("sweep", path, cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("runs/sweep/*/journal.sqlite")), process)
    process.interrupt()
    ended = process.wait()
    assert ended.returncode == 130
    assert ended.stderr == "accuacl: interrupted; run the same command again to resume.\n"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--results", "/proc/nothing/x.csv"], "nothing"),
        (["--only", "copy=1"], "give setting=value"),
        (["--engine", "cloud"], "there is no engine 'cloud'"),
    ],
)
def test_wrong_options_are_told_before_anything_is_done(tmp_path, options, says):
    done = accuacl("sweep", sweep_file(tmp_path), *options, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert says in done.stderr
    assert not list((tmp_path / "out").glob("*/journal.sqlite"))


def test_a_run_that_an_orphan_still_holds_is_waited_for(tmp_path):
    """The worker of a sweep that was killed holds its run until it ends."""
    path = sweep_file(tmp_path, strategy=["uniform"], seeds=[0])
    [run] = runs_of(read_yaml(path))
    out = tmp_path / "out" / run.name
    out.mkdir(parents=True)
    orphan = threading.Timer(0.3, Lock(out / "lock").release)
    orphan.start()
    row = do_job(job_for(run, tmp_path / "out", None, ()), lambda progress: None).row
    orphan.join()
    assert row["strategy"] == "uniform"

"""`accuacl select`: files that others read, errors of one sentence."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accuacl import Features, pools, select
from accuacl.cli import main, select as command
from accuacl.strategies import coverage
from effort import gone, wait_until
from pool_files import Inline, table, write
from problems import features
from processes import start_command

RNG = np.random.default_rng(0)
POOL, MEMORY = features(RNG, 500, 6, 4), features(RNG, 30, 6, 4)


@pytest.fixture
def ask(monkeypatch, capsys, tmp_path):
    """Run the command in `tmp_path`, without processes; (exit code, what it wrote)."""

    select = pools.select

    def inline(*arguments, **options):
        assert options.pop("engine") == "local"
        return select(*arguments, **(options | {"engine": Inline()}))

    monkeypatch.setattr(pools, "select", inline)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write(tmp_path / "pool.parquet", np.arange(500), POOL, 100)
    write(tmp_path / "memory.parquet", np.arange(30), MEMORY, 100)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["accuacl", "select", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        run.errors = said.err
        return end.value.code or 0, said.out + said.err

    return run


COMMON = ("--pool", "pool.parquet", "--memory", "memory.parquet", "--past", 5000, "--budget", 20)


def test_the_three_kinds_of_files(ask, tmp_path):
    expected = select("accuacl", pool=POOL, budget=20, memory=MEMORY, past=5000)
    for ending in ("parquet", "csv", "jsonl"):
        code, said = ask(*COMMON, "--out", f"picked.{ending}")
        assert code == 0, said
        assert f"20 of 500 picked by accuacl: picked.{ending}" in said
    rows = pq.read_table(tmp_path / "picked.parquet").to_pylist()
    assert list(rows[0]) == ["id", "rank", "distribution", "magnitude"]
    assert [row["id"] for row in rows] == expected.indices.tolist()
    assert [row["rank"] for row in rows] == list(range(1, 21))
    assert [row["magnitude"] for row in rows] == expected.scores["magnitude"].tolist()
    assert [json.loads(line) for line in (tmp_path / "picked.jsonl").read_text().splitlines()] == rows
    with open(tmp_path / "picked.csv", newline="") as file:
        assert [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)] == rows


def test_text_ids_survive_every_kind_of_file(ask, tmp_path):
    names = [f'{i} "a", b\n日本' for i in range(500)]
    write(tmp_path / "words.parquet", names, POOL, 100)
    expected = select("margin", pool=POOL.rows(np.array(sorted(range(500), key=lambda i: names[i]))), budget=9)
    for ending in ("parquet", "csv", "jsonl"):
        ask("--pool", "words.parquet", "--strategy", "margin", "--budget", 9, "--out", f"picked.{ending}")
    rows = pq.read_table(tmp_path / "picked.parquet").to_pylist()
    assert [row["id"] for row in rows] == [sorted(names)[i] for i in expected.indices]
    assert [json.loads(line) for line in (tmp_path / "picked.jsonl").read_text().splitlines()] == rows
    with open(tmp_path / "picked.csv", newline="", encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [row["id"] for row in rows]


def test_options_reach_the_strategy(ask, tmp_path):
    (tmp_path / "known.txt").write_text("3\n4\n\n5\n")
    left = np.setdiff1d(np.arange(500), [3, 4, 5])
    options = {"variant": "paper", "keep": 3, "lam": 0.25, "oversample": 3.0, "total_classes": 9}
    expected = select("accuacl", pool=POOL.rows(left), budget=20, memory=MEMORY, **options)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    code, said = ask(*COMMON[:4], "--budget", 20, *flags, "--exclude", "known.txt", "--out", "picked.csv")
    assert code == 0, said
    assert "20 of 497 picked by accuacl, 3 left out" in said
    with open(tmp_path / "picked.csv", newline="") as file:
        assert [int(row["id"]) for row in csv.DictReader(file)] == left[expected.indices].tolist()


@pytest.mark.parametrize(
    ("strategy", "given", "options"),
    [
        ("accuacl+uniform", ("--share", 0.2), {"share": 0.2}),
        ("accuacl+coverage", ("--share", 0.8), {"share": 0.8}),
        ("fisher-ratio", ("--ridge", 0.01, "--uncertainty", "ignored"), {"ridge": 0.01, "uncertainty": "ignored"}),
    ],
)
def test_options_of_strategies_that_choose_a_set_reach_them(ask, tmp_path, strategy, given, options):
    code, said = ask(*COMMON, "--strategy", strategy, *given, "--out", "picked.parquet")
    assert code == 0, said
    picked = pq.read_table(tmp_path / "picked.parquet")["id"].to_pylist()
    by_default, expected = (
        select(strategy, pool=POOL, budget=20, memory=MEMORY, past=5000, **more).indices.tolist()
        for more in ({}, options)
    )
    assert picked == expected != by_default


@pytest.mark.parametrize(("strategy", "options"), [("direct", {}), ("anchoral", {"subpool": 90})])
def test_the_classes_of_labelled_examples_reach_the_strategies_that_ask_for_them(ask, tmp_path, strategy, options):
    labelled, classes = features(RNG, 40, 6, 4), RNG.integers(0, 4, 40)
    paths = [tmp_path / "labelled" / name for name in ("a.parquet", "b.parquet")]
    paths[0].parent.mkdir()
    for path, rows in zip(paths, (slice(0, 25), slice(25, 40)), strict=True):
        ids = np.arange(1000, 1040)[rows]
        whole = table(ids, labelled.rows(np.arange(40)[rows])).append_column("label", pa.array(classes[rows]))
        pq.write_table(whole.append_column("word", pa.array(["cat"] * len(ids))), path, row_group_size=7)
    question = ["--pool", "pool.parquet", "--budget", 4, "--strategy", strategy, "--labelled", "labelled"]
    question += [word for name, value in options.items() for word in (f"--{name}", value)]

    def picks(*more):
        code, said = ask(*question, *more, "--out", "picked.parquet")
        assert code == 0, said
        return pq.read_table(tmp_path / "picked.parquet")["id"].to_pylist()

    told, predicted = (
        select(strategy, pool=POOL, budget=4, labelled=labelled, classes=given, **options).indices.tolist()
        for given in (classes, None)
    )
    assert told != predicted
    for more in ((), ("--label-column", "label")):
        assert picks(*more) == told
        assert ask.errors == ""
    left = np.setdiff1d(np.arange(500), [3, 4])
    (tmp_path / "gone.txt").write_text("4\n3\n")
    both = Features.concat([labelled, POOL.rows(np.array([3, 4]))])
    of_both = [*classes, *POOL.probabilities[[3, 4]].argmax(1)]
    expected = select(strategy, pool=POOL.rows(left), budget=4, labelled=both, classes=of_both, **options)
    assert picks("--exclude", "gone.txt") == left[expected.indices].tolist()
    says = f"the classes of rows that --exclude leaves out are not known. {strategy} takes for their classes what"
    assert says in ask.errors
    for column, says in (("word", "word holds string; give each class as a whole number"), ("lab", "no column 'lab'")):
        code, said = ask(*question, "--label-column", column, "--out", "p.csv")
        assert code == 2
        assert says in said
    for path in paths:
        pq.write_table(pq.read_table(path).drop_columns("label"), path)
    assert picks() == predicted
    assert "a.parquet has no column 'label'" in ask.errors
    assert f"{strategy} takes for their classes what the model predicts." in ask.errors
    assert ask.errors.count("\n") == 1


def test_classes_that_are_no_classes_of_the_pool(ask, tmp_path):
    whole = table(np.arange(900, 903), features(RNG, 3, 6, 4))
    question = ("--pool", "pool.parquet", "--budget", 5, "--strategy", "direct", "--out", "p.csv")
    for labels, says in (
        ([0, 4, 1], "classes has 4, but there are the classes 0 to 3."),
        ([0, None, 1], "row 1 has no label; fill it in or drop the row."),
    ):
        pq.write_table(whole.append_column("label", pa.array(labels, pa.int32())), tmp_path / "known.parquet")
        code, said = ask(*question, "--labelled", "known.parquet")
        assert (code, said.count("\n")) == (2, 1)
        assert says in said
    code, said = ask(*question, "--label-column", "label")
    assert code == 2
    assert "--label-column is a column of --labelled; give --labelled too" in said
    known = features(RNG, 3, 6, 4)
    with pytest.raises(ValueError, match="give one for each of 3 labelled examples"):
        pools.select("pool.parquet", "direct", budget=5, labelled=known, classes=[1], exclude=[3], engine="local")


@pytest.mark.parametrize(("given", "sample"), [(None, 400), (100, 100), (500, 0), (0, 0)])
def test_picks_from_a_sample_are_said_to_be_that(ask, given, sample, tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "SAMPLE", 200)  # if nothing is given, so many, or 20 for each pick
    more = () if given is None else ("--sample", given)
    code, told = ask(*COMMON[:2], "--budget", 20, "--strategy", "coverage", "--out", "picked.csv", *more)
    assert code == 0, told
    part = f" from a random sample of {sample} (--sample 0: from all)" if sample else ""
    assert f"20 of 500 picked by coverage{part}: picked.csv" in " ".join(told.split())
    picked = [int(line.split(",")[0]) for line in (tmp_path / "picked.csv").read_text().splitlines()[1:]]
    assert picked == select("coverage", pool=POOL, budget=20, sample=sample).indices.tolist()


def test_a_strategy_of_ones_own(ask, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nfrom accuacl.strategies import Selection, register\n\n"
        "@register('first-ones')\ndef first(query):\n    return Selection(np.arange(query.count), {})\n"
    )
    code, said = ask(*COMMON, "--strategy", "first-ones", "--plugin", "mine.py", "--out", "picked.csv")
    assert code == 0, said
    assert (tmp_path / "picked.csv").read_text().splitlines()[:3] == ["id,rank", "0,1", "1,2"]
    from accuacl.strategies import REGISTRY

    del REGISTRY["first-ones"]


@pytest.mark.parametrize("strategy", ["accuacl", "uniform", "margin", "kcenter"])
def test_no_picks_have_the_types_of_some(ask, tmp_path, strategy):
    write(tmp_path / "words.parquet", [f"a{i}" for i in range(500)], POOL, 100)
    for pool in ("pool.parquet", "words.parquet"):
        schemas = []
        for budget in (0, 3):
            code, said = ask("--pool", pool, "--strategy", strategy, "--budget", budget, "--out", "p.parquet")
            assert code == 0, said
            found = pq.read_table(tmp_path / "p.parquet")
            assert found.num_rows == budget
            schemas.append(found.schema)
        assert schemas[0].equals(schemas[1]), schemas


@pytest.mark.parametrize("strategy", ["accuacl", "uniform", "kcenter"])
def test_ids_to_leave_out_that_are_not_in_the_pool_are_counted(ask, tmp_path, strategy):
    (tmp_path / "known.txt").write_text("3\n4\n4\n700\n800\n800\n")
    common = ("--pool", "pool.parquet", "--strategy", strategy, "--budget", 3, "--out", "p.csv", "--exclude")
    code, said = ask(*common, "known.txt")
    assert (code, "3 of 498 picked" in said) == (0, True)
    assert ask.errors == "note: 2 of the 4 ids in known.txt are not in the pool.\n"
    (tmp_path / "known.txt").write_text("3\n4\n")
    assert ask(*common, "known.txt")[0] == 0
    assert ask.errors == ""


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("column", ["id", "name"])
@pytest.mark.parametrize("spelling", ["{}", "a {}", '"{}", ; 日本'])
def test_the_picks_of_one_night_are_left_out_the_next(ask, tmp_path, ending, column, spelling):
    ids = list(range(500)) if spelling == "{}" else [spelling.format(i) for i in range(500)]
    columns = pq.read_table(tmp_path / "pool.parquet").set_column(0, column, pa.array(ids))
    pq.write_table(columns, tmp_path / "named.parquet")
    common = ("--pool", "named.parquet", "--id-column", column, "--strategy", "margin", "--budget", 9)
    assert ask(*common, "--out", f"picked.{ending}")[0] == 0
    code, said = ask(*common, "--exclude", f"picked.{ending}", "--out", "next.parquet")
    assert (code, "9 of 491 picked by margin, 9 left out" in said) == (0, True), said
    assert "not in the pool" not in said
    assert ask(*common[:-1], 18, "--out", "both.parquet")[0] == 0
    both, later = (pq.read_table(tmp_path / f"{name}.parquet")["id"].to_pylist() for name in ("both", "next"))
    assert both[9:] == later


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "-1\n7\n"),
        ("b.csv", "id\n7\n-1\n"),
        ("c.csv", "rank;id\n1;7\n2;-1\n"),
        ("d.csv", 'id,why\n"7","a, b"\n-1,\n'),
        ("e.CSV", "\ufeffid\r\n7\r\n-1\r\n"),
        ("f.jsonl", '{"id": 7}\n{"id": -1}\n'),
        ("g.txt", "7\n-1\n"),
    ],
)
def test_ids_to_leave_out_as_a_list_or_a_table(ask, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    code, said = ask(*COMMON, "--exclude", name, "--out", "p.csv")
    assert (code, "20 of 499 picked by accuacl, 1 left out" in said) == (0, True), said
    assert ask.errors == f"note: 1 of the 2 ids in {name} are not in the pool.\n"


def test_a_list_that_leaves_nothing_out_is_told(ask, tmp_path):
    (tmp_path / "other.txt").write_text("-1\n-2\n")
    code, _ = ask(*COMMON[:-1], 500, "--strategy", "uniform", "--exclude", "other.txt", "--out", "p.csv")
    first = (tmp_path / "p.csv").read_text().splitlines()[1].split(",")[0]
    said = f"none of the 2 ids in other.txt is in the pool, which has ids like {first}."
    assert (code, ask.errors) == (0, f"note: nothing was left out: {said}\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "picked.txt"], "picked.txt ends in '.txt'; give a name that ends in .parquet, .csv or .jsonl."),
        (["--out", "picked"], "picked has no ending; give a name that ends in .parquet, .csv or .jsonl."),
        (["--out", "full"], "full is a folder; give the name of a file, such as full/picked.csv."),
        (["--out", "p.csv", "--pool", "words.txt"], "); make a pool of other files with `accuacl embed`."),
        (["--out", "nowhere/picked.csv"], "to write picked.csv to; create it first."),
        (["--out", "p.csv", "--strategy", "best"], "there is no strategy 'best'; the strategies are uniform"),
        (["--out", "p.csv", "--strategy", "margin", "--keep", "3"], "margin has no option 'keep'; it has no options."),
        (["--out", "p.csv", "--pool", "b.parquet"], "pool: there is no file or folder b.parquet; give one"),
        (
            ["--out", "p.csv", "--embedding-column", "h"],
            "no column 'h' (columns: id, embedding, probability); say which one has the embedding",
        ),
        (["--out", "p.csv", "--exclude", "none.txt"], "there is no file none.txt"),
        (["--out", "p.csv", "--exclude", "words.txt"], "'abc' is to be left out, but the pool's ids are whole numbers"),
        (["--out", "p.csv", "--exclude", "binary.txt"], "binary.txt is not text; write the ids"),
        (
            ["--out", "p.csv", "--exclude", "other.csv"],
            "has no column 'id' (columns: name, rank); rename the id column to",
        ),
        (["--out", "p.csv", "--exclude", "gaps.jsonl"], "gaps.jsonl: 1 of 2 rows have no id; fill it in or drop them."),
        (["--out", "p.csv", "--strategy", "bait", "--memory-limit", "1M"], "bait needs the whole pool at once: "),
        (
            ["--out", "p.csv", "--memory-limit", "much"],
            "memory-limit is 'much'; give at least 1MiB, with the unit",
        ),
        (["--out", "p.csv", "--lam", "2"], "lam is 2.0; give a number from 0 to 1."),
        (
            ["--out", "p.csv", "--strategy", "fisher-ratio", "--uncertainty", "no"],
            "uncertainty is 'no'; give 'weighed' or 'ignored'.",
        ),
        (
            ["--out", "p.csv", "--memory-limit", "1"],
            "memory-limit is '1'; give at least 1MiB, with the unit",
        ),
        (
            ["--out", "p.csv", "--option", "keep"],
            "--option is 'keep'; give a name and a value",
        ),
        (["--out", "p.csv", "--option", "kep=3"], "accuacl has no option 'kep'; did you mean keep? Its options are"),
        (["--out", "p.csv", "--option", "keep=some"], "keep is 'some'; give a whole number of at least 1."),
        (["--out", "p.csv", "--option", "keep=3", "--keep", "4"], "keep is given by --option and by --keep; give one"),
        (["--out", "p.csv", "--budget", "-3"], "--budget"),
    ],
)
def test_one_sentence_and_exit_code_2(ask, tmp_path, arguments, says):
    (tmp_path / "full").mkdir()
    (tmp_path / "words.txt").write_text("abc\n")
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    (tmp_path / "other.csv").write_text("name,rank\n3,1\n")
    (tmp_path / "gaps.jsonl").write_text('{"id": 3}\n{"rank": 2}\n')
    code, said = ask(*COMMON, *arguments)
    assert code == 2
    assert says in said
    assert len(said.strip().splitlines()) == 1
    assert not list(tmp_path.glob("p*.csv*"))


def test_a_memory_without_its_past(ask):
    code, said = ask("--pool", "pool.parquet", "--memory", "memory.parquet", "--budget", 3, "--out", "p.csv")
    assert (code, "give past (--past), the number of examples" in said, "or lam (--lam)." in said) == (2, True, True)


def test_sizes():
    sizes = {
        "0": 0,
        "2000K": 2048000,
        "500MB": 500 * 2**20,
        "1.5G": 3 * 2**29,
        "16GiB": 2**34,
        "3 MB": 3 * 2**20,
        "1t": 2**40,
    }
    assert {size: command._bytes(size) for size in sizes} == sizes


ENDLESS = """
import os, time
from pathlib import Path
from accuacl.strategies import Ranking, register, row_strategy


@register("endless")
@row_strategy("probability")
def endless(context):
    return Ranking(exact=wait, scores=wait)


def wait(rows):
    Path(f"worker-{os.getpid()}").touch()
    time.sleep(3600)
"""


def test_processes_interrupted_and_uninterrupted(tmp_path):
    """The command itself, with workers: it picks; and Ctrl-C ends it and them, leaving no file."""
    write(tmp_path / "pool.parquet", np.arange(500), POOL, 100)
    run = ["select", "--pool", "pool.parquet", "--budget", "5", "--workers", "2", "--out", "picked.csv"]
    done = start_command(*run, cwd=tmp_path).wait()
    assert done.returncode == 0, done.stderr
    picked = (tmp_path / "picked.csv").read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in picked] == select("accuacl", pool=POOL, budget=5).indices.tolist()
    (tmp_path / "picked.csv").unlink()
    (tmp_path / "endless.py").write_text(ENDLESS)
    run += ["--strategy", "endless", "--plugin", "endless.py"]
    process = start_command(*run, cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("worker-*")), process)
    process.interrupt()
    ended = process.wait()
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    workers = [path.name.removeprefix("worker-") for path in tmp_path.glob("worker-*")]
    wait_until(lambda: all(gone(int(pid)) for pid in workers))
    assert not list(tmp_path.glob("picked*"))


def test_what_is_read_is_never_written_to(ask, tmp_path):
    before = (tmp_path / "pool.parquet").read_bytes()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "pool.parquet").write_bytes(before)
    (tmp_path / "ids.csv").write_text("1\n")
    for pool, out, *more in (
        ("pool.parquet", "pool.parquet"),
        ("folder", "folder/picked.parquet"),
        ("folder/*.parquet", "folder/pool.parquet"),
        ("folder/*.parquet", "folder/new.parquet"),
        ("**/*.parquet", "other.parquet"),
        ("pool.parquet", "ids.csv", "--exclude", "ids.csv"),
    ):
        code, said = ask("--pool", pool, "--strategy", "entropy", "--budget", 3, "--out", out, *more)
        assert (code, "is one of the input files" in said) == (2, True)
    assert (tmp_path / "pool.parquet").read_bytes() == (tmp_path / "folder" / "pool.parquet").read_bytes() == before
    assert (tmp_path / "ids.csv").read_text() == "1\n"
    assert len(list(tmp_path.rglob("*.parquet"))) == 3  # pool, memory, and the pool in the folder
    out = ("--strategy", "entropy", "--budget", 3, "--out", "folder/deep/picked.parquet")
    (tmp_path / "folder" / "deep").mkdir()
    assert ask("--pool", "folder/*.parquet", *out)[0] == 0  # which the pattern does not mean


def test_a_list_of_ids_from_elsewhere(ask, tmp_path):
    (tmp_path / "known.txt").write_bytes("\ufeff1\r\n2\r\n\r\n".encode())
    common = ("--pool", "pool.parquet", "--strategy", "entropy", "--budget", 3, "--out", "a.csv")
    assert "498 picked by entropy, 2 left out" in ask(*common, "--exclude", "known.txt")[1]
    code, said = ask(*common, "--exclude", "nothing.txt")
    assert (code, "there is no file nothing.txt" in said) == (2, True)

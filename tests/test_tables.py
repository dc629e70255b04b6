"""Tables with columns of any kind: how rows become vectors, files, projects, exports."""

from __future__ import annotations

import csv
import json
import lzma
import math
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

from accuacl.base.errors import InputError
from accuacl.base.progress import ignore
from accuacl.labeling.project import Project, TableOptions, Tasks, loader, make, read_like, read_table
from accuacl.labeling.project.exporting import export
from accuacl.labeling.project.table_encoder import (
    KNOTS,
    MOST_CATEGORIES,
    SHARED,
    WORDS,
    BadTable,
    check_names,
    encode,
    fit,
)
from commands import accuacl
from effort import examples
from processes import run_alone
from scripted import answer

SMALL = {"kind": "tables", "per_round": 8, "rounds": 2, "epochs": 5}


def column(values):
    """What is learned of a single column."""
    return fit([{"x": value} for value in values])[0]


def encoded(known, *values):
    return encode([known], [{"x": value} for value in values])


def claims(folder, count=40, name="claims.csv", first=0):
    """A table of claims: those above 500 from abroad are fraud."""
    rng = np.random.default_rng(first)
    rows = []
    for i in range(first, first + count):
        amount, abroad = int(rng.integers(1, 1000)), bool(rng.integers(2))
        fraud = "fraud" if amount > 500 and abroad else "fine"
        when = (datetime(2024, 1, 1) + timedelta(days=i)).date().isoformat()
        rows.append([f"c{i}", amount, "abroad" if abroad else "home", when, "" if i % 7 == 0 else i % 3, "EUR", fraud])
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "amount", "where", "when", "level", "currency", "verdict"])
        writer.writerows(rows)
    return folder / name


OPTIONS = TableOptions("number", "verdict", ("currency",))


def test_numbers_are_centred_scaled_and_ranked():
    values = [1.0, 2.0, 4.0, 9.0, None, "n/a", 100.0] + [float(x) for x in range(200, 260)]
    known, numbers = column(values), [v for v in values if isinstance(v, float)]
    assert known["kind"] == "number"
    rows = encoded(known, *values)
    assert rows.shape == (len(values), 3)
    mean, std = np.mean(numbers), np.std(numbers)
    for row, value in zip(rows, values, strict=True):
        if not isinstance(value, float):
            assert row.tolist() == [0, 0, 1]
            continue
        below = np.interp(value, np.quantile(numbers, np.linspace(0, 1, KNOTS)), np.linspace(-1, 1, KNOTS))
        expected = [(value - mean) / std / math.sqrt(2), below * math.sqrt(3) / math.sqrt(2), 0]
        np.testing.assert_allclose(row, expected, atol=1e-6)
    far = encoded(known, 1e300, -math.inf, "-inf", 10**400)
    np.testing.assert_allclose(far[:, 0], np.array([5, -5, -5, 5]) / math.sqrt(2), rtol=1e-6)


def test_categories_have_a_place_each_and_new_ones_share_some():
    known = column(["red", "green", "red", "", None])
    rows = encoded(known, "red", "green", "", "blue", None, float("nan"), " red ")
    assert rows.shape == (7, 3 + SHARED)
    assert (rows.sum(axis=1) == 1).all()
    assert rows[:, :3].argmax(axis=1).tolist()[:3] == [1, 2, 0]
    assert not rows[3, :3].any()  # blue is new
    assert (rows[[4, 5]] == rows[2]).all()
    assert (rows[6] == rows[0]).all()
    many = column([f"v{i % 80}" for i in range(200)])
    assert len(many["values"]) == MOST_CATEGORIES
    assert encoded(many, *(f"v{i}" for i in range(80))).sum() == 80


@pytest.mark.parametrize("spelt", [[True, False], ["True", "False"], ["true", "FALSE"]])
def test_truths_are_categories_however_they_are_spelt(spelt):
    known = column([True, False, None, True])
    assert known == {"name": "x", "kind": "category", "values": ["true", "false"]}
    np.testing.assert_array_equal(encoded(known, *spelt), encoded(known, True, False))


@pytest.mark.parametrize(
    ("values", "later"),
    [
        (["2024-01-31", "2023-07-01"], "2025-01-31"),
        (["2024-01-31T10:00:00", "2023-07-01 23:30:00+02:00"], "2024-02-01T00:00:00Z"),
        (["31.01.2024", "unknown", "", *["01.07.2023"] * 5], "unknown"),
        (["01/31/2024", "07/01/2023"], "12/31/2024"),
        (["31/01/2024", "01/07/2023"], "n/a"),
        (["10:15", "23:59"], "00:00"),
    ],
)
def test_dates_are_a_number_and_places_in_year_week_and_day(values, later):
    known = column(values)
    assert known["kind"] == "date"
    rows = encoded(known, *values, later)
    assert rows.shape == (len(values) + 1, 8)
    there = rows[:, 7] == 0
    for angle in (1, 3, 5):
        np.testing.assert_allclose((rows[there, angle : angle + 2] ** 2).sum(axis=1), 1, atol=1e-5)
    assert not rows[~there, :7].any()


def test_days_and_months_are_told_apart_by_all_rows():
    known = column([f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(60)] + ["13/01/2024"])
    assert known["format"] == "%d/%m/%Y"
    assert known["missing"] == []


def test_a_sunday_is_seven_days_from_the_next():
    rows = encoded(column(["2024-01-07", "2024-01-14", "2024-01-10"]), "2024-01-07", "2024-01-14", "2024-01-10")
    np.testing.assert_allclose(rows[0, 3:5], rows[1, 3:5], atol=1e-5)
    assert np.abs(rows[0, 3:5] - rows[2, 3:5]).max() > 0.5


def test_columns_that_name_the_rows_are_not_used():
    assert column([f"key-{i}" for i in range(30)])["kind"] == "unused"
    assert column([str(1000 + i) for i in reversed(range(30))])["kind"] == "unused"
    assert column([f"key-{i}" for i in range(5)])["kind"] == "category"  # too few to tell
    assert column([i * i for i in range(30)])["kind"] == "number"
    assert column(["007", "012", "007", "123"])["kind"] == "category"  # codes


def test_texts_are_their_words():
    known = column([f"the customer number {i} says it was stolen" for i in range(30)])
    assert known["kind"] == "text"
    rows = encoded(known, "Stolen it was", "it was STOLEN", "", None, "a " * 1000)
    assert rows.shape == (5, WORDS)
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1, 0, 0, 1], atol=1e-6)


@pytest.mark.parametrize("value", [5, "EUR", None, "2024-01-01"])
def test_a_constant_column_may_change_later(value):
    known = column([value] * 30)
    rows = encoded(known, value, value, 7 if value == 5 else "2024-03-05" if "2024" in str(value) else "USD", None)
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows[0], rows[1])
    assert (rows[0] != rows[2]).any()


def test_a_value_of_another_kind_is_refused_in_a_sentence():
    with pytest.raises(BadTable, match="row 1 has 'many' in the column 'x', which held numbers in the first task"):
        encoded(column([1, 2.5, 7]), 3, "many")
    with pytest.raises(BadTable, match="held dates"):
        encoded(column(["2024-01-01"] * 3), "yesterday")
    with pytest.raises(BadTable, match="columns of the first task are missing: b; add them"):
        check_names(fit([{"a": 1, "b": 2}]), ["a", "c"])


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates().map(str)


@examples(60, 1000)
@given(st.lists(VALUES, max_size=30), st.lists(VALUES, max_size=5))
@example([False, 0], [])
def test_any_column_becomes_finite_rows_that_do_not_depend_on_each_other(values, others):
    known = json.loads(json.dumps(column(values or [None])))
    rows = encoded(known, *values)
    assert rows.dtype == np.float32
    assert np.isfinite(rows).all()
    for value, row in list(zip(values, rows, strict=True))[:3]:
        np.testing.assert_array_equal(encoded(known, value)[0], row)
    for value in others:
        if known["kind"] in ("category", "text", "unused"):
            assert np.isfinite(encoded(known, value)).all()


def test_a_csv_file_keeps_values_as_they_are_written(tmp_path):
    items = read_table(claims(tmp_path), OPTIONS)
    assert items.names[:2] == ["c0", "c1"]
    assert list(items.shown[0]) == ["amount", "where", "when", "level"]
    assert items.shown[0]["level"] == ""
    assert set(items.labels) == {"fine", "fraud"}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.xz"])
def test_separators_and_compressed_files(tmp_path, separator, suffix):
    text = '\ufeffid;"a, b";c\n1;"x\ny";2\n\n2;"";3\n'.replace(";", separator)
    path = tmp_path / f"t{suffix}"
    path.write_bytes(lzma.compress(text.encode()) if suffix.endswith("xz") else text.encode())
    with pytest.warns(UserWarning, match="1 of 2 rows run over several lines, first lines 2 to 3"):
        items = read_table(path, TableOptions())
    assert items.names == ["1", "2"]
    assert items.shown == [{"a, b": "x\ny", "c": "2"}, {"a, b": "", "c": "3"}]


def test_parquet_has_its_own_kinds(tmp_path):
    columns = {"id": [5, 6], "n": [1.5, math.nan], "day": [datetime(2024, 1, 31), None], "ok": [True, None]}
    columns |= {"list": [[1], [2]], "bytes": [b"a", b"b"], "word": pa.array(["a", "b"]).dictionary_encode()}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match=r"t.parquet: left out, .*: list, bytes; --vectors takes lists of numbers\."):
        items = read_table(tmp_path / "t.parquet", TableOptions())
    assert items.names == ["5", "6"]
    assert items.shown[0] == {"n": 1.5, "day": "2024-01-31T00:00:00", "ok": True, "word": "a"}
    assert items.shown[1] == {"n": None, "day": None, "ok": None, "word": "b"}
    ignored = read_table(tmp_path / "t.parquet", TableOptions(ignored=("list", "bytes")))  # says nothing
    assert ignored.shown == items.shown


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("a,b\n1,2,3\n", TableOptions(), "line 2 has 3 fields and the header 2"),
        ("a,a\n1,2\n", TableOptions(), "two columns named 'a'"),
        ("1.5,x\n2,y\n,z\n", TableOptions(), r"looks like data \(1\.5, x\); write a header line above it"),
        ('a,b\n1,"2\n3,4\n', TableOptions(), "a quotation mark in the row that begins in line 2 is misplaced"),
        ("a,b\n", TableOptions(), "has no rows"),
        ("", TableOptions(), "has no rows"),
        ("id,label\n1,2\n", TableOptions(label="label"), "no columns to learn from"),
        ("amount,b\n1,2\n", TableOptions(ignored=("Amounts",)), "no column 'Amounts'; did you mean amount"),
        ("a,b\n1,2\n1,3\n", TableOptions(id="a"), "the id '1' occurs more than once"),
        ("a,b\n,2\n", TableOptions(id="a"), "row 0 has no id"),
        ("a\n" + "x" * 100_001 + "\n", TableOptions(), "longer than"),
        ("a\n\udcff\n", TableOptions(), "in UTF-8"),
    ],
)
def test_files_that_cannot_be_used_get_a_sentence(tmp_path, text, options, says):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=says):
        read_table(path, options)


@pytest.mark.parametrize("header", ["2019,2020,n", "0,1,label", ",0,1", "7,a,b", "nan,inf,x"])
def test_numbers_may_name_columns(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n0.5,-1,2\n1.5,3,4\n")
    items = read_table(tmp_path / "t.csv", TableOptions())
    assert [list(row) for row in items.shown] == [[name for name in header.split(",") if name]] * 2


@pytest.fixture
def project(tmp_path):
    Project.begin(tmp_path / "p", make(SMALL), ["fine", "fraud"], read_table(claims(tmp_path), OPTIONS))
    with Project.open(tmp_path / "p") as project:
        project.store.add_person("Ada")
        yield project


def finish(project, name):
    """Label and train until all is done."""
    while not project.advance().finished:
        answer(project, name=name)


def verdict(project, item):
    labels = [label for task in project.tasks.all() for label in project.tasks.table(task.index)["label"]]
    return labels[item]


def test_a_project_learns_tables_and_takes_later_ones_with_new_values(project, tmp_path):
    finish(project, verdict)
    later = claims(tmp_path, 30, "later.csv", 40)
    lines = later.read_text().replace("home", "near home").splitlines()  # a new category
    lines[3] = ",".join(["c42", "", "", "", "", "", ""])  # everything is missing
    later.write_text("\n".join([lines[0] + ",extra", *(line + ",1" for line in lines[1:])]) + "\n")
    with pytest.warns(UserWarning, match="left out, since the first task does not have them: extra"):
        items = read_like(project.tasks, "tables", later, "text")
    task = project.add(items)
    assert task.count == 30
    project.advance()
    rows = np.load(project.tasks.folder_of(1) / "inputs.npy")
    np.testing.assert_array_equal(rows, project.tasks.schema().encode(items.shown))
    fields = dict(project.item(41).fields)
    assert fields["number"] == "c41"
    assert "verdict" not in fields
    assert "currency" not in fields


def test_a_later_table_with_wrong_columns_is_refused(project, tmp_path):
    (tmp_path / "a.csv").write_text("number,where,when,level\n1,home,2024-01-01,2\n")
    with pytest.raises(InputError, match="columns of the first task are missing: amount; add them"):
        read_like(project.tasks, "tables", tmp_path / "a.csv", "text")
    (tmp_path / "b.csv").write_text("number,amount,where,when,level\n1,lots,home,2024-01-01,2\n")
    with pytest.raises(InputError, match=r"b.csv: row 0 has 'lots' in the column 'amount'"):
        project.add(read_table(tmp_path / "b.csv", TableOptions("number")))
    (tmp_path / "c.csv").write_text("amount,where,when,level\n1,home,2024-01-01,2\n")
    with pytest.raises(InputError, match="no column 'number'"):
        read_like(project.tasks, "tables", tmp_path / "c.csv", "text")
    assert len(project.tasks.all()) == 1


MAIN = "import runpy; runpy.run_path('model.py', run_name='__main__')"


def test_the_exported_model_takes_rows_without_the_package(project, tmp_path):
    finish(project, verdict)
    new = claims(tmp_path, 12, "new.csv", 90)
    written = export(project, tmp_path / "out", new, "text", ignore)
    assert {"table.json", "table_encoder.py", "predictions.csv"} <= {path.name for path in written}
    with new.open(newline="") as file:
        rows = list(csv.DictReader(file))
    p = loader.load(tmp_path / "out").probabilities(rows)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    said = (tmp_path / "out" / "predictions.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in said[1:]] == [row["number"] for row in rows]
    np.testing.assert_allclose([float(line.split(",")[2]) for line in said[1:]], p.max(axis=1), atol=1e-4)
    alone = run_alone(MAIN, new, cwd=tmp_path / "out")
    assert alone.returncode == 0, alone.stderr
    assert [line.split("\t")[1] for line in alone.stdout.splitlines()] == [line.split(",")[1] for line in said[1:]]
    tabs = tmp_path / "new.tsv"
    with tabs.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([list(rows[0]), *(row.values() for row in rows)])
    tabbed = run_alone(MAIN, tabs, cwd=tmp_path / "out")
    assert [line.split("\t")[1:] for line in tabbed.stdout.splitlines()] == [
        line.split("\t")[1:] for line in alone.stdout.splitlines()
    ]
    (tmp_path / "other.csv").write_text("where\nhome\n")
    wrong = run_alone(MAIN, tmp_path / "other.csv", cwd=tmp_path / "out")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("model.py: columns of the first task are missing: ")
    with pytest.raises(ValueError, match="are missing: amount"):
        loader.load(tmp_path / "out").probabilities([{"where": "home"}])


def test_rows_are_forgotten_with_their_labels(tmp_path):
    settings = make(SMALL | {"keep": "statistics", "holdout": 0})
    Project.begin(tmp_path / "p", settings, ["fine", "fraud"], read_table(claims(tmp_path), OPTIONS))
    with Project.open(tmp_path / "p") as project:
        project.store.add_person("Ada")
        finish(project, verdict)
        assert project.item(0).fields == (("number", "c0"),)  # erased with its task
        assert set(project.tasks.table(0)["label"]) == {None}
        labelled = next(iter(project.store.labels()))
        name = project.item(labelled).name
        assert project.forget([name]).difference < 1e-4
        assert labelled not in project.store.labels()


def test_new_and_add_from_the_command_line(tmp_path):
    args = ["--id-column", "number", "--label-column", "verdict", "--ignore", "currency", "--classes", "fine,fraud"]
    said = accuacl("project", "new", tmp_path / "p", "--table", claims(tmp_path), *args).stdout
    assert "task 1: 40 rows" in said
    assert "numbers: amount, level" in said
    assert "categories: where" in said
    assert "dates: when" in said
    assert Tasks(tmp_path / "p").schema().options == OPTIONS
    said = accuacl("project", "add", tmp_path / "p", "--table", claims(tmp_path, 5, "more.csv", 40)).stdout
    assert "task 2: 5 rows" in said
    wrong = accuacl("project", "new", tmp_path / "q", "--texts", tmp_path / "t.csv", "--ignore", "a")
    assert wrong.returncode == 2
    assert "go with --table" in wrong.stderr


def test_columns_that_look_like_answers_are_named(tmp_path):
    rows = "".join(f"{i % 7},{'ab'[i % 2]},{i % 3}\n" for i in range(30))
    (tmp_path / "t.csv").write_text(f"size,Class,y\n{rows}")
    new = ("project", "new", "--table", tmp_path / "t.csv")
    said = accuacl(*new, tmp_path / "a b").stdout
    start = "warning: the model learns from the column {!r}, which looks like the answers; start again with "
    for name in ("Class", "y"):
        assert f"{start.format(name)}--label-column {name} to take them as labels, or give --ignore {name}.\n" in said
    assert f"next: accuacl project serve '{tmp_path / 'a b'}'\n" in said
    assert "warning" not in accuacl(*new, tmp_path / "q", "--label-column", "Class", "--ignore", "y").stdout
    pq.write_table(pa.table({"size": range(9), "label": range(9)}), tmp_path / "v.parquet")
    new = ("project", "new", "--vectors", tmp_path / "v.parquet")
    said = accuacl(*new, tmp_path / "r").stdout
    assert f"{start.format('label')}--label-column label to take them as labels, or leave it out of the file." in said
    assert "warning" not in accuacl(*new, tmp_path / "s", "--label-column", "label").stdout


@pytest.mark.parametrize("suffix", [".csv.xz", ".csv.gz", ".jsonl.bz2"])
def test_a_damaged_compressed_file_is_named(tmp_path, suffix):
    (tmp_path / f"t{suffix}").write_bytes(b"not compressed at all")
    with pytest.raises(InputError, match=f"t{suffix}"):
        read_table(tmp_path / f"t{suffix}", TableOptions())
    (tmp_path / "t.csv.xz").write_bytes(lzma.compress(b"a,b\n1,2\n" * 1000)[:-40])
    with pytest.raises(InputError, match="damaged"):
        read_table(tmp_path / "t.csv.xz", TableOptions())


def test_what_is_quoted_in_the_header_separates_nothing(tmp_path):
    (tmp_path / "t.csv").write_text('a,"b;c;d;e"\n1,2\n')
    assert read_table(tmp_path / "t.csv", TableOptions()).shown == [{"a": "1", "b;c;d;e": "2"}]

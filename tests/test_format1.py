"""Files of format 1, by the version that first wrote them: they are opened and gone on with, by commands alone.

`format1/` has a run that was killed while the weights of a training were in place and not recorded, a finished run, and
a project of two tasks in the middle of its second, in which people have done all that people can do. What the version
that wrote them made of them is in `*-expected.json`. Its bits are those of one machine: on another the same must
happen, but numbers may differ.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from processes import Ended, start_command

FORMAT1 = Path(__file__).parent / "format1"
SETTINGS = ["--benchmark", "split-digits", "--scale", "smoke", "--width", 16, "--threads", 1]
RUNS = {
    "run-begun": [*SETTINGS, "--learner", "der++", "--strategy", "accuacl", "--tasks", 3],
    "run-done": [*SETTINGS, "--learner", "er", "--strategy", "coverage", "--memory-policy", "coverage", "--tasks", 2],
}
TOPICS = [["train", "ship"], ["sun", "rain"]]  # of a task's even and odd items


def command(folder: Path, *arguments: object, codes: tuple[int, ...] = (0,)) -> Ended:
    """A command that ends with one of these codes."""
    done = start_command(*arguments, cwd=folder, COLUMNS="200").wait()
    assert done.returncode in codes, done
    return done


def same_machine(said: str) -> bool:
    """Whether bits can be expected to be the same: nothing was noted, or another version of accuacl at most."""
    noted = re.search(r"was begun with (.*?): (its|what)", " ".join(said.split()))
    return noted is None or re.fullmatch(r"accuacl \S+ \(now \S+\)", noted[1]) is not None


def ask(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


def steps(journal: Path) -> dict[str, Any]:
    """What a journal has recorded, by task, round and kind; times and the machine left out."""
    rows = ask(journal, "SELECT task, round, kind, result FROM steps ORDER BY rowid")
    found = {f"{task}/{round}/{kind}": json.loads(result) for task, round, kind, result in rows}
    for kind in ("environment", "load"):
        found.pop(f"None/None/{kind}", None)
    if "None/None/result" in found:
        found["None/None/result"] = without_times(found["None/None/result"])
    return found


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("seconds", "version")}


def tensors(path: Path) -> dict[str, str]:
    """What identifies each tensor of a safetensors file: its type, shape and bytes."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    head, body = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    head.pop("__metadata__", None)
    return {
        name: f"{one['dtype']} {one['shape']} {hashlib.sha256(body[slice(*one['data_offsets'])]).hexdigest()}"
        for name, one in head.items()
    }


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: value for name, value in row.items() if name != "time"} for row in csv.DictReader(file)]


def words(text: str) -> str:
    """What a command printed, whatever lines and boxes it is in."""
    return " ".join(re.sub(r"[\u2500-\u257f]", " ", text).split())


def run_again(folder: Path, name: str) -> tuple[str, dict[str, Any]]:
    """Go on with a run; what was said, and what it has then."""
    said = command(folder, "run", "--out", name, *RUNS[name]).stdout
    run = folder / name
    return said, {
        "result": without_times(json.loads((run / "result.json").read_text())),
        "steps": steps(run / "journal.sqlite"),
        "weights": {path.name: tensors(path) for path in sorted((run / "weights").iterdir())},
    }


def topic(item: int) -> str:
    return TOPICS[item >= 30][item % 2]


def unanswered(project: Path) -> list[int]:
    """The items that the open round asks for, by rank."""
    last = "SELECT task, round FROM rounds ORDER BY task DESC, round DESC LIMIT 1"
    free = "item NOT IN (SELECT item FROM answers)"
    query = f"SELECT item FROM picks WHERE (task, round) = ({last}) AND {free} ORDER BY rank"
    return [item for (item,) in ask(project / "labels.sqlite", query)]


def finish_project(folder: Path) -> tuple[bool, dict[str, Any]]:
    """Label and train until nothing is asked for; whether bits are comparable, and what there is then."""
    project, said = folder / "project", ""
    begun = words(command(folder, "project", "status", "project").stdout)
    for turn in range(9):
        items = unanswered(project)
        if not items:
            break
        rows = "".join(f"{item},{topic(item)}\n" for item in items)
        (folder / f"{turn}.csv").write_text(f"item,class\n{rows}")
        given = ["--from", f"{turn}.csv", "--by", ("Ada", "Grace")[turn % 2], "--new-classes", "--train"]
        said += command(folder, "project", "label", "project", *given, codes=(0, 75)).stdout
    assert turn < 8
    (folder / "new.csv").write_text("id,text\na,the train is late at the station\nb,a dark cloud and a storm\n")
    end = words(command(folder, "project", "status", "project").stdout)
    command(folder, "project", "export", "project", "--out", "export", "--predict", "new.csv")
    return same_machine(said), {
        "begun": begun,
        "end": end,
        "turns": turn,
        **{name: table(folder / "export" / f"{name}.csv") for name in ("labels", "skipped", "comments", "predictions")},
        "model": tensors(folder / "export" / "model.safetensors"),
        "steps": steps(project / "journal.sqlite"),
        "weights": {path.name: tensors(path) for path in sorted((project / "weights").iterdir())},
        "classes": ask(project / "labels.sqlite", "SELECT id FROM classes ORDER BY id"),
    }


def expected(name: str) -> dict[str, Any]:
    return json.loads((FORMAT1 / f"{name}-expected.json").read_text(encoding="utf-8"))


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.fixture
def folder(tmp_path):
    """A copy to work on."""
    for path in FORMAT1.iterdir():
        if path.is_dir():
            shutil.copytree(path, tmp_path / path.name)
    return tmp_path


def without_new_keys(now: Any, known: Any) -> Any:
    """What is there now, without the settings and results that later versions add."""
    if not isinstance(now, dict) or not isinstance(known, dict):
        return now
    return {name: without_new_keys(value, known[name]) for name, value in now.items() if name in known}


def test_a_run_that_was_killed_goes_on_to_the_same_bytes(folder):
    before = steps(folder / "run-begun" / "journal.sqlite")
    assert "1/0/label" in before
    assert "1/0/train" not in before
    assert (folder / "run-begun" / "weights" / "001-000.safetensors").exists()
    said, now = run_again(folder, "run-begun")
    assert {key: now["steps"][key] for key in before} == before
    known = expected("run-begun")
    assert now["steps"].keys() == known["steps"].keys()
    assert now["weights"].keys() == known["weights"].keys()
    if not same_machine(said):
        return
    assert without_new_keys(as_json(now["result"]), known["result"]) == known["result"]
    assert without_new_keys(as_json(now["steps"]), known["steps"]) == known["steps"]
    assert now["weights"] == known["weights"]


def test_a_finished_run_is_shown_reported_and_embeds(folder):
    run, known = folder / "run-done", expected("run-done")
    written = (run / "result.json").read_bytes()
    said, now = run_again(folder, "run-done")
    assert as_json(now) == known["run"]
    assert (run / "result.json").read_bytes() == written
    accuracy = f"{json.loads(written)['average_accuracy']:.2f}"
    assert accuracy in said
    command(folder, "report", "run-done", "--out", "report.md")
    assert accuracy in (folder / "report.md").read_text()
    np.save(folder / "x.npy", np.linspace(0, 1, 3 * 64, dtype=np.float32).reshape(3, 64))
    command(folder, "embed", "--data", "x.npy", "--run", "run-done", "--out", "pool")
    (part,) = (folder / "pool").glob("*.parquet")
    pool = pq.read_table(part)
    assert np.array(pool["probability"].to_pylist()) == pytest.approx(np.array(known["probability"]), abs=1e-4)
    assert np.array(pool["embedding"].to_pylist()) == pytest.approx(np.array(known["embedding"]), abs=1e-3)


def test_a_project_goes_on_to_the_same_bytes(folder):
    kinds = {kind for (kind,) in ask(folder / "project" / "labels.sqlite", "SELECT kind FROM events")}
    known = expected("project")
    assert sorted(kinds) == known["kinds"]  # the fixture has not become poorer
    exact, now = finish_project(folder)
    assert now["begun"] == known["begun"]
    assert now["turns"] == known["turns"]
    for name in ("steps", "weights", "model"):
        assert now[name].keys() == known[name].keys(), name
    for name in ("labels", "skipped", "predictions"):
        assert len(now[name]) == len(known[name]), name
    assert as_json(now["comments"]) == known["comments"]
    if exact:
        for name in now:
            assert as_json(now[name]) == known[name], name


def test_people_of_a_project_keep_their_roles(folder):
    """The one lead stays the only one, and whoever was revoked stays so."""

    def person(*arguments: str, code: int = 0) -> Ended:
        return command(folder, "project", "person", "project", *arguments, codes=(code,))

    assert "'Ada' is the only lead" in person("annotator", "Ada", code=2).stderr
    assert "there is no person 'Eve' with access" in person("link", "Eve", code=2).stderr
    assert person("link", "Grace").stdout.strip()
    person("lead", "Grace")
    person("annotator", "Ada")

"""Directories that the version before the first with schema versions has made: they are opened and gone on with.

`old/` has them as they were left, but for absolute paths, which begin with /PLACE. What that version itself made of
them is beside them. Its bits are those of one machine: on another the same must happen, but numbers may differ.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import sqlite3
import sys
import uuid
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from accuacl.base.progress import ignore
from accuacl.cli import main
from accuacl.experiments import Config, difference, environment, make, read_steps, run
from accuacl.labeling.project import Project, export
from journals import records

OLD = Path(__file__).parent / "old"
PROJECTS = ["project-begun", "project-begun-finetune", "project-begun-texts", "project-begun-vectors"]
pytestmark = pytest.mark.filterwarnings("ignore:this (run|project) was begun with")


def copied(name: str, folder: Path) -> Path:
    """A copy to work on, with paths to where it is."""
    place = folder / name
    shutil.copytree(OLD / name, place)
    for path in [place / "project" / "config.json", *place.glob("project/tasks/*/task.json")]:
        if path.exists():
            path.write_text(path.read_text().replace("/PLACE", str(place)))
    return place


def same_machine(journal: Path, config: Config) -> bool:
    """Whether bits can be expected to be the same."""
    (step,) = read_steps(journal, "environment")
    return difference({**step.result, "accuacl": ""}, {**environment(config), "accuacl": ""}) == ""


def settings(learner: str) -> Config:
    return make({"benchmark": "split-digits", "scale": "smoke", "width": 16, "learner": learner})


@pytest.mark.parametrize(("name", "learner"), [("run-begun", "er"), ("run-begun-derpp", "der++")])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(tmp_path, name, learner):
    """er: after its second training of task 2, before old weights were deleted; der++: between file and record."""
    folder = copied(name, tmp_path)
    before = records(folder / "journal.sqlite")
    assert list(before)[-1] == ("001/001/train" if learner == "er" else "001/001/label")
    result, expected = run(settings(learner), folder), json.loads((OLD / f"{name}-result.json").read_text())
    after = records(folder / "journal.sqlite")
    assert {key: after[key] for key in before} == before
    assert sorted(path.name for path in (folder / "weights").iterdir()) == [
        f"{task}-001{what}.safetensors" for task in ("003", "004") for what in ("-memory", "")
    ]
    if not same_machine(folder / "journal.sqlite", settings(learner)):
        return
    added = {name: value for name, value in result["config"].items() if name not in expected["config"]}
    assert added == {name: Config.model_fields[name].default for name in added}
    for name in expected.keys() - {"seconds", "version", "config"}:
        assert result[name] == expected[name], name
    assert result["config"] == expected["config"] | added
    undisturbed = OLD / "run-done" / "weights"
    if learner == "er":
        for path in undisturbed.iterdir():
            assert (folder / "weights" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_finished_run_is_shown_reported_and_embeds(tmp_path, monkeypatch, capsys):
    folder = copied("run-done", tmp_path)
    shown = json.loads((folder / "result.json").read_text())
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["accuacl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, capsys.readouterr().err

    np.save("x.npy", np.random.default_rng(0).random((7, 64), np.float32))
    command("report", folder, "--out", "report.md")
    assert f"{shown['average_accuracy']:.2f}" in Path("report.md").read_text()
    command("embed", "--data", "x.npy", "--run", folder, "--out", "pool")
    assert list(Path("pool").glob("*.parquet"))
    db = sqlite3.connect(folder / "journal.sqlite")
    assert db.execute("PRAGMA user_version").fetchone() == (0,)  # reading changed nothing
    db.close()
    assert run(settings("er"), folder) == shown
    assert list(records(folder / "journal.sqlite"))[:4] == ["environment", "load", "data", "result"]


def told(project: Project) -> dict:
    """What the project says of itself, as JSON; times left out."""
    store, estimates = project.store, project.estimates()
    figures = asdict(estimates) | {"confusion": [[a, b, n] for (a, b), n in sorted(estimates.confusion.items())]}
    for moment in figures["history"]:
        del moment["forgetting"]  # which the versions that wrote these files did not know
    del figures["forecast"], figures["calibration"], figures["class_forgetting"]  # which these versions did not make
    rounds = [(task, round) for task in range(2) for round in range(2)]
    state = {name: value for name, value in asdict(project.state()).items() if name != "text"}
    assert state["status"].pop("opinions") == 0  # which these versions did not ask for
    said = {
        "state": state,
        "people": [{"id": p.id, "name": p.name, "revoked": p.revoked} for p in store.people()],
        "classes": [asdict(one) for one in store.classes()],
        "picks": {f"{task}/{round}": [asdict(p) for p in store.picks(task, round)] for task, round in rounds},
        "estimates": figures,
        "answers": [[answer.item, answer.class_id, answer.person] for answer in store.answers()],
    }
    return rounded(json.loads(json.dumps(said)))


def rounded(value):
    """Numbers to ten digits: intervals come from scipy, which may differ in the last bits."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_goes_on_to_the_same_bytes(tmp_path, name):
    folder, expected = copied(name, tmp_path), json.loads((OLD / f"{name}-expected.json").read_text())
    tokens = json.loads((folder / "tokens.json").read_text())
    for moment in (expected["begun"], expected["end"]):
        del moment["state"]["text"]  # the words may change, the facts may not
    with Project.open(folder / "project") as project:
        project.trust_code()
        exact = same_machine(project.journal, project.settings.as_config())
        assert told(project) == rounded(expected["begun"])
        ada = project.store.person_of(tokens["Ada"])
        assert project.store.person_of(tokens["Eve"]) is None
        requests = iter(range(10**6, 10**7))
        while not project.advance().finished:
            while (pick := project.store.lease(ada)) is not None:
                project.store.label(ada, pick.item, pick.item % 2, str(uuid.UUID(int=next(requests))))
        second = sorted((folder / "data").iterdir())[1]
        export(project, folder / "export", second, "text", ignore)
        end, steps = told(project), records(project.journal)
        weights = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (project.directory / "weights").iterdir()
        }
    assert end["state"] == expected["end"]["state"]
    assert sorted(weights) == sorted(expected["end"]["weights"])
    if not exact:
        return
    done = expected["end"].pop("steps")
    assert steps.keys() - {"environment"} == done.keys()
    for key, result in done.items():
        if key.endswith("/train"):  # where the memory is said to be, which is now said by its own step alone
            result.pop("memory", None)
            steps[key].pop("memory", None)
        assert steps[key] == result, key
    assert weights == expected["end"].pop("weights")
    assert end == rounded(expected["end"])
    with (folder / "export" / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row.pop("guess_shown") for row in rows} == {""}  # which that version did not record
    labels = [{k: v for k, v in row.items() if k not in ("source", "time", "text")} for row in rows]  # new: text
    assert labels == list(csv.DictReader(io.StringIO(expected["labels"])))
    with (folder / "export" / "predictions.csv").open(newline="") as file:
        predictions = [{k: v for k, v in row.items() if k != "text"} for row in csv.DictReader(file)]
    assert predictions == list(csv.DictReader(io.StringIO(expected["predictions"])))
    tensors = safetensors.numpy.load((folder / "export" / "model.safetensors").read_bytes())
    assert {key: hashlib.sha256(a.tobytes()).hexdigest() for key, a in tensors.items()} == expected["tensors"]

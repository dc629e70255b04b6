"""Small projects and people who always know the answer, for tests of projects."""

from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np

import journals
from accuacl.labeling.project import NewItems, Project, make, read_texts

SMALL = {"kind": "vectors", "per_round": 8, "rounds": 2, "memory": 10, "epochs": 4, "batch": 8, "strategy": "accuacl"}
SMALL["first_round"] = "uniform"


def blobs(task: int, count: int = 60, d: int = 6) -> tuple[NewItems, list[str]]:
    """Vectors around two points of the task's own, and the name of the class of each."""
    rng = np.random.default_rng(task)
    centres = np.random.default_rng(99).normal(size=(20, d)) * 3
    which = rng.integers(2, size=count)
    vectors = (centres[2 * task + which] + rng.normal(size=(count, d))).astype(np.float32)
    names = [f"t{task}-{i}" for i in range(count)]
    return NewItems("vectors", f"blobs {task}", names, vectors=vectors), [f"class {2 * task + w}" for w in which]


def new_project(folder: Path, tasks: int = 1, **more) -> Project:
    project = Project.create(folder, make(SMALL | more))
    project.store.add_person("Ada")
    for task in range(tasks):
        project.add(blobs(task)[0])
    return project


def texts_project(folder: Path) -> Project:
    """Twenty texts in `t.csv`, of two classes, all labelled and learned, in `p`."""
    rows = [f"{verb} it {i}" for i in range(10) for verb in ("open", "close")]
    (folder / "t.csv").write_text("id,text\n" + "\n".join(f"k{i},{row}" for i, row in enumerate(rows)) + "\n")
    settings = make({"kind": "texts", "per_round": 8, "rounds": 1, "epochs": 10, "text_features": 64})
    project = Project.create(folder / "p", settings)
    project.store.add_person("Ada")
    project.add(read_texts(folder / "t.csv", "text"))
    while not project.advance().finished:
        answer(project, name=lambda project, item: project.item(item).text.split()[0])
    return project


def truth(project: Project, item: int) -> str:
    task = project.tasks.find(item)
    return blobs(task.index)[1][item - task.first]


def answer(project: Project, limit: int = 10**9, skip=lambda pick: False, name=truth) -> list[int]:
    """Label what there is to label, as the first person; the items."""
    store = project.store
    person = next(one for one in store.people() if not one.revoked)
    done = []
    while len(done) < limit and (pick := store.lease(person)) is not None:
        if skip(pick):
            store.skip(person, pick.item, uuid.uuid4().hex)
        else:
            store.label(person, pick.item, class_of(project, name(project, pick.item)), uuid.uuid4().hex)
        done.append(pick.item)
    return done


def class_of(project: Project, name: str) -> int:
    known = {one.name: one.id for one in project.store.classes()}
    return known[name] if name in known else project.store.add_class(name).id


def finish(project: Project) -> None:
    """Label and train until all is done."""
    while not project.advance().finished:
        answer(project)


def records(project: Project, like: str = "*") -> dict:
    """What the journal has of the steps whose keys are like that."""
    return journals.records(project.journal, like)


def outcome(project: Project) -> tuple[dict, dict]:
    """All records and weights: what must be the same to the last byte."""
    weights = {path.name: path.read_bytes() for path in (project.directory / "weights").iterdir()}
    return records(project), weights

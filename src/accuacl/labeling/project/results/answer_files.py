"""What people said, as files of an export: labels, skips and comments."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from accuacl.base.files import write_bytes
from accuacl.experiment import read_steps
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.results.cells import write_csv
from accuacl.labeling.store import Person

WHICH = ("item", "task", "round", "source", "name")
COLUMNS = (*WHICH, "class", "person", "time", "held_out", "guess_shown")
SKIPPED = (*WHICH, "person", "time")
COMMENTS = (*WHICH, "kind", "comment", "person", "time")

Rows = list[dict[str, Any]]
Which = Callable[[int], dict[str, Any]]  # what is said of an item


def write_answers(project: Project, out: Path, whole_places: bool = True) -> list[Path]:
    """labels.csv, the same as labels.parquet, skipped.csv and comments.csv; of texts with the text.

    whole_places: sources are whole paths, not names alone.
    """
    text = ("text",) if project.settings.kind == "texts" else ()
    which = partial(_which, project, project.store.rounds_of_items(), whole_places)
    labels, skips = _answers(project, which)
    _write_csv(out / "labels.csv", (*COLUMNS, *text), labels)
    _write_parquet(out / "labels.parquet", labels, text)
    _write_csv(out / "skipped.csv", (*SKIPPED, *text), skips)
    _write_csv(out / "comments.csv", (*COMMENTS, *text), _comments(project, which))
    return [out / name for name in ("labels.csv", "labels.parquet", "skipped.csv", "comments.csv")]


def _answers(project: Project, which: Which) -> tuple[Rows, Rows]:
    """The present labels, and what is skipped."""
    held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
    classes = {c.id: c.name for c in project.store.classes()}
    people = {person.id: person for person in project.store.people()}
    shown = project.store.guesses_shown()
    labels: Rows = []
    skips: Rows = []
    for answer in project.store.answers():
        row = which(answer.item) | _who(people, answer.person, answer.time)
        if answer.class_id is None:
            skips.append(row)
            continue
        guess = classes[shown[answer.item]] if answer.item in shown else None  # as it was shown, merged since or not
        labelled = {"class": classes[answer.class_id], "held_out": answer.item in held, "guess_shown": guess}
        labels.append(row | labelled)
    return labels, skips


def _comments(project: Project, which: Which) -> Rows:
    """What people wrote, and what they flagged, first to last."""
    people = {person.id: person for person in project.store.people()}
    return [
        which(said.item) | _who(people, said.person, said.time) | {"kind": said.kind, "comment": said.text or ""}
        for said in project.store.comments()
        if said.item is not None
    ]


def _which(project: Project, rounds: dict[int, int], whole_places: bool, item: int) -> dict[str, Any]:
    shown, task = project.item(item), project.tasks.find(item)
    source = task.place if whole_places else Path(task.place).name
    which = dict(zip(WHICH, (item, task.index + 1, rounds[item] + 1, source, shown.name), strict=True))
    return which | ({"text": shown.text} if project.settings.kind == "texts" else {})


def _who(people: dict[int, Person], person: int | None, when: float) -> dict[str, Any]:
    name = people[person].name if person in people else None
    return {"person": name, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))}


def _write_parquet(path: Path, rows: Rows, text: tuple[str, ...]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (*[pa.int64()] * 3, *[pa.string()] * 5, pa.bool_(), *[pa.string()] * (1 + len(text)))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(zip((*COLUMNS, *text), kinds, strict=True)))), sink)
    write_bytes(path, sink.getvalue())


def _write_csv(path: Path, columns: Sequence[str], rows: Rows) -> None:
    write_csv(path, [columns, *([row.get(name) for name in columns] for row in rows)])

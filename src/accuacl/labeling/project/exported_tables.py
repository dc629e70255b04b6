"""What people answered, as tables: labels.csv and labels.parquet, skipped.csv, answers.csv and comments.csv.

The labels are those that count. answers.csv has every answer of every person: second opinions, what was corrected since
and what was taken back.

In a CSV file a cell that a spreadsheet would take for a formula has a ' before it.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accuacl.base.files import write_bytes, write_text
from accuacl.experiments import read_steps

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

WHICH = ("item", "task", "round", "source", "name")
COLUMNS = (*WHICH, "class", "person", "time", "held_out", "guess_shown")
SKIPPED = (*WHICH, "person", "time", "reason")
ANSWERS = (*WHICH, "kind", "class", "person", "time", "seconds", "guess_shown", "undone", "reason")
COMMENTS = (*WHICH, "kind", "comment", "person", "time")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # the characters with which a spreadsheet's formula may begin

Records = list[dict[str, Any]]
Common = Callable[[int, int | None, float], dict[str, Any]]  # turns (item, person, time) into common columns


def write_answers(project: Project, out: Path, whole_places: bool = True) -> list[Path]:
    """Write labels.csv, labels.parquet, skipped.csv, answers.csv and comments.csv, which contain the items' texts.

    whole_places: the column of sources has whole paths, not names alone.
    """
    text = ("text",) if project.settings.kind == "texts" else ()
    rounds = project.store.rounds_of_items()
    people: dict[int | None, str] = {person.id: person.name for person in project.store.people()}

    def common(item: int, person: int | None, when: float) -> dict[str, Any]:
        """Return the columns that all tables have, which identify the item, the person and the time."""
        shown, task = project.item(item), project.tasks.find(item)
        source = task.source(whole_places)
        row = dict(zip(WHICH, (item, task.index + 1, rounds[item] + 1, source, shown.name), strict=True))
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
        return row | {"text": shown.text, "person": people.get(person), "time": at}

    labels, skips = _answers(project, common)
    _write_parquet(out / "labels.parquet", labels, text)
    tables = {
        "labels.csv": ((*COLUMNS, *text), labels),
        "skipped.csv": ((*SKIPPED, *text), skips),
        "answers.csv": ((*ANSWERS, *text), _every_answer(project, common)),
        "comments.csv": ((*COMMENTS, *text), _comments(project, common)),
    }
    for name, (columns, rows) in tables.items():
        write_csv(out / name, [columns, *([row.get(column) for column in columns] for row in rows)])
    return [out / name for name in ("labels.csv", "labels.parquet", "skipped.csv", "answers.csv", "comments.csv")]


def _answers(project: Project, common: Common) -> tuple[Records, Records]:
    """Return the rows of the present labels, and those of the skipped items."""
    held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
    classes = {c.id: c.name for c in project.store.classes()}
    shown = project.store.guesses_shown()
    reasons = {(answer.item, answer.time): answer.reason for answer in project.store.every_answer() if answer.reason}
    labels: Records = []
    skips: Records = []
    for answer in project.store.answers():
        row = common(answer.item, answer.person, answer.time)
        if answer.class_id is None:
            skips.append(row | {"reason": reasons.get((answer.item, answer.time))})
            continue
        guess = classes[shown[answer.item]] if answer.item in shown else None  # even if it was merged since
        labelled = {"class": classes[answer.class_id], "held_out": answer.item in held, "guess_shown": guess}
        labels.append(row | labelled)
    return labels, skips


def _every_answer(project: Project, common: Common) -> Records:
    """Return all labels, skips, opinions and corrections, the oldest first."""
    classes: dict[int | None, str | None] = {None: None} | {c.id: c.name for c in project.store.classes()}
    return [
        common(answer.item, answer.person, answer.time)
        | {
            "kind": answer.kind,
            "class": classes[answer.class_id],
            "seconds": None if answer.seconds is None else round(answer.seconds, 1),
            "guess_shown": classes[answer.shown],
            "undone": answer.undone,
            "reason": answer.reason,
        }
        for answer in project.store.every_answer()
    ]


def _comments(project: Project, common: Common) -> Records:
    """Return all comments and flags, the oldest first."""
    return [
        common(event.item, event.person, event.time) | {"kind": event.kind, "comment": event.text or ""}
        for event in project.store.comments()
        if event.item is not None
    ]


def _write_parquet(path: Path, rows: Records, text: tuple[str, ...]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (*[pa.int64()] * 3, *[pa.string()] * 5, pa.bool_(), *[pa.string()] * (1 + len(text)))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(zip((*COLUMNS, *text), kinds, strict=True)))), sink)
    write_bytes(path, sink.getvalue())


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows, of which the first is the header, to a CSV file with cells escaped."""
    text = io.StringIO()
    usual = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)  # the default does not quote \r
    for row in rows:
        cells = [with_escape(value) for value in row]
        writer = quoted if any("\r" in cell for cell in cells if isinstance(cell, str)) else usual
        writer.writerow(cells)
    write_text(path, text.getvalue())


def with_escape(value: Any) -> Any:
    """Return a cell with a ' before it where a spreadsheet would take it for a formula; numbers stay.

    What looks like that already gets another ', so that `without_escape` gives everything back.

    >>> with_escape("=1+1"), with_escape("'=1+1"), with_escape("-1.5"), with_escape("'tis")
    ("'=1+1", "''=1+1", '-1.5', "'tis")
    """
    if not isinstance(value, str) or not value.lstrip("'").startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def without_escape(cell: str) -> str:
    """Return the text that `with_escape` was given.

    >>> without_escape("'=1+1"), without_escape("''=1+1"), without_escape("-1.5"), without_escape("'tis")
    ('=1+1', "'=1+1", '-1.5', "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell

"""Deletion on request: a project forgets items, with their labels and all that its model has learned from them.

What is to be done is written to `forgetting.json` first, so that after a kill the next `advance` does the rest. The
model is then as if the project had never had the items: the last training is done again, or, where only sums are kept,
the items' shares are taken out of the sums.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, read_json, write_text
from accuacl.base.machine import sync_folder
from accuacl.experiments import Handle, Journal, Step, checkpoints, read_steps
from accuacl.experiments.heads import Sums, examples_of, fit_like, sums_of, together, without
from accuacl.labeling.project.erasing import FORGET_PLAN, erased_rows, forget_items
from accuacl.labeling.project.given_labels import drop_given
from accuacl.labeling.project.learned import difference_from_fit, load_sums, row_from_source, rows_of, save_sums
from accuacl.labeling.project.rounds import taught_by
from accuacl.labeling.project.settings import STATISTICS
from accuacl.labeling.project.tasks import Item, Tasks
from accuacl.labeling.store import merges

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

ASIDE = "forgetting"  # a folder in weights/ with new files, until they replace the old ones
STAY = {  # {kind of data: files with measurements over all items of the first task together}
    "texts": "how common words are (words.json) and how long vectors are (scale.safetensors)",
    "tables": "means, deviations and quantiles of columns (table.json) and how long rows are (scale.safetensors)",
}


@dataclass(frozen=True)
class ForgetReport:
    """items: as they were before. model: whether the project has one.

    difference: with examples, by how much the model differs from a fit without the items (`difference_from_fit`),
    relative to the largest number; with sums, by how much these differ when the items are taken out and put back; None
    if they had no share. as_before: the model is fitted to sums alone, regularised and as sharp as before, since the
    examples to choose by are gone. measured: items of the first task were there when its data were measured.
    """

    items: list[Item]
    kind: str
    by_sums: bool
    model: bool
    difference: float | None = None
    as_before: bool = False
    measured: bool = False

    @property
    def sentences(self) -> list[str]:
        """Return sentences on the proof that the items are forgotten, and on what it does not cover."""
        sentences = [f"proof: {self._proof()}"]
        if self.as_before:
            sentences.append(
                "not as if they had never been there: how strongly the model is regularised, one step of a scale, and "
                "how sharp its probabilities are, one number, were chosen with them; the examples to choose by are "
                "erased"
            )
        if self.measured:
            what = STAY.get(self.kind, "means and deviations of the columns (scale.safetensors)")
            if self.kind == "tables" and self.by_sums:
                what = f"names of categories, if the first task has ended, {what}"
            sentences.append(
                f"stays: {what}, measured on the whole first task; measured again, all vectors would change"
            )
        return sentences

    def _proof(self) -> str:
        if self.by_sums and self.difference is not None:
            return f"taken out of the sums and put back, they give the old sums up to {self.difference:.0e}"
        if not self.model:
            return "nothing has been learned yet, so there is no model that could know them"
        if self.difference is None:
            return "they were in no sums; the model is fitted to the sums and examples that are left"
        if not self.difference:
            return "the model gives to the bit what one fitted without them from scratch gives"
        return f"the model differs from one fitted without them from scratch by {self.difference:.0e}"


def plan_forgetting(project: Project, items: list[int], column: str) -> tuple[float | None, bool]:
    """Write down what has to be done; return `difference` of the sums and `as_before` for the report.

    column: the column of texts, needed if an item must be read again from its file.
    """
    if not project.settings.exact:
        learner = project.settings.learner
        raise InputError(f"{learner} cannot take back what it has learned; only ridge and kernel forget items.")
    shutil.rmtree(project.weights / ASIDE, ignore_errors=True)  # a process may have been killed here before
    make_folder(project.weights / ASIDE)
    by_sums, trained = project.settings.keep == STATISTICS, read_steps(project.journal, "train")
    still = [step for step in trained if _taught(project, step).keys() - set(items)]
    last = still[-1] if still else None
    finished = last is not None and bool(read_steps(project.journal, "evaluate", task=last.task))
    handles: dict[str, Handle] = {}
    offs: list[float] = []
    sums: Sums = {}
    for step in read_steps(project.journal, "memory"):
        handle = step.result["file"]
        if handle is None or not (project.weights / handle["file"]).exists():
            continue
        aside = project.weights / ASIDE / handle["file"]
        if by_sums:
            sums, each = _taken_out(project, step, items, column)
            offs += each
            handles[handle["file"]] = save_sums(aside, sums)
        else:
            arrays = checkpoints.load_arrays(project.weights, handle)
            kept = ~np.isin(arrays["ids"], items)
            smaller = checkpoints.save_arrays(aside, {name: array[kept] for name, array in arrays.items()})
            handles[handle["file"]] = dict(smaller)
    again = tested = None
    if last is not None and by_sums and finished:  # else the sums do not change
        refitted = _fitted(project, last.result, trained[-1].result, sums) if sums and offs else last.result
        handles[last.result["file"]] = refitted
        tested = [last.task, last.round] if offs else None
    elif last is not None:
        again = [last.task, last.round]
    nothing = [[step.task, step.round] for step in trained if step not in still]
    planned = {"items": items, "files": handles, "again": again, "tested": tested, "nothing": nothing}
    write_text(project.directory / FORGET_PLAN, json.dumps(planned) + "\n")
    return max(offs, default=None), tested is not None


def finish_forgetting(project: Project, journal: Journal) -> None:
    """Do what `plan_forgetting` has written down, or the rest of it if a process was killed while it did so."""
    path, weights = project.directory / FORGET_PLAN, project.weights
    planned = read_json(path)
    if planned is None:
        return
    journal.rewrite(lambda *record: _without_items(planned, project.tasks, *record))
    for name in planned["files"]:
        if (weights / ASIDE / name).exists():
            os.replace(weights / ASIDE / name, weights / name)
    for weight in weights.glob("*.safetensors"):  # models that were fitted with the items
        if weight.name not in planned["files"] and not weight.name.endswith("-memory.safetensors"):
            weight.unlink()
    sync_folder(weights)
    drop_given(project.tasks, set(planned["items"]))
    project.store.forget(planned["items"])
    for task in project.tasks.all():
        rows = [item - task.first for item in planned["items"] if item in task]
        if rows:
            forget_items(project.tasks, task, rows)
    path.unlink()
    shutil.rmtree(weights / ASIDE, ignore_errors=True)


def report_forgetting(project: Project, items: list[Item], off: float | None, as_before: bool) -> ForgetReport:
    """Return the report on forgotten items, once everything is done."""
    by_sums, model = project.settings.keep == STATISTICS, bool(read_steps(project.journal, "train"))
    if model and not by_sums:
        off = difference_from_fit(project)
    measured = any(item.task == 0 for item in items) and (project.tasks.folder_of(0) / "inputs.json").exists()
    return ForgetReport(items, project.settings.kind, by_sums, model, off, as_before, measured)


def _taught(project: Project, training: Step) -> dict[int, int]:
    """Return {item: class} of the labels that a training has learned of its own task."""
    answers = read_steps(project.journal, "label", task=training.task)
    return taught_by(step for step in answers if (step.round or 0) <= (training.round or 0))


def _taken_out(project: Project, memory: Step, items: list[int], column: str) -> tuple[Sums, list[float]]:
    """Return a task's final sums without the items, and how far they change if an item is taken out and put back.

    The second result has a number for each item that was in the sums.
    """
    sums, offs = load_sums(project.weights, memory.result["file"]), list[float]()
    became = merges(project.store.classes())
    inside: dict[int, int] = {}
    for step in read_steps(project.journal, "memory"):
        if step.task is not None and memory.task is not None and step.task <= memory.task:
            inside |= dict(step.result["summed"])
    for item in items:
        if item not in inside:
            continue
        label = next((id for id in became[inside[item]] if id in sums), inside[item])  # merged, or as it was
        task = project.tasks.find(item)
        if item - task.first in erased_rows(project.tasks, task):
            row = row_from_source(project.settings, project.tasks, item, column)
        else:
            row = rows_of(project.settings, project.tasks, [item])[0]
        x, before = torch.from_numpy(row), sums
        sums = without(sums, x, label)
        back = together(sums, sums_of(x[None], torch.tensor([label])))[label]
        scatters = [value.scatter.T @ value.scatter for value in (back, before[label])]
        differences = (back.mean - before[label].mean, scatters[0] - scatters[1])
        offs.append(max(float(values.abs().max()) for values in differences))
    return sums, offs


def _fitted(project: Project, handle: Handle, newest: Handle, sums: Sums) -> Handle:
    """Fit a model to these sums alone, to replace the newest; return its handle.

    It keeps the regularisation and sharpness of the model `handle`, because the examples that chose them are gone.
    """
    state, facts = checkpoints.load_tensors(project.weights, newest), handle["facts"]
    rows, labels = examples_of(sums)
    head = fit_like(rows, labels, len(state["head.weight"]), facts["ridge"], facts["sharpness"])
    state |= {"head.weight": head.weight.float(), "head.bias": head.bias.float()}
    saved = checkpoints.save_tensors(project.weights / ASIDE / handle["file"], state)
    facts = facts | {"ridge": head.ridge, "before_forgetting": True}
    return handle | saved | {"seen": sorted(sums), "facts": facts}


def _without_items(
    planned: dict[str, Any], tasks: Tasks, task: int | None, round: int | None, kind: str, result: Any
) -> Any:
    """Return the result of a step without the items; None if the step has to be done again.

    planned: the `items`, new handles of `files` by their names, the last training, if it is to be done `again` or what
    replaces its model to be `tested`, and the trainings that are left with `nothing` to learn.
    """
    gone, files, again = set(planned["items"]), planned["files"], planned["again"]
    if _since(again, task, round) and kind in ("train", "test", "memory", "evaluate"):
        return None
    if _since(planned["tested"], task, round) and kind in ("test", "evaluate"):
        return None
    if [task, round] in planned["nothing"] and kind in ("train", "test"):
        return None
    if kind == "data" and task is not None:
        info = tasks.all()[task]
        rows = {item - info.first for item in gone if item in info}
        return result | {"bad": sorted(rows | set(result["bad"]))}
    if kind == "query":
        aligned = _aligned(result, gone, ("ids", "guess", "confidence"))
        scores = _aligned(result["scores"] | {"ids": result["ids"]}, gone, tuple(result["scores"]))
        return _filtered(result | aligned | {"scores": scores}, gone, "held")
    if kind == "label":
        return _filtered(result, gone, "labels", "skipped", "held", "corrected", "late", "given")
    if kind in ("test", "evaluate"):
        return _filtered(result, gone, "predictions")
    if kind == "memory":
        aligned = _aligned(result, gone, tuple(name for name in result if name not in ("summed", "file")))
        handle = files.get(result["file"]["file"], result["file"]) if result["file"] else None
        return _filtered(result | aligned | {"file": handle}, gone, "summed")
    return files.get(result["file"], result) if kind == "train" else result


def _since(training: list[int] | None, task: int | None, round: int | None) -> bool:
    """Return whether a step belongs to a training, to the end of its task, or to a later task."""
    if training is None or task is None:
        return False
    return task > training[0] or (task == training[0] and round in (training[1], None))


def _aligned(result: dict[str, Any], gone: set[int], names: tuple[str, ...]) -> dict[str, list[Any]]:
    """Return the lists that run parallel to `ids` without the entries of removed items; empty lists stay empty."""
    kept = [row for row, item in enumerate(result["ids"]) if item not in gone]
    return {name: [result[name][row] for row in kept] if result[name] else [] for name in names}


def _filtered(result: dict[str, Any], gone: set[int], *names: str) -> dict[str, Any]:
    """Return lists of items, or of rows that begin with an item, without the removed items."""

    def left(values: list[Any]) -> list[Any]:
        return [value for value in values if (value[0] if isinstance(value, list) else value) not in gone]

    return result | {name: left(result[name]) for name in names if name in result}

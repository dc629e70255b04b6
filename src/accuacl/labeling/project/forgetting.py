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
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, reading, sync_folder, write_text
from accuacl.experiments import Handle, Journal, Step, load_arrays, load_tensors, read_steps, save_arrays, save_tensors
from accuacl.experiments.heads import Sums, examples_of, fit_like, sums_of, together, without
from accuacl.labeling.project import learned
from accuacl.labeling.project.erasing import erased_rows, forget_items
from accuacl.labeling.project.learned import load_sums, save_sums
from accuacl.labeling.project.settings import STATISTICS, ProjectSettings
from accuacl.labeling.project.tasks import Item, Tasks
from accuacl.labeling.project.taught import drop, taught_by
from accuacl.labeling.store import Store, merges

ASIDE = "forgetting"  # the folder in weights/ with the files that will take the place of others


@dataclass(frozen=True)
class Planned:
    """off: how the sums differ when the items are put back, None if they had no share; as_before: as in `Forgot`."""

    off: float | None
    as_before: bool


@dataclass(frozen=True)
class Forgetting:
    """The parts of a project that have to do with it. column: that of texts, if they must be read again."""

    directory: Path
    settings: ProjectSettings
    tasks: Tasks
    store: Store
    column: str = "text"

    @property
    def journal(self) -> Path:
        return self.directory / "journal.sqlite"

    @property
    def weights(self) -> Path:
        return self.directory / "weights"

    def plan(self, items: list[int]) -> Planned:
        """Write down what has to be done, and what can be said of it already."""
        if self.settings.learner != "ridge":
            raise InputError(f"{self.settings.learner} cannot take back what it has learned; only ridge forgets items.")
        shutil.rmtree(self.weights / ASIDE, ignore_errors=True)  # of a process that was killed here
        make_folder(self.weights / ASIDE)
        by_sums, trained = self.settings.keep == STATISTICS, read_steps(self.journal, "train")
        still = [step for step in trained if self._taught(step).keys() - set(items)]
        last = still[-1] if still else None
        finished = last is not None and bool(read_steps(self.journal, "evaluate", task=last.task))
        handles: dict[str, Handle] = {}
        offs: list[float] = []
        sums: Sums | None = None
        for step in read_steps(self.journal, "memory"):
            handle = step.result["file"]
            if handle is None or not (self.weights / handle["file"]).exists():
                continue
            if not by_sums:
                handles[handle["file"]] = self._smaller_memory(handle, items)
                continue
            sums, each = self._taken_out(step, items)
            offs += each
            handles[handle["file"]] = save_sums(self.weights / ASIDE / handle["file"], sums)
        fitted = last is not None and by_sums and finished
        if last is not None and fitted:  # without a share in the sums the model is as it was
            refit = sums is not None and bool(offs)
            new = self._fitted(last.result, trained[-1].result, sums) if refit and sums else last.result
            handles[last.result["file"]] = new
        again = [last.task, last.round] if last is not None and not fitted else None
        tested = [last.task, last.round] if last is not None and fitted and offs else None
        nothing = [[step.task, step.round] for step in trained if step not in still]
        planned = {"items": items, "files": handles, "again": again, "tested": tested, "nothing": nothing}
        write_text(self.directory / PLAN, json.dumps(planned) + "\n")
        return Planned(max(offs, default=None), as_before=tested is not None)

    def finish(self, journal: Journal) -> None:
        """Do what `plan` has written down, from the beginning or the rest of it."""
        path, weights = self.directory / PLAN, self.weights
        if not path.exists():
            return
        with reading(path):
            planned = json.loads(path.read_text())
        journal.rewrite(lambda *record: without_items(planned, self.tasks, *record))
        for name in planned["files"]:
            if (weights / ASIDE / name).exists():
                os.replace(weights / ASIDE / name, weights / name)
        for weight in weights.glob("*.safetensors"):  # models that were fitted with the items
            if weight.name not in planned["files"] and not weight.name.endswith("-memory.safetensors"):
                weight.unlink()
        sync_folder(weights)
        drop(self.tasks, set(planned["items"]))
        self.store.forget(planned["items"])
        for task in self.tasks.all():
            rows = [item - task.first for item in planned["items"] if item in task.ids]
            if rows:
                forget_items(self.tasks, task, rows)
        path.unlink()
        shutil.rmtree(weights / ASIDE, ignore_errors=True)

    def proof(self, items: list[Item], planned: Planned) -> Forgot:
        """What can be said when all is done."""
        by_sums, model = self.settings.keep == STATISTICS, bool(read_steps(self.journal, "train"))
        off = planned.off
        if model and not by_sums:
            off = learned.difference(self.directory, self.settings, self.tasks)
        measured = any(item.task == 0 for item in items) and (self.tasks.folder_of(0) / "inputs.json").exists()
        return Forgot(items, self.settings.kind, by_sums, model, off, planned.as_before, measured)

    def _taught(self, training: Step) -> dict[int, int]:
        """What a training has learned of its own task."""
        answers = read_steps(self.journal, "label", task=training.task)
        return taught_by(step for step in answers if (step.round or 0) <= (training.round or 0))

    def _smaller_memory(self, handle: Handle, items: list[int]) -> Handle:
        arrays = load_arrays(self.weights, handle)
        kept = ~np.isin(arrays["ids"], items)
        path = self.weights / ASIDE / handle["file"]
        return dict(save_arrays(path, {name: array[kept] for name, array in arrays.items()}))

    def _taken_out(self, memory: Step, items: list[int]) -> tuple[Sums, list[float]]:
        """The sums after a task without the items; for each that was in them how they differ when it is put back."""
        sums, offs = load_sums(self.weights, memory.result["file"]), list[float]()
        became = merges(self.store.classes())
        inside: dict[int, int] = {}
        for step in read_steps(self.journal, "memory"):
            if step.task is not None and memory.task is not None and step.task <= memory.task:
                inside |= dict(step.result["summed"])
        for item in items:
            if item not in inside:
                continue
            label = next((id for id in became[inside[item]] if id in sums), inside[item])  # merged, or as it was
            task = self.tasks.find(item)
            if item - task.first in erased_rows(self.tasks, task):
                row = learned.row_again(self.settings, self.tasks, item, self.column)
            else:
                row = learned.rows(self.settings, self.tasks, [item])[0]
            x, before = torch.from_numpy(row), sums
            sums = without(sums, x, label)
            back = together(sums, sums_of(x[None], torch.tensor([label])))[label]
            scatters = [value.scatter.T @ value.scatter for value in (back, before[label])]
            differences = (back.mean - before[label].mean, scatters[0] - scatters[1])
            offs.append(max(float(values.abs().max()) for values in differences))
        return sums, offs

    def _fitted(self, handle: Handle, newest: Handle, sums: Sums) -> Handle:
        """The model of these sums alone in place of the newest: its handle.

        It is regularised and as sharp as that of a handle was: what chose both, the left-out examples, is gone.
        """
        state, facts = load_tensors(self.weights, newest), handle["facts"]
        rows, labels = examples_of(sums)
        head = fit_like(rows, labels, len(state["head.weight"]), facts["ridge"], facts["sharpness"])
        state |= {"head.weight": head.weight.float(), "head.bias": head.bias.float()}
        saved = save_tensors(self.weights / ASIDE / handle["file"], state)
        facts = facts | {"ridge": head.ridge, "before_forgetting": True}
        return handle | saved | {"seen": sorted(sums), "facts": facts}


PLAN = "forgetting.json"  # what has to be forgotten still, in the project's directory


def without_items(
    planned: dict[str, Any], tasks: Tasks, task: int | None, round: int | None, kind: str, result: Any
) -> Any:
    """What a record says without the items; None: the step has to be done again.

    planned: the `items`, new handles of `files` by their names, the last training, if it is to be done `again` or what
    replaces its model to be `tested`, and the trainings that are left with `nothing` to learn.
    """
    gone, files, again = set(planned["items"]), planned["files"], planned["again"]
    if _since(again, task, round) and kind in ("train", "test", "memory", "evaluate"):
        return None
    if _since(planned.get("tested"), task, round) and kind in ("test", "evaluate"):
        return None
    if [task, round] in planned.get("nothing", []) and kind in ("train", "test"):
        return None
    if kind == "data" and task is not None:
        rows = {item - tasks.all()[task].first for item in gone if item in tasks.all()[task].ids}
        return result | {"bad": sorted(rows | set(result["bad"]))}
    if kind == "query":
        some = _aligned(result, gone, ("ids", "guess", "confidence"))
        scores = _aligned(result["scores"] | {"ids": result["ids"]}, gone, tuple(result["scores"]))
        return _filtered(result | some | {"scores": scores}, gone, "held")
    if kind == "label":
        return _filtered(result, gone, "labels", "skipped", "held", "corrected", "late", "given")
    if kind in ("test", "evaluate"):
        return _filtered(result, gone, "predictions")
    if kind == "memory":
        some = _aligned(result, gone, tuple(name for name in result if name not in ("summed", "file")))
        handle = files.get(result["file"]["file"], result["file"]) if result["file"] else None
        return _filtered(result | some | {"file": handle}, gone, "summed")
    return files.get(result["file"], result) if kind == "train" else result


def _since(training: list[int] | None, task: int | None, round: int | None) -> bool:
    """Whether a step belongs to a training, to the end of its task, or to a later task."""
    if training is None or task is None:
        return False
    return task > training[0] or (task == training[0] and round in (training[1], None))


def _aligned(result: dict[str, Any], gone: set[int], names: tuple[str, ...]) -> dict[str, list[Any]]:
    """Lists with an entry for each of the `ids`, without those of items that are gone; empty lists stay empty."""
    kept = [row for row, item in enumerate(result["ids"]) if item not in gone]
    return {name: [result[name][row] for row in kept] if result[name] else [] for name in names}


def _filtered(result: dict[str, Any], gone: set[int], *names: str) -> dict[str, Any]:
    """Lists of items, or of rows that begin with an item, without those that are gone."""

    def left(values: list[Any]) -> list[Any]:
        return [value for value in values if (value[0] if isinstance(value, list) else value) not in gone]

    return result | {name: left(result[name]) for name in names if name in result}


STAY = {  # by kind: what the first task's items were measured for, all at once
    "texts": "how common words are (words.json) and how long vectors are (scale.safetensors)",
    "tables": "means, deviations and quantiles of columns (table.json) and how long rows are (scale.safetensors)",
}
SCALES = "means and deviations of the columns (scale.safetensors)"


@dataclass(frozen=True)
class Forgot:
    """items: as they were. model: whether there is one.

    difference: with examples, by how much the model's weights differ from a fit without the items, relative to the
    largest; with sums, by how much these differ when the items are taken out and put back; None if they had no share.
    as_before: the model is fitted to sums alone, regularised and as sharp as before, since the examples to choose by
    are gone. measured: items of the first task were there when its data were measured.
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
        """The proof, and what it does not cover."""
        said = [f"proof: {self._proof()}"]
        if self.as_before:
            said.append(
                "not as if they had never been there: how strongly the model is regularised, one step of a scale, and "
                "how sharp its probabilities are, one number, were chosen with them; the examples to choose by are "
                "erased"
            )
        if self.measured:
            what = STAY.get(self.kind, SCALES)
            if self.kind == "tables" and self.by_sums:
                what = f"names of categories, if the first task has ended, {what}"
            said.append(f"stays: {what}, measured on the whole first task; measured again, all vectors would change")
        return said

    def _proof(self) -> str:
        if self.by_sums and self.difference is not None:
            return f"taken out of the sums and put back, they give the old sums up to {self.difference:.0e}"
        if not self.model:
            return "nothing has been learned yet, so there is no model that could know them"
        if self.difference is None:
            return "they were in no sums; the model is fitted to the sums and examples that are left"
        return f"the model differs from one fitted without them from scratch by {self.difference:.0e}"

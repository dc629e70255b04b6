"""The records of a project's journal without the items that it has to forget."""

from __future__ import annotations

from typing import Any

from accuacl.labeling.project.items.tasks import Tasks

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

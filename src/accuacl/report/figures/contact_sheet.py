"""Contact sheets: some of the images that a run picked, in the order of selection."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.experiment import Config, read_config, read_steps, settings_before
from accuacl.report.formats.document import Picture

ROUNDS, EACH = 3, 12  # rounds that a sheet shows, and picks of a round
SIDE, GAP = 32, 2  # pixels

Picks = dict[int, dict[int, list[int]]]  # by task and round, in the order of selection


def contact_sheets(run: Path, data_dir: Path | None) -> tuple[list[Picture], str]:
    """A picture for each task, or a sentence that says why there is none."""
    from accuacl.experiment import open_stream  # loads torch

    try:
        config = read_config(run / "config.json", Config.model_fields, settings_before(Config))
        picks, recorded = _journal(run / "journal.sqlite")
        # The settings are not validated: the strategy may come from a plugin that is not loaded here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about the data: the run has said it
            stream = open_stream(Config.model_construct(**config), data_dir, False)
        data = stream.dataset
        if list(data.train.inputs.shape) != recorded["train"]["shape"]:
            raise InputError("the data found here are not those of the run; give its --data-dir.")
        first = _image(data.train.inputs[0], config["benchmark"])
    except InputError as error:
        return [], str(error)
    if first is None:
        return [], "the examples are vectors, not images."
    pictures = []
    for task, rounds in picks.items():
        chosen = sorted({int(r) for r in np.linspace(0, len(rounds) - 1, min(ROUNDS, len(rounds)))})
        shown = {r: list(rounds.values())[r][:EACH] for r in chosen}
        names = [data.classes[c] for c in stream[task].classes]
        rows = [[_image(data.train.inputs[i], config["benchmark"]) for i in ids] for ids in shown.values()]
        alt = "; ".join(
            f"round {r + 1}: {', '.join(data.classes[data.train.labels[i]] for i in ids)}" for r, ids in shown.items()
        )
        numbers = ", ".join(str(r + 1) for r in shown)
        few = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        title = f"Task {task + 1} ({few}): the first picks of round {numbers}, a row each"
        pictures.append(Picture(title, _png(rows), f"Picked images of task {task + 1}. {alt}."))
    return pictures, ""


def _journal(path: Path) -> tuple[Picks, dict[str, Any]]:
    """The picks of every round, and what the journal says of the data."""
    steps = read_steps(path, "data", "query")
    picks: Picks = {}
    for step in steps:
        if step.task is not None and step.round is not None:
            picks.setdefault(step.task, {})[step.round] = step.result["ids"][:EACH]
    recorded = [step.result for step in steps if step.kind == "data"]
    if not recorded:
        raise InputError(f"{path} has no record of the run's data.")
    return picks, recorded[0]


def _image(example: NDArray[Any], benchmark: str) -> NDArray[np.uint8] | None:
    """The example as SIDE x SIDE x 3 bytes; None if it is not an image."""
    from PIL import Image

    if benchmark == "split-digits":  # 8 x 8 numbers from 0 to 1: white to black
        example = np.repeat(np.uint8(255 * (1 - np.asarray(example).reshape(8, 8, 1))), 3, axis=2)
    if example.ndim != 3:
        return None
    small = np.array(example, np.uint8)
    if small.shape[:2] != (SIDE, SIDE):
        kind = Image.Resampling.NEAREST if small.shape[0] < SIDE else Image.Resampling.LANCZOS
        small = np.asarray(Image.fromarray(small).resize((SIDE, SIDE), kind))
    return small


def _png(rows: list[list[NDArray[np.uint8] | None]]) -> bytes:
    """The images side by side on a transparent ground, a row for each round."""
    from PIL import Image

    step = SIDE + GAP
    sheet = np.zeros((len(rows) * step - GAP, max(len(row) for row in rows) * step - GAP, 4), np.uint8)
    for y, row in enumerate(rows):
        for x, image in enumerate(row):
            if image is not None:
                sheet[y * step : y * step + SIDE, x * step : x * step + SIDE] = np.dstack(
                    [image, np.full((SIDE, SIDE), 255)]
                )
    data = io.BytesIO()
    Image.fromarray(sheet, "RGBA").save(data, "PNG", optimize=True)
    return data.getvalue()

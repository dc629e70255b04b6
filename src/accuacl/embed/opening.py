"""Open the data and the model that `embed` needs, so that they fit each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from accuacl.base.errors import InputError
from accuacl.embed.checkpoint import Checkpoint, of_module, of_run
from accuacl.embed.inputs import Inputs, open_inputs
from accuacl.embed.reading import ReadOptions


def open_for_run(
    directory: Path, data: str, options: ReadOptions, trust_code: bool = False
) -> tuple[Inputs, Checkpoint]:
    """For the model of a finished run; images are brought to the run's size unless the options say otherwise."""
    checkpoint = of_run(directory, trust_code)
    options = replace(options, image_size=options.image_size or checkpoint.size)
    return open_inputs(data, options), checkpoint


def open_for_module(function: str, weights: Path | None, data: str, options: ReadOptions) -> tuple[Inputs, Checkpoint]:
    """For a user's own model, `file.py:function`, which is tried on the first inputs that can be read."""
    inputs = open_inputs(data, options)
    batches = (inputs.read(start, start + 2)[1] for start in range(0, len(inputs), 2))
    example = next((batch for batch in batches if len(batch)), None)
    if example is None:
        raise InputError(f"none of the images in {data} can be read; give some that can.")
    return inputs, of_module(function, weights, torch.from_numpy(example))

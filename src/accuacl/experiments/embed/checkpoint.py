"""A trained model to embed with: that of a finished run, or a user's own module."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError, one_line
from accuacl.base.files import reason
from accuacl.base.userfile import is_own, load_function
from accuacl.experiments import Config, learners, models, own_model, read_config, read_result, read_steps
from accuacl.experiments.data import dataset_of
from accuacl.experiments.embed.inputs import Inputs, open_inputs
from accuacl.experiments.embed.reading import ReadOptions, check_finished
from accuacl.experiments.networks import AUTO, FrozenNetwork


@dataclass(frozen=True)
class Checkpoint:
    """A model, the transform from raw inputs to the model's (`plain`), and the classes whose softmax is taken.

    network, rest: the same model in two parts, of which a runtime runs the first; None: the model does all.
    runtime: the one that it must be; auto: the fastest. columns: of tables, those that its vectors are made of, if that
    is known.
    """

    model: models.Classifier
    transform: Any
    seen: list[int]
    size: int  # side of its images; 0: vectors, or any
    fingerprint: str
    network: FrozenNetwork | None = None
    rest: models.Classifier | None = None
    runtime: str = AUTO
    columns: tuple[str, ...] = ()

    def parts(self) -> tuple[FrozenNetwork, models.Classifier]:
        """What a runtime runs, and what comes after it."""
        if self.network and self.rest:
            return self.network, self.rest
        return FrozenNetwork(self.model.embed, self.transform.plain), models.Classifier(nn.Identity(), self.model.head)


@dataclass(frozen=True)
class Prepared:
    """Applies the user's function to raw inputs; without one, scales pixels to [0, 1], channels first."""

    prepare: Callable[[Tensor], Tensor] | None = None

    def plain(self, x: Tensor) -> Tensor:
        if self.prepare:
            return self.prepare(x)
        return x.permute(0, 3, 1, 2).float().div_(255) if x.dtype == torch.uint8 else x.float()


def of_run(directory: Path, trust_code: bool = False) -> Checkpoint:
    """The model at the end of a run, over the classes that got labels. trust_code: if it is a Python file, run it."""
    check_finished(directory)
    result = read_result(directory)
    settings = read_config(directory / "config.json", Config)
    config = Config.model_construct(**settings)  # not checked again: a strategy of a plugin is unknown here
    if is_own(config.model):
        if not trust_code:
            raise InputError(
                f"the network of this run is a Python file, {config.model.rpartition(':')[0]}; read it, and then give "
                "--trust-code."
            )
        own_model(config.model, config.model_digest)
    if config.model == models.PRETRAINED:
        raise InputError(
            f"{directory} was trained on a pretrained network's outputs, scaled as its first task required; embed "
            "cannot reproduce that. Label your images in a project (`accuacl project new`), and embed with that."
        )
    data, labels = _recorded(directory / "journal.sqlite")
    file = directory / "weights" / str(result["weights"])
    weights, digest = _weights(file)
    shape = tuple(data["train"]["shape"][1:])
    model = models.build(
        config.model,
        len(weights["head.weight"]),
        seed=config.seed,
        input_shape=(shape[2], *shape[:2]) if len(shape) == 3 else shape,
        width=config.width or None,
    )
    _load(model, weights, file)
    transform = learners.transform_of(dataset_of(config.benchmark), np.empty((0, *shape)))
    order = [int(c) for c in result["stream"]["order"]]  # the data set's class of each of the model's
    seen = sorted(order.index(label) for label in labels)
    size, columns = shape[0] if len(shape) == 3 else 0, tuple(data.get("columns", ()))
    return Checkpoint(model, transform, seen, size, f"{digest} {seen}", columns=columns)


def of_module(place: str, weights: Path | None, example: Tensor) -> Checkpoint:
    """`file.py:function` that returns a module, or a module and a function that prepares a batch of raw inputs."""
    made = load_function(place, fresh=True)()
    module, prepare = made if isinstance(made, tuple) else (made, None)
    if not isinstance(module, nn.Module):
        raise InputError(f"{place} returned {type(module).__name__}; return a torch module.")
    digest = hashlib.sha256(Path(place.rpartition(":")[0]).read_bytes()).hexdigest()
    if weights:
        tensors, of_weights = _weights(weights)
        _load(module, tensors, weights)
        digest += of_weights
    transform = Prepared(prepare)
    try:
        model = models.wrap(module.eval(), example=transform.plain(example))
    except RuntimeError as error:  # what torch raises if the shapes do not fit
        raise InputError(misfit(error, tuple(example.shape[1:]))) from None
    return Checkpoint(model, transform, list(range(model.head.out_features)), 0, digest)


def misfit(error: Exception, shape: tuple[int, ...]) -> str:
    """The sentence about a model that raised `error` for inputs of this shape.

    >>> misfit(RuntimeError("mat1 and mat2 shapes cannot be multiplied (30x64 and 2x128)"), (64,))
    'the data are vectors of 64 numbers and the model wants 2; give data like those that it learned, or another model.'
    """
    why = one_line(error)
    shapes = re.search(r"\(\d+x(\d+) and (\d+)x\d+\)", why)  # of the batch and of the first layer, as torch says them
    if shapes and shape == (int(shapes[1]),):
        return (
            f"the data are vectors of {shape[0]} numbers and the model wants {shapes[2]}; give data like those that it "
            "learned, or another model."
        )
    return f"the model does not take inputs of shape {shape}: {why}" + ("" if why.endswith(".") else "; give others.")


def _weights(file: Path) -> tuple[dict[str, Tensor], str]:
    try:
        data = file.read_bytes()
        return safetensors.torch.load(data), hashlib.sha256(data).hexdigest()
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(
            f"{file} cannot be read as safetensors: {reason(error)}; give a file of weights in that format."
        ) from None


def _load(module: nn.Module, weights: dict[str, Tensor], file: Path) -> None:
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        why = one_line(error).rstrip(".")
        raise InputError(f"the weights in {file} do not fit the model: {why}; give its own.") from None


def _recorded(journal: Path) -> tuple[dict[str, Any], list[int]]:
    """The recorded shape and classes of the run's data, and which of its classes got labels."""
    steps = read_steps(journal, "data", "label")
    data = [step.result for step in steps if step.kind == "data"]
    if not data:
        raise InputError(f"{journal} has no record of the run's data; give the directory of a finished run.")
    return data[0], sorted({int(label) for step in steps if step.kind == "label" for _, label in step.result["labels"]})


def open_for_run(
    directory: Path, data: str, options: ReadOptions, trust_code: bool = False
) -> tuple[Inputs, Checkpoint]:
    """Open data for the model of a finished run; images get the run's size unless the options say otherwise."""
    checkpoint = of_run(directory, trust_code)
    options = replace(options, image_size=options.image_size or checkpoint.size)
    return open_inputs(data, options, checkpoint.columns), checkpoint


def open_for_module(function: str, weights: Path | None, data: str, options: ReadOptions) -> tuple[Inputs, Checkpoint]:
    """Open data for a user's own model, `file.py:function`, which is tried on the first readable inputs."""
    inputs = open_inputs(data, options)
    batches = (inputs.read(start, start + 2)[1] for start in range(0, len(inputs), 2))
    example = next((batch for batch in batches if len(batch)), None)
    if example is None:
        raise InputError(f"none of the images in {data} can be read; give some that can.")
    return inputs, of_module(function, weights, torch.from_numpy(example))

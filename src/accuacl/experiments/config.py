"""The settings of a run: one model, from which the command line, YAML files, directory names and reports derive.

config = make({"strategy": "coverage", "memory_policy": "coverage"})
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from accuacl.base.errors import InputError, near, no_such, wrong_setting
from accuacl.base.files import reading
from accuacl.base.userfile import check_function
from accuacl.experiments import data, learners, models
from accuacl.experiments.data import ARRIVALS, BENCHMARKS
from accuacl.experiments.setting import (
    OPTIONS,
    canonical_options,
    check_run_options,
    check_stream,
    is_class_incremental,
    option_field,
    with_options,
)
from accuacl.strategies import BUILT_IN as BUILT_IN_STRATEGIES, REGISTRY as STRATEGIES, options_of, usual_sample

MOST = 10**12  # of whole numbers that no other limit holds for; no data set has as many examples
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
        """Files name `options` and `plugins` only where there are some."""
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
        "in the paper; no other is better on all data, docs/strategies.md says which is better where.",
    )
    scale: Scale = Field(
        "smoke", description="Defaults of the other settings: smoke (seconds), cpu (minutes), paper (exact)."
    )
    memory: int = Field(
        100, ge=0, description="Size of the replay memory (er with 0: plain fine-tuning; ridge keeps all)."
    )
    seed: int = Field(0, ge=0, description="Seed of all randomness.")
    tasks: int = Field(0, ge=0, description="Stop after this many tasks; 0: all.")
    classes_per_task: int = Field(0, ge=0, description="Classes that arrive with each task; 0: the benchmark's.")
    order: str = Field(
        "fixed", description="Arrival: fixed (0..K-1), tasks or classes (permuted by --order-seed), or ids: 3,1,2."
    )
    order_seed: int = Field(0, ge=0, description="Which permutation, for --order tasks and classes.")
    arrival: str = Field(
        "classes",
        description="Tasks: classes, a few new ones at a time; given, as your own data name them; or a --plugin's.",
    )
    domains: int = Field(
        0, ge=0, description="Number of tasks that have all classes, each with another corruption of images; 0: none."
    )
    recurring: int = Field(0, ge=0, description="How often everything comes back, in tasks that are mixed anew.")
    blur: float = Field(0.0, ge=0, lt=1, description="The share of each class that arrives in other tasks.")
    imbalance: float = Field(
        1.0, gt=0, le=1, description="Long tail: the rarest class has this share of the commonest; 1: unchanged."
    )
    label_noise: float = Field(0.0, description="The share of answers that are wrong.")
    noise: Literal["uniform", "alike"] = Field(
        "uniform", description="Wrong answers: uniform (any class so far), or alike (the one with the nearest mean)."
    )
    stream_seed: int | None = Field(
        None, ge=0, description="Seed of corruptions, returns, blur, imbalance and label noise; unset: the seed."
    )
    labels: int = Field(100, ge=1, description="Labels per task.")
    rounds: int = Field(2, ge=1, description="Rounds in which they are asked for; --first-round says how the first is.")
    last_rounds: int = Field(0, ge=0, description="Rounds of the last task, each as large as before; 0: as many.")
    pool: int = Field(0, ge=0, description="Only this many examples of each task's pool, drawn by the seed; 0: all.")
    test: int = Field(0, ge=0, description="Only this many test examples of each task, drawn by the seed; 0: all.")
    epochs: int = Field(1, ge=1, description="Epochs of training in each round.")
    batch: int = Field(16, ge=1, description="Batch size.")
    lr: float = Field(0.01, gt=0, description="Learning rate, falling along a cosine to 0.001.")
    momentum: float = Field(0.8, ge=0, lt=1, description="SGD's momentum.")
    weight_decay: float = Field(1e-4, ge=0, description="SGD's weight decay.")
    model: str = Field("mlp", description=f"Network: {', '.join(models.NAMES)}, or your own: net.py:build.")
    width: int = Field(0, ge=0, description="Its width; 0: its own default.")
    learner_variant: Literal["paper", "original"] = Field(
        "paper", description="The learner as in the paper's experiments (paper), or as first published (original)."
    )
    replay: Literal["once", "cycled"] = Field(
        "once", description="ER: replay the memory once an epoch, as in the paper (once), or at every step (cycled)."
    )
    alpha: float = Field(
        0.1, ge=0, description="DER++: weight of the squared error to the stored logits; lwf: of distillation."
    )
    beta: float = Field(0.5, ge=0, description="DER++: weight of the cross entropy of replayed examples.")
    pool_learning: Literal["off", "self", "smooth"] = Field(
        "off", description="kernel: learn from its predictions for the pool (self), smooth rows by it (smooth), or off."
    )
    sampling: Literal["plain", "balanced", "repeated"] = Field(
        "plain",
        description="An epoch has every label once (plain), as many of each class (balanced), or what the first epoch "
        "had, with the same crops and flips, as the authors' data loader gives it (repeated).",
    )
    memory_policy: str = Field(
        "paper",
        description=f"What the memory keeps: {', '.join(learners.MEMORY_POLICIES)}; paper: as the paper's learner.",
    )
    first_round: Literal["uniform", "coverage"] = Field(
        "uniform",
        description="How each task's first round is chosen: at random (uniform), or, once there is a model, to cover "
        "the pool (coverage).",
    )
    sample: int = Field(
        0,
        ge=0,
        description="Coverage looks at so many examples of a larger pool, drawn by the seed; 0: at all, however long "
        "it takes. Unset: 5000, or 20 times the labels of a round if these are more.",
    )
    variant: Literal["released", "paper"] = option_field("variant")
    keep: int = option_field("keep")
    lam: float | None = option_field("lam")
    lam_from: int = Field(1, ge=1, description="The first task that --lam holds for.")
    oversample: float = option_field("oversample")
    share: float | None = option_field("share")
    uncertainty: Literal["weighed", "ignored"] = option_field("uncertainty")
    options: dict[str, bool | int | float | str | None] = Field(
        {}, description="Other options of the strategy by name, such as {sample: 5000}."
    )
    evaluate: Literal["task", "round"] = Field(
        "task", description="Test after every task (task), or after every round too (round)."
    )
    threads: int = Field(1, ge=1, description="Threads; results are bit for bit the same only for the same number.")
    device: str = Field("auto", description="Where it runs: cpu, cuda, cuda:1 or auto.")
    image_size: int = Field(0, ge=0, description="Side to bring your own images to; 0: they all have the same size.")
    label_column: str | None = Field(
        None, description="Your own table's column of classes, unless it is called label, class, target or y."
    )
    task_column: str | None = Field(
        None, description="Your own table's column that says in which task a row arrived, unless it is called task."
    )
    model_digest: str | None = Field(None, description="A hash of your own --model's file; computed automatically.")

    @pydantic.field_validator("label_noise")
    @classmethod
    def _share(cls, value: float) -> float:
        if not 0 <= value < 1:
            raise ValueError("give a share of at least 0 and below 1, such as 0.1")
        return value

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Config:
        if self.strategy not in (*STRATEGIES, "full"):
            raise no_such("strategy", self.strategy, (*STRATEGIES, "full"))
        check_run_options(self.strategy, self.options)
        if self.learner not in learners.REGISTRY:
            raise no_such("learner", self.learner, learners.REGISTRY)
        learners.check_policy(self.memory_policy, self.learner, self.learner_variant)
        if models.is_own(self.model) and self.width:
            raise InputError(f"{self.model} has the width that its function gives it; leave out --width.")
        if not models.is_own(self.model) and self.model not in models.NAMES:
            raise no_such("model", self.model, models.NAMES)
        if learners.REGISTRY[self.learner].exact and self.model not in models.FROZEN:
            raise InputError(
                f"{self.learner} learns on features that stay as they are, not with --model {self.model}; give --model "
                f"{models.PRETRAINED} for images, linear or projection for vectors, or another learner."
            )
        check_stream(self)
        if self.rounds > self.labels:
            raise InputError(f"{self.labels} labels cannot be asked for in {self.rounds} rounds; give fewer rounds.")
        return self


def make(given: dict[str, Any], data_dir: Path | None = None) -> Config:
    """A config from what was given; the rest are the benchmark's defaults at the scale.

    data_dir: where a folder with one's own data may be; what is in it decides on the network.
    """
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise InputError(f'the settings are {given!r}; give a dict of them, such as {{"learner": "er"}}.')
    given = with_options(given)
    for name, value in given.items():
        if isinstance(value, list) or (isinstance(value, dict) and name != OPTIONS):
            raise InputError(f"{name} is {value!r}, but a run has one value; `accuacl sweep` does several runs.")
    benchmark, scale = given.get("benchmark", "split-digits"), str(given.get("scale", "smoke"))
    defaults, vectors = DEFAULTS.get(str(benchmark), OWN).get(scale, {}), benchmark == "split-digits"
    if isinstance(benchmark, str) and benchmark not in data.BENCHMARKS:
        if benchmark in data.PUBLISHED:
            raise InputError(f"{benchmark} is a data set; the benchmark made of it is split-{benchmark}.")
        place = data.own_data(benchmark, data_dir, "benchmark", data.BENCHMARKS)
        vectors = data.holds_vectors(place)
        defaults = defaults | (OWN_VECTORS.get(scale, {}) if vectors else {})
        split = given.get("classes_per_task") or given.get("domains")
        if not split and (given.get("task_column") or data.holds_tasks(place)):
            defaults = defaults | {"arrival": "given"}
        elif not split and vectors and "arrival" not in given:
            column = str(given.get("label_column") or "")
            with warnings.catch_warnings(action="ignore"):  # what is wrong with the data comes first
                classes = len(data.load(str(benchmark), data_dir, label_column=column).classes)
            raise InputError(
                f"{benchmark} has {classes} classes; give --classes-per-task, how many of them arrive with each task, "
                "or a column or folders that name the tasks."
            )
        if isinstance(given.get("labels"), int):
            defaults = defaults | {"memory": given["labels"]}
    exact = getattr(learners.REGISTRY.get(str(given.get("learner"))), "exact", False)
    if vectors or exact:
        defaults = defaults | {"model": ("linear" if exact else "mlp") if vectors else models.PRETRAINED}
    if models.is_own(str(given.get("model", ""))):
        given = given | own_model(str(given["model"]), given.get("model_digest"))
    if str(given.get("learner")) in learners.REGISTRY:
        defaults = defaults | learners.REGISTRY[str(given["learner"])].settings
    try:
        config = Config(**(defaults | given))
        return config if "sample" in given else config.model_copy(update={"sample": usual_sample_of(config)})
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = "/".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            meant = near(field, Config.model_fields, 0.7)
            hint = f"did you mean {meant}?" if meant else "`accuacl run --print-config` shows all."
            raise InputError(f"there is no setting {field}; {hint}") from None
        raise wrong_setting(error) from None


def canonical(config: dict[str, Any]) -> dict[str, Any]:
    """The config with what its strategy and learner do not use put back to its default.

    >>> canonical(Config(strategy="uniform", lam=0.5).model_dump())["lam"] is None
    True
    """
    config, unused = canonical_options(config)
    if config["strategy"] == "full":
        unused.add("first_round")
    if not looks_at_sample(config):
        unused.add("sample")
    if config.get("lam") is None or "lam" in unused:
        unused.add("lam_from")
    learner = learners.REGISTRY.get(str(config["learner"]))  # None: a plugin's that is not loaded
    unused |= set(learners.SETTINGS) - set(learner.settings) if learner else set()
    if config["order"] not in ("tasks", "classes"):
        unused.add("order_seed")
    if not config["label_noise"]:
        unused.add("noise")
    if is_class_incremental(config | {"arrival": "classes"}) and config["arrival"] in ARRIVALS:
        unused.add("stream_seed")
    fixed = learner.fixed if learner else {}
    return config | {name: Config.model_fields[name].default for name in unused} | fixed


def usual_sample_of(config: Config) -> int:
    """How many examples of a larger pool coverage looks at, if nothing else is said; 0: at all.

    The digits are few; a sample that is given as an option of the strategy is drawn by the strategy.
    """
    if not looks_at_sample(config.model_dump()) or "sample" in config.options or config.benchmark == "split-digits":
        return 0
    return usual_sample(-(-config.labels // config.rounds))


def looks_at_sample(config: Mapping[str, Any]) -> bool:
    """Whether a strategy of the run can choose from a sample of the pool; one that is not loaded may."""
    strategy = str(config["strategy"])
    if strategy == "full":
        return False
    return config["first_round"] == "coverage" or strategy not in STRATEGIES or "sample" in options_of(strategy)


def own_model(place: str, digest: str | None) -> dict[str, str]:
    """`model` with an absolute path, and `model_digest`, which must be `digest` if that is given."""
    file, name = check_function(place)
    path = Path(file).resolve()
    with reading(path):
        now = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest is not None and digest != now:
        raise InputError(f"{path} has changed since it was recorded; restore it, or start over with --fresh.")
    return {"model": f"{path}:{name}", "model_digest": now}


def decided_by_scale(benchmark: str) -> list[str]:
    """The settings that --scale gives defaults for."""
    scales = DEFAULTS.get(benchmark, OWN).values()
    return [name for name in Config.model_fields if any(name in scale for scale in scales)]


SMOKE: dict[str, Any] = {"labels": 24, "rounds": 2, "epochs": 1, "batch": 8, "pool": 200, "tasks": 3, "model": "conv3"}
SMOKE["test"] = 200
CPU: dict[str, Any] = {"rounds": 5, "epochs": 8, "batch": 32, "lr": 0.03, "momentum": 0.8, "model": "conv4"}
PAPER: dict[str, Any] = {
    "rounds": 10,
    "batch": 16,
    "lr": 0.01,
    "momentum": 0.8,
    "weight_decay": 1e-4,
    "model": "resnet18",
    "sampling": "repeated",  # not in the text, but in the authors' loader; without it far more is forgotten
}
DEFAULTS: dict[str, dict[str, dict[str, Any]]] = {
    "split-digits": {
        "smoke": {"memory": 20, "labels": 20, "rounds": 2, "epochs": 5, "batch": 8, "lr": 0.05},
        "cpu": {"memory": 50, "labels": 50, "rounds": 5, "epochs": 30, "batch": 8, "lr": 0.05},
        "paper": {"memory": 50, "labels": 50, "rounds": 10, "epochs": 50, "batch": 8, "lr": 0.05},
    },
    "split-cifar10": {
        "smoke": SMOKE | {"memory": 20},
        "cpu": CPU | {"memory": 100, "labels": 1000},
        "paper": PAPER | {"memory": 100, "labels": 1000, "epochs": 50},
    },
    "split-cifar100": {
        "smoke": SMOKE | {"memory": 60},
        "cpu": CPU | {"memory": 500, "labels": 1000},
        "paper": PAPER | {"memory": 500, "labels": 2000, "epochs": 20},
    },
    "split-tiny-imagenet": {
        "smoke": SMOKE | {"memory": 80},
        "cpu": CPU | {"memory": 2000, "labels": 800, "rounds": 4, "model": "conv4-stride2"},
        "paper": PAPER
        | {"memory": 2000, "labels": 3000, "epochs": 30, "batch": 32, "momentum": 0.9, "weight_decay": 0.0}
        | {"model": "resnet18-3x3-pool"},
    },
}
OWN_VECTORS = {  # vectors of one's own are trained on as the digits are
    scale: {name: defaults[name] for name in ("epochs", "batch", "lr")}
    for scale, defaults in DEFAULTS["split-digits"].items()
}
OWN: dict[str, dict[str, Any]] = {  # one's own data; the memory is as large as the labels of a task
    "smoke": SMOKE | {"memory": SMOKE["labels"]},
    "cpu": CPU | {"labels": 100, "memory": 100},
    "paper": PAPER | {"labels": 100, "memory": 100, "epochs": 50, "sampling": "plain"},
}

"""What every model of settings refuses: numbers that nothing here can take, and words where a number belongs."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from accuacl.base.errors import InputError, near, no_such, wrong_setting
from accuacl.base.files import reading
from accuacl.base.userfile import check_function
from accuacl.experiments import data, learners, models
from accuacl.experiments.data import ARRIVALS, BENCHMARKS
from accuacl.experiments.stream_settings import DEFAULTS, OWN, OWN_VECTORS, check_stream, is_tidy
from accuacl.strategies import NAMES, REGISTRY as STRATEGIES, defaults_of, options_of

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


class Settings(pydantic.BaseModel):
    """Settings that are fixed when work begins."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        """Refuse true and false as numbers, which pydantic would take for 1 and 0."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise ValueError("true and false are no values of this setting; give a number or a word")
        return value

    @pydantic.field_validator("*")
    @classmethod
    def _no_giant(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        most = LIMITS.get(str(info.field_name), MOST)
        if isinstance(value, int) and value > most:
            raise ValueError(f"give at most {most}")
        return value


DEVICE = r"^(auto|cpu|cuda(:\d+)?)$"

BUILT_IN = {  # by setting, the values that need no --plugin
    "strategy": (*NAMES, "full"),
    "learner": learners.NAMES,
    "memory_policy": learners.MEMORY_POLICIES,
    "arrival": ARRIVALS,
}

Scale = Literal["smoke", "cpu", "paper"]


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
        description=f"What gets labelled: {', '.join(STRATEGIES)}, or full (all). Unset: accuacl, as in the paper; "
        "coverage with --memory-policy coverage was more accurate.",
    )
    scale: Scale = Field("smoke", description="Defaults for all below: smoke (seconds), cpu (minutes), paper (exact).")
    memory: int = Field(
        100, ge=0, description="Size of the replay memory (er with 0: plain fine-tuning; ridge keeps all)."
    )
    seed: int = Field(0, ge=0, description="What all randomness is derived from.")
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
    domains: int = Field(0, ge=0, description="So many tasks, each with all classes in another look; 0: no looks.")
    recurring: int = Field(0, ge=0, description="How often everything comes back, in tasks put together anew.")
    blur: float = Field(0.0, ge=0, lt=1, description="The share of each class that arrives in other tasks.")
    imbalance: float = Field(
        1.0, gt=0, le=1, description="Long tail: the rarest class has this share of the commonest; 1: as the data are."
    )
    label_noise: float = Field(0.0, description="The share of answers that are wrong.")
    noise: Literal["uniform", "alike"] = Field(
        "uniform", description="Wrong answers: uniform (any class so far), or alike (the one with the nearest mean)."
    )
    stream_seed: int | None = Field(
        None, ge=0, description="What looks, returns, blur, imbalance and noise are drawn by; unset: the seed."
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
        "once", description="ER: replay the memory once an epoch, as the paper's did (once), or at every step (cycled)."
    )
    alpha: float = Field(0.1, ge=0, description="DER++: weight of the squared error to the stored logits.")
    beta: float = Field(0.5, ge=0, description="DER++: weight of the cross entropy of replayed examples.")
    sampling: Literal["plain", "balanced"] = Field(
        "plain", description="An epoch has every label once (plain), or as many of each class (balanced)."
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
    variant: Literal["released", "paper"] = Field(
        "released", description="AccuACL as in the authors' code (released) or in their text (paper)."
    )
    keep: int = Field(0, ge=0, description="AccuACL: entries compared per class; 0: by the variant.")
    lam: float | None = Field(
        None, ge=0, le=1, description="AccuACL: weight of the past; unset: its share of all data."
    )
    lam_from: int = Field(1, ge=1, description="The first task that --lam holds for.")
    oversample: float = Field(2.0, ge=1, description="AccuACL, BAIT: candidates per pick.")
    share: float | None = Field(
        None, ge=0, le=1, description="accuacl+uniform, accuacl+coverage: the fraction that accuacl picks; unset: 0.5."
    )
    uncertainty: Literal["weighed", "ignored"] = Field(
        "weighed", description="fisher-ratio: weighed (examples of which the model is unsure count more) or ignored."
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

    model_digest: str | None = Field(None, description="A hash of the file of your own --model; made by itself.")

    @pydantic.field_validator("label_noise")
    @classmethod
    def _share(cls, value: float) -> float:
        if not 0 <= value < 1:
            raise ValueError("give a share of at least 0 and below 1, such as 0.1")
        return value

    @pydantic.field_validator("device")
    @classmethod
    def _device(cls, value: str) -> str:
        if not re.fullmatch(DEVICE, value):
            raise ValueError("give cpu, cuda, cuda:1 or auto")
        return value

    @pydantic.model_validator(mode="after")
    def _known(self) -> Config:
        if self.strategy not in (*STRATEGIES, "full"):
            raise no_such("strategy", self.strategy, (*STRATEGIES, "full"))
        if self.learner not in learners.REGISTRY:
            raise no_such("learner", self.learner, learners.REGISTRY)
        learners.check_policy(self.memory_policy, self.learner, self.learner_variant)
        if models.is_own(self.model) and self.width:
            raise InputError(f"{self.model} has the width that its function gives it; leave out --width.")
        if not models.is_own(self.model) and self.model not in models.NAMES:
            raise no_such("model", self.model, models.NAMES)
        if self.learner == "ridge" and self.model not in ("linear", "projection"):
            raise InputError(
                f"ridge learns on features that stay as they are, not with --model {self.model}; give --model linear "
                "or projection and data that are vectors, such as embeddings of images, or another learner."
            )
        check_stream(self)
        if self.rounds > self.labels:
            raise InputError(f"{self.labels} labels cannot be asked for in {self.rounds} rounds; give fewer rounds.")
        return self


def make(given: dict[str, Any], data_dir: Path | None = None) -> Config:
    """A config from what was given; the rest are the benchmark's defaults at the scale.

    data_dir: where a folder with one's own data may lie; what is in it decides on the network.
    """
    if not isinstance(given, dict):
        raise InputError(f'the settings are {given!r}; give a dict of them, such as {{"learner": "er"}}.')
    for name, value in given.items():
        if isinstance(value, list | dict):
            raise InputError(f"{name} is {value!r}, but a run has one value; `accuacl sweep` does several runs.")
    benchmark, scale = given.get("benchmark", "split-digits"), str(given.get("scale", "smoke"))
    defaults, vectors = DEFAULTS.get(str(benchmark), OWN).get(scale, {}), benchmark == "split-digits"
    if isinstance(benchmark, str) and benchmark not in data.BENCHMARKS:
        if benchmark in data.PUBLISHED:
            raise InputError(f"{benchmark} is a data set; the benchmark made of it is split-{benchmark}.")
        place = data.own_data(benchmark, data_dir, "benchmark", data.BENCHMARKS)
        vectors = data.holds_vectors(place)
        defaults = defaults | (OWN_VECTORS.get(scale, {}) if vectors else {})
        if (
            not given.get("classes_per_task")
            and not given.get("domains")
            and (given.get("task_column") or data.holds_tasks(place))
        ):
            defaults = defaults | {"arrival": "given"}
        if isinstance(given.get("labels"), int):
            defaults = defaults | {"memory": given["labels"]}
    if vectors:
        defaults = defaults | {"model": "linear" if given.get("learner") == "ridge" else "mlp"}
    if models.is_own(str(given.get("model", ""))):
        given = given | own_model(str(given["model"]), given.get("model_digest"))
    try:
        return Config(**(defaults | given))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = "/".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            meant = near(field, Config.model_fields, 0.7)
            hint = f"did you mean {meant}?" if meant else "`accuacl run --print-config` shows all."
            raise InputError(f"there is no setting {field}; {hint}") from None
        raise wrong_setting(error) from None


def decided_by_scale(benchmark: str) -> list[str]:
    """The settings that --scale gives defaults for."""
    scales = DEFAULTS.get(benchmark, OWN).values()
    return [name for name in Config.model_fields if any(name in scale for scale in scales)]


OPTIONS = ("variant", "keep", "lam", "oversample", "share", "uncertainty")  # settings that are options of strategies


def options_for(strategy: str) -> set[str]:
    """The settings that are handed to a strategy: those that its signature has.

    >>> sorted(options_for("bait")), sorted(options_for("accuacl-magnitude"))
    (['oversample'], ['keep', 'lam', 'variant'])
    """
    options = set() if strategy == "full" else set(OPTIONS).intersection(options_of(strategy))
    return options - {"lam"} if strategy == "bait" else options  # whose lam is a regularisation


def canonical(config: dict[str, Any]) -> dict[str, Any]:
    """The config with what its strategy and learner do not look at put back to its default.

    >>> canonical(Config(strategy="uniform", lam=0.5).model_dump())["lam"] is None
    True
    """
    strategy = str(config["strategy"])
    known = strategy == "full" or strategy in STRATEGIES  # of a plugin that is not loaded nothing is known
    unused = set(OPTIONS) - options_for(strategy) if known else set()
    if known and strategy != "full" and config.get("share") == defaults_of(strategy).get("share"):
        unused.add("share")  # as if it had not been set
    if config.get("lam") is None or "lam" in unused:
        unused.add("lam_from")
    if strategy == "full":
        unused.add("first_round")
    if config["learner"] != "er":
        unused.add("replay")
    if config["learner"] != "der++":
        unused |= {"alpha", "beta"}
    if config["learner"] == "ridge":
        unused |= {"learner_variant", "sampling"}
    if config["order"] not in ("tasks", "classes"):
        unused.add("order_seed")
    if not config["label_noise"]:
        unused.add("noise")
    if is_tidy(config | {"arrival": "classes"}) and config["arrival"] in ARRIVALS:
        unused.add("stream_seed")
    return config | {name: Config.model_fields[name].default for name in unused}


def own_model(place: str, digest: str | None) -> dict[str, str]:
    """`model` with an absolute path, and `model_digest`, which must be `digest` if that is given."""
    file, name = check_function(place)
    path = Path(file).resolve()
    with reading(path):
        now = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest is not None and digest != now:
        raise InputError(f"{path} has changed since it was recorded; restore it, or start over with --fresh.")
    return {"model": f"{path}:{name}", "model_digest": now}

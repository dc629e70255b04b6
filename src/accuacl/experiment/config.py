"""The settings of a run: each field's description is the command line's help for it."""

from __future__ import annotations

import re
from typing import Literal

import pydantic
from pydantic import Field

from accuacl import learners, models
from accuacl.base.errors import InputError
from accuacl.base.names import no_such
from accuacl.data import ARRIVALS, BENCHMARKS
from accuacl.experiment.limits import Settings
from accuacl.experiment.stream_settings import check_stream
from accuacl.strategies import NAMES
from accuacl.strategies import REGISTRY as STRATEGIES

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

    >>> from accuacl.experiment import make
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

"""The defaults of settings: `make` fills in what was not given, by the benchmark, the scale and the learner.

    config = make({"strategy": "coverage", "memory_policy": "coverage"})

A setting that a scale does not name has the default of its field in `Config`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic

from accuacl.base.errors import InputError, near, wrong_setting
from accuacl.base.userfile import is_own
from accuacl.experiments import data, learners, models
from accuacl.experiments.config import Config, labels_of_round, looks_at_sample, own_model
from accuacl.experiments.data import ARRIVALS
from accuacl.experiments.strategy_options import OPTIONS, canonical_options, with_options
from accuacl.experiments.stream_settings import is_class_incremental
from accuacl.strategies import usual_sample

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
OWN_VECTORS = {  # the user's own vectors, trained like the digits
    scale: {name: defaults[name] for name in ("epochs", "batch", "lr")}
    for scale, defaults in DEFAULTS["split-digits"].items()
}
OWN: dict[str, dict[str, Any]] = {  # the user's own data; the memory is as large as the labels of a task
    "smoke": SMOKE | {"memory": SMOKE["labels"]},
    "cpu": CPU | {"labels": 100, "memory": 100},
    "paper": PAPER | {"labels": 100, "memory": 100, "epochs": 50, "sampling": "plain"},
}
BY_SCALE = {name for scales in DEFAULTS.values() for settings in scales.values() for name in settings}
UNSET = {"scale", "strategy", "first_round", "sample", *BY_SCALE}  # `make` notes which of these were given


def decided_by_scale(benchmark: str) -> list[str]:
    """The settings that --scale gives defaults for.

    >>> decided_by_scale("split-digits")
    ['memory', 'labels', 'rounds', 'epochs', 'batch', 'lr']
    """
    return list(dict.fromkeys(name for settings in DEFAULTS.get(benchmark, OWN).values() for name in settings))


def make(given: dict[str, Any], data_dir: Path | None = None) -> Config:
    """Complete the given settings with the benchmark's defaults at the scale.

    data_dir: where the user's own data may be; their kind decides the network.
    """
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise InputError(f'the settings are {given!r}; give a dict of them, such as {{"learner": "er"}}.')
    given = with_options(given)
    for name, value in given.items():
        if isinstance(value, list) or (isinstance(value, dict) and name != OPTIONS):
            raise InputError(f"{name} is {value!r}, but a run has one value; `accuacl sweep` does several runs.")
    if is_own(str(given.get("model", ""))):
        given = given | own_model(str(given["model"]), given.get("model_digest"))
    try:
        config = Config(**(defaults_for(given, data_dir) | given))
        if "sample" not in given:
            config = config.model_copy(update={"sample": usual_sample_of(config)})
        config.model_fields_set.difference_update(UNSET - given.keys())
        return config
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = "/".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            meant = near(field, Config.model_fields, 0.7)
            hint = f"did you mean {meant}?" if meant else "`accuacl run --print-config` shows all."
            raise InputError(f"there is no setting {field}; {hint}") from None
        raise wrong_setting(error) from None


def defaults_for(given: dict[str, Any], data_dir: Path | None) -> dict[str, Any]:
    """The defaults that follow from the given settings: from benchmark, scale, learner and the user's own data."""
    benchmark = str(given.get("benchmark", "split-digits"))
    learner = learners.REGISTRY.get(str(given.get("learner", "er")))  # None: refused later
    exact = learner is not None and learner.exact
    if benchmark in data.PUBLISHED:
        raise InputError(f"{benchmark} is a data set; the benchmark made of it is split-{benchmark}.")
    own = None if benchmark in data.BENCHMARKS else data.own_data(benchmark, data_dir, "benchmark", data.BENCHMARKS)
    vectors = data.holds_vectors(own) if own else benchmark == "split-digits"
    usual: dict[str, Any] = {}
    if vectors or exact:
        usual["model"] = models.PRETRAINED if not vectors else "linear" if exact else "mlp"
    if (usual | given).get("model") == models.PRETRAINED:  # coverage is best there, and cpu is the scale that learns
        usual |= {"scale": "cpu", "strategy": "coverage"}
        if given.get("strategy", "coverage") == "coverage":
            usual["first_round"] = "coverage"
    scale = str((usual | given).get("scale", "smoke"))
    defaults = DEFAULTS.get(benchmark, OWN).get(scale, {}) | usual
    if own and vectors:
        defaults |= OWN_VECTORS.get(scale, {})
    if own and isinstance(given.get("labels"), int):
        defaults["memory"] = given["labels"]
    if own and not (given.get("classes_per_task") or given.get("domains")):
        defaults |= {"arrival": "given"} if given.get("task_column") or data.holds_tasks(own) else {}
    defaults |= learner.settings if learner else {}
    if own and vectors and data.holds_columns(own):
        defaults.pop("pool_learning", None)  # off, as `heads.pool_learning_of_kind` says of tables
    return defaults


def canonical(config: dict[str, Any]) -> dict[str, Any]:
    """The config with settings that its strategy and learner do not use reset to their defaults.

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
    """The default size of coverage's sample of a larger pool; 0: the whole pool. The digits are few."""
    if not looks_at_sample(dict(config)) or config.benchmark == "split-digits":
        return 0
    return usual_sample(labels_of_round(config))

"""The defaults of settings at each --scale: smoke (seconds), cpu (minutes), paper (as in the paper's experiments).

What a scale does not name has the default of its field in `Config`, whatever the scale.
"""

from __future__ import annotations

from typing import Any

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
BY_SCALE = {name for scales in DEFAULTS.values() for settings in scales.values() for name in settings}


def pretrained_defaults(strategy: str | None) -> dict[str, str]:
    """The defaults of runs on a pretrained network: coverage, which is best there, and the scale that learns.

    strategy: what was given; another than coverage also keeps its own first round.
    """
    defaults = {"scale": "cpu", "strategy": "coverage"}
    return defaults | ({"first_round": "coverage"} if strategy in (None, "coverage") else {})


def decided_by_scale(benchmark: str) -> list[str]:
    """The settings that --scale gives defaults for.

    >>> decided_by_scale("split-digits")
    ['memory', 'labels', 'rounds', 'epochs', 'batch', 'lr']
    """
    return list(dict.fromkeys(name for settings in DEFAULTS.get(benchmark, OWN).values() for name in settings))

"""A config from what the user gave, with the benchmark's defaults for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic

from accuacl import data, models
from accuacl.base.errors import InputError, wrong_setting
from accuacl.base.names import near
from accuacl.experiment.config import Config
from accuacl.experiment.defaults import DEFAULTS, OWN, OWN_VECTORS
from accuacl.experiment.own_network import own_model


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

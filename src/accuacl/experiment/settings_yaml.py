"""Settings of a run as YAML: what `accuacl run --config` and sweeps read, and `--print-config` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from accuacl.base.errors import InputError, one_line
from accuacl.experiment.config import Config

ALIASES = {"seeds": "seed", "budget": "labels", "lambda": "lam"}  # other names of settings, in YAML


def read_yaml(path: Path) -> dict[str, Any]:
    """Settings from a YAML file."""
    try:
        content = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {one_line(error)}.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"{path} cannot be read ({why}); give a YAML file of settings.") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{path} holds no settings; write lines like 'learner: er'.")
    return content


def renamed(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by the names that they have here; YAML may spell them as the command line does, or use an alias.

    >>> renamed({"classes-per-task": 2, "budget": 50})
    {'classes_per_task': 2, 'labels': 50}
    """
    names: dict[str, str] = {}
    for given in settings:
        name = ALIASES.get(given, given.replace("-", "_"))
        if name in names:
            raise InputError(f"{names[name]} and {given} are the same setting; give one of them.")
        names[name] = given
    if settings.get("seeds") and isinstance(settings["seeds"], int):
        raise InputError(
            f"seeds is {settings['seeds']}; write seeds: {list(range(settings['seeds']))} for as many seeds, "
            f"or seed: {settings['seeds']} for that one."
        )
    return {name: settings[given] for name, given in names.items()}


def to_yaml(config: Config) -> str:
    """Settings as YAML that `read_yaml` takes, with each one's meaning beside it."""
    lines = []
    for name, field in Config.model_fields.items():
        lines.append(f"{name}: {json.dumps(getattr(config, name))}  # {field.description}")  # JSON is YAML
    return "\n".join(lines) + "\n"

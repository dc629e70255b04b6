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
        content = yaml.load(path.read_text(), _EachKeyOnce)
    except _RepeatedKey as error:
        line = error.mark.line + 1
        raise InputError(f"{path}: line {line} gives {error.key} a second time; keep one of the two lines.") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {one_line(error)}.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"{path} cannot be read ({why}); give a YAML file of settings.") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{path} holds no settings; write lines like 'learner: er'.")
    return content


class _RepeatedKey(Exception):
    """A mapping has the same key twice, the second time at `mark`."""

    def __init__(self, key: Any, mark: yaml.Mark) -> None:
        super().__init__(key, mark)
        self.key, self.mark = key, mark


class _EachKeyOnce(yaml.SafeLoader):
    """YAML's safe loader, which lets the last of several equal keys win, but refusing these."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)  # before `<<` merges others, whose keys may be given anew
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if (key.tag, key.value) in keys:
                    raise _RepeatedKey(key.value, key.start_mark)
                keys.add((key.tag, key.value))
        return node


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

"""Settings in YAML files: of a run for --config, of many runs for a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from accuacl.base.errors import InputError, one_line
from accuacl.base.files import reading, reason
from accuacl.experiments.config import Config
from accuacl.experiments.strategy_options import flat_options

ALIASES = {"seeds": "seed", "budget": "labels", "lambda": "lam"}  # other names of settings, in YAML


def read_yaml(path: Path) -> dict[str, Any]:
    """Settings from a YAML file."""
    with reading(path):
        data = path.read_bytes()
    try:
        content = yaml.load(data.decode(), _EachKeyOnce)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text; give a YAML file of settings.") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or one_line(error)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{path} is invalid YAML ({where}{problem}); write lines like 'learner: er'.") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; write lines like 'learner: er'.") from None
    except ValueError as error:  # of a scalar, such as a date that does not exist
        why = reason(error).partition(";")[0]
        raise InputError(f"{path} has a value that cannot be read ({why}); correct it.") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{path} has no settings; write lines like 'learner: er'.")
    return content


def renamed(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings under their canonical names; YAML may spell them as the command line does, or use an alias.

    >>> renamed({"classes-per-task": 2, "budget": 50, "options": {"sample": 100}})
    {'classes_per_task': 2, 'labels': 50, 'options.sample': 100}
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
    return flat_options({name: settings[given] for name, given in names.items()})


def to_yaml(config: Config) -> str:
    """Settings as YAML that `read_yaml` takes, with each one's meaning beside it."""
    fields = Config.model_fields.items()  # JSON is YAML
    return "".join(f"{name}: {json.dumps(getattr(config, name))}  # {field.description}\n" for name, field in fields)


class _EachKeyOnce(yaml.SafeLoader):
    """YAML's safe loader, but it refuses a key that is given twice; YAML's own takes the last one."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)  # before `<<` merges others, whose keys may be overridden
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if (key.tag, key.value) in keys:
                    raise yaml.MarkedYAMLError(problem=f"{key.value} is given twice", problem_mark=key.start_mark)
                keys.add((key.tag, key.value))
        return node

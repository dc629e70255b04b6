"""config.json: the settings that a run or a project was begun with, readable by every later version.

A setting that a file lacks did not exist when the file was written. It then has the value that stands for what was
done without it, so that the run goes on as it began: the setting's default, or, if a new default changes what is done,
what its field names in `Field(..., json_schema_extra={"before": value})`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pydantic
import yaml

from accuacl.base.errors import InputError, one_line
from accuacl.base.files import reason, write_text
from accuacl.experiments.config import Config

SCHEMA = "schema"  # the key of the version
VERSION = 1  # to be raised when a setting changes its meaning or its name; a new setting needs no other version


def settings_before(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """What each setting was before it existed."""
    values = {}
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        if "before" in extra or not field.is_required():
            values[name] = extra.get("before", field.default)
    return values


def restore(directory: Path) -> str:
    """What to do about a damaged file of a run or a project; what people did in a project cannot be done again."""
    project = (directory / "labels.sqlite").exists()
    return "restore it from a copy" if project else "restore it or start over with --fresh"


def write_config(path: Path, settings: Mapping[str, Any]) -> None:
    write_text(path, json.dumps({SCHEMA: VERSION, **settings}, indent=1) + "\n")


def read_config(path: Path, known: Collection[str], before: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a file. known: the names of all there are; before: those of `settings_before`.

    A project's settings have a `kind`, a run's have not.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({reason(error)}); fix that.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); {restore(path.parent)}.") from error
    if not isinstance(content, dict) or "learner" not in content or ("kind" in content) != ("kind" in known):
        raise InputError(
            f"{path} is not that of a {'project' if 'kind' in known else 'run'}; choose another directory."
        )
    version = content.pop(SCHEMA, 0)
    new = sorted(content.keys() - set(known))
    if not isinstance(version, int) or version > VERSION or new:
        why = f"with the settings {', '.join(new)}" if new else f"its settings are of version {version}"
        raise InputError(f"{path} was written by a newer version of accuacl ({why}); upgrade accuacl.")
    return {**before, **content}


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

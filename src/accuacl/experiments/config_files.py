"""Files of settings: the config.json of a run or a project, which every later version can read, and YAML.

A setting that a config.json lacks did not exist when the file was written, and has its default: a new setting needs a
default that does what was done without it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from accuacl.base.errors import InputError, one_line
from accuacl.base.files import reason, write_text
from accuacl.experiments import models
from accuacl.experiments.config import UNSET, Config, Settings
from accuacl.experiments.setting import OPTIONS, flat_options
from accuacl.strategies import REGISTRY as STRATEGIES, takes_sample

SCHEMA = "schema"  # the key of the version
DEFAULTS_CHANGED = ("scale", "strategy", "first_round")  # with --model pretrained
VERSION = 1  # raised when a setting changes its meaning or its name; a new setting needs no other version


def write_config(path: Path, settings: Settings) -> None:
    write_text(path, json.dumps({SCHEMA: VERSION, **settings.model_dump(mode="json")}, indent=1) + "\n")


def read_config(path: Path, model: type[Settings]) -> dict[str, Any]:
    """The settings in a file that `write_config` wrote. A project's have a `kind`, a run's have not."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({reason(error)}); fix that.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); {what_to_do(path.parent)}.") from error
    known = model.model_fields
    if not isinstance(content, dict) or "learner" not in content or ("kind" in content) != ("kind" in known):
        kind = "project" if "kind" in known else "run"
        raise InputError(f"{path} does not belong to a {kind}; choose another directory.")
    version = content.pop(SCHEMA, VERSION)
    new = sorted(content.keys() - set(known))
    if not isinstance(version, int) or version > VERSION or new:
        why = f"with the settings {', '.join(new)}" if new else f"its settings are of version {version}"
        raise InputError(f"{path} was written by a newer version of accuacl ({why}); upgrade accuacl.")
    return default_settings(model) | content


def as_begun(config: Config, path: Path) -> Config:
    """The config of a run that is resumed from this file, with what other defaults were when it began.

    Where it names no sample, coverage looks at whole pools; one among its options is drawn by the strategy. `kernel`
    learned from the pool on all kinds of data. Runs on a pretrained network had the defaults of all others.
    """
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not begun, or refused with a sentence when it is read
        return config
    if not isinstance(recorded, dict) or "learner" not in recorded:
        return config
    before: dict[str, Any] = {} if "sample" in recorded else {"sample": 0}
    options, drawn = recorded.get(OPTIONS) or {}, config.strategy in STRATEGIES and takes_sample(config.strategy)
    if drawn and not recorded.get("sample") and options.get("sample") == config.sample:
        before = {"sample": 0, OPTIONS: config.options | {"sample": config.sample}}
    if config.learner == "kernel" and "pool_learning" not in config.model_fields_set:
        before["pool_learning"] = recorded.get("pool_learning", config.pool_learning)
    if config.model == models.PRETRAINED:
        unset = (UNSET & recorded.keys()) - config.model_fields_set
        if any(name in unset and recorded[name] == Config.model_fields[name].default for name in DEFAULTS_CHANGED):
            before |= {name: recorded[name] for name in unset}
    return config.model_copy(update=before) if before else config


def default_settings(model: type[Settings]) -> dict[str, Any]:
    """The settings of a model that have a default, as a file has them, which names `options` only if there are some."""
    fields = {name: field.default for name, field in model.model_fields.items() if not field.is_required()}
    settings: dict[str, Any] = json.loads(json.dumps({k: v for k, v in fields.items() if k != OPTIONS}))
    return settings


def what_to_do(directory: Path) -> str:
    """What to do about a damaged file of a run or a project; what people did in a project cannot be done again."""
    project = (directory / "labels.sqlite").exists()
    return "restore it from a copy" if project else "restore it or start over with --fresh"


ALIASES = {"seeds": "seed", "budget": "labels", "lambda": "lam"}  # other names of settings, in YAML


def read_yaml(path: Path) -> dict[str, Any]:
    """Settings from a YAML file."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _EachKeyOnce)
    except _RepeatedKey as error:
        line = error.mark.line + 1
        raise InputError(f"{path}: line {line} gives {error.key} a second time; keep one of the two lines.") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or one_line(error)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{path} is invalid YAML ({where}{problem}); write lines like 'learner: er'.") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; write lines like 'learner: er'.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"{path} cannot be read ({why}); give a YAML file of settings.") from None
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
    lines = []
    for name, field in Config.model_fields.items():
        lines.append(f"{name}: {json.dumps(getattr(config, name))}  # {field.description}")  # JSON is YAML
    return "\n".join(lines) + "\n"


class _RepeatedKey(Exception):
    """A mapping has the same key twice, the second time at `mark`."""

    def __init__(self, key: Any, mark: yaml.Mark) -> None:
        super().__init__(key, mark)
        self.key, self.mark = key, mark


class _EachKeyOnce(yaml.SafeLoader):
    """YAML's safe loader, which lets the last of several equal keys win, but refusing these."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)  # before `<<` merges others, whose keys may be overridden
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if (key.tag, key.value) in keys:
                    raise _RepeatedKey(key.value, key.start_mark)
                keys.add((key.tag, key.value))
        return node

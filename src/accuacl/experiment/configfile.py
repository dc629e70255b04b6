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

from accuacl.base.errors import InputError
from accuacl.base.files import reason, write_text

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

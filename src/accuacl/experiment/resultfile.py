"""result.json: what a finished run came to. All of the package reads it through here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pydantic

from accuacl.base.errors import InputError
from accuacl.base.files import reason


class _Settings(pydantic.BaseModel, strict=True):
    benchmark: str
    classes_per_task: int | None


class _Stream(pydantic.BaseModel, strict=True):
    order: list[int]
    pools: list[list[int]]


class _Result(pydantic.BaseModel, strict=True):
    """What every version has written, then what newer versions write too."""

    average_accuracy: float
    forgetting: float
    forgetting_max: float
    learning_accuracy: float
    calibration_error: float
    accuracy_matrix: list[list[float | None]] = pydantic.Field(min_length=1)
    recall: dict[str, float]
    config: _Settings
    seconds: dict[str, float]
    version: str
    recall_by_task: list[dict[str, float]] | None = None
    class_accuracy: float | None = None
    example_accuracy: float | None = None
    class_forgetting: float | None = None
    forgetting_by_class: dict[str, float] | None = None
    found: list[list[float]] | None = pydantic.Field(None, min_length=1)
    rarest_class: str | None = None
    rarest_labels: list[list[int]] | None = pydantic.Field(None, min_length=1)
    stream: _Stream | None = None


def read_result(run: Path) -> dict[str, Any]:
    """The result of the run in this directory, checked."""
    path = run / "result.json"
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        _Result.model_validate(result)
    except FileNotFoundError:
        raise InputError(f"{run} has no result.json; finish the run first.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}; fix that.") from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        field = "/".join(str(part) for part in first["loc"])
        wrong = f"{field}: {first['msg']}" if field else "it is not an object"
        raise InputError(f"{path} is not a run's result ({wrong}); run the same command again.") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); run the same command again.") from None
    assert isinstance(result, dict)
    return result

"""What every model of settings refuses: numbers that nothing here can take, and words where a number belongs."""

from __future__ import annotations

from typing import Any

import pydantic

MOST = 10**12  # of whole numbers that no other limit holds for; no data set has as many examples
LIMITS = {  # by setting, the largest that it may be
    **dict.fromkeys(("seed", "order_seed", "stream_seed"), 2**64 - 1),  # torch's generators take no larger
    **dict.fromkeys(("rounds", "last_rounds", "recurring", "domains"), 10**4),
    "epochs": 10**6,
    "width": 10**6,
    "image_size": 2**14,
    "text_features": 2**24,
    "threads": 1024,
}


class Settings(pydantic.BaseModel):
    """Settings that are fixed when work begins."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        """Refuse true and false as numbers, which pydantic would take for 1 and 0."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise ValueError("true and false are no values of this setting; give a number or a word")
        return value

    @pydantic.field_validator("*")
    @classmethod
    def _no_giant(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        most = LIMITS.get(str(info.field_name), MOST)
        if isinstance(value, int) and value > most:
            raise ValueError(f"give at most {most}")
        return value

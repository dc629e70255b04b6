"""What the type of a column in an Arrow table holds: lists, or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def is_lists(type_: pa.DataType) -> bool:
    """Whether a column holds lists."""
    import pyarrow.types as types

    return bool(types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_))


def is_numbers(type_: pa.DataType) -> bool:
    """Whether a column holds numbers; booleans count as such."""
    import pyarrow.types as types

    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_))

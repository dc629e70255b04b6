"""Which columns of a Parquet file hold what is to be embedded, and the ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError
from accuacl.embed.reading import ReadOptions
from accuacl.pools import kind_of

IMAGE, VECTOR = ("img", "image"), ("vector", "embedding", "features")  # names that are looked for
BINARY = ("binary", "large_binary", "binary_view")
IDS = {"": "no ids", "number": "ids of numbers", "text": "ids of text"}


class InputColumns(NamedTuple):
    """What a file holds (`what`: images, vectors or numbers), in which columns, and the kind of its ids ("": none)."""

    what: str
    columns: tuple[str, ...]
    ids: str

    def in_words(self) -> str:
        return f"{self.what} in {', '.join(self.columns)} and {IDS[self.ids]}"


def input_columns(file: str, schema: pa.Schema, options: ReadOptions, numbers: Sequence[str]) -> InputColumns:
    """The columns to read of a file. numbers: columns of numbers that make a vector, instead of one column."""
    lists = [name for name in options.usual if name in schema.names and is_lists(schema.field(name).type)]
    usual = next(iter((*lists, *options.usual)), "")
    column, id_column = options.column or usual, options.id_column
    ids, has = "", f"{file} has the columns {', '.join(schema.names)}"
    if id_column in schema.names:
        ids = kind_of(schema.field(id_column).type)
        if not ids:
            raise InputError(
                f"{file}: {id_column} holds {schema.field(id_column).type}; give whole numbers or text, "
                "or --id-column '' for row numbers."
            )
    elif id_column not in ("", "id"):
        raise InputError(f"{has} and no {id_column!r}; give another --id-column.")
    if numbers and not column:
        there = [field.name for field in schema if is_numbers(field.type)]
        if missing := [name for name in numbers if name not in there]:
            raise InputError(f"{file} has no column of numbers {', '.join(missing)}, which the model learned from.")
        return InputColumns("numbers", tuple(numbers), ids)
    column = column or next((name for name in (*IMAGE, *VECTOR) if name in schema.names), "")
    if column not in schema.names:
        raise InputError(f"{has}; say with --column which one holds images or vectors.")
    type_ = schema.field(column).type
    if is_lists(type_) and is_numbers(type_.value_type) and not pa.types.is_boolean(type_.value_type):
        return InputColumns("vectors", (column,), ids)
    if pa.types.is_struct(type_):  # as Hugging Face writes images
        inside = next((field.type for field in type_ if field.name == "bytes"), None)
    else:
        inside = type_
    if str(inside) not in (*BINARY, "null"):
        raise InputError(
            f"{file}: {column} holds {type_}; give images (their bytes) or vectors (lists of numbers), "
            "or another --column."
        )
    return InputColumns("images", (column,), ids)

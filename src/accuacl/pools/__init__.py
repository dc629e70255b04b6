"""Pools on disk: selection from Parquet files of any size, with exactly the picks that would be made in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.pools.ids import kind_of as kind_of
    from accuacl.pools.pool import (
        GROUP_ROWS as GROUP_ROWS,
        Columns as Columns,
        RowGroup as RowGroup,
        check_present as check_present,
        files_of as files_of,
        ids_of as ids_of,
        matrix as matrix,
        open_parquet as open_parquet,
        read as read,
        row_groups_of as row_groups_of,
        unchanged as unchanged,
        width_of as width_of,
    )
    from accuacl.pools.selecting import (
        Picked as Picked,
        check_place as check_place,
        select as select,
        write_picks as write_picks,
        write_pool as write_pool,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "ids": ("kind_of",),
        "pool": (
            "GROUP_ROWS",
            "check_present",
            "Columns",
            "files_of",
            "ids_of",
            "matrix",
            "open_parquet",
            "read",
            "row_groups_of",
            "RowGroup",
            "unchanged",
            "width_of",
        ),
        "selecting": (
            "Picked",
            "check_place",
            "select",
            "write_picks",
            "write_pool",
        ),
    },
)

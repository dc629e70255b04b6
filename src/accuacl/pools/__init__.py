"""Pools on disk: selection from Parquet files of any size, with exactly the picks that would be made in memory."""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.pools.files import GROUP_ROWS, files_of
    from accuacl.pools.ids import kind_of
    from accuacl.pools.picks import check_place, write_picks
    from accuacl.pools.pool import Columns
    from accuacl.pools.row_groups import (
        RowGroup,
        check_present,
        ids_of,
        matrix,
        open_parquet,
        read,
        row_groups_of,
        unchanged,
        width_of,
    )
    from accuacl.pools.selecting import Picked, select
    from accuacl.pools.write import write_pool

__all__ = [
    "GROUP_ROWS",
    "Columns",
    "Picked",
    "RowGroup",
    "check_place",
    "check_present",
    "files_of",
    "ids_of",
    "kind_of",
    "matrix",
    "open_parquet",
    "read",
    "row_groups_of",
    "select",
    "unchanged",
    "width_of",
    "write_picks",
    "write_pool",
]

__getattr__ = front_door(__name__)

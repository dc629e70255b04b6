"""Pools on disk: selection from Parquet files of any size, with exactly the picks that would be made in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.pools.ids import *
    from accuacl.pools.loading import NoClasses as NoClasses, read_labels as read_labels
    from accuacl.pools.pool import *
    from accuacl.pools.selecting import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    ids="kind_of",
    loading="NoClasses read_labels",
    pool=(
        "GROUP_ROWS Columns RowGroup check_present files_of ids_of matrix open_parquet read row_groups_of "
        "unchanged width_of"
    ),
    selecting="Picked check_place select write_picks write_pool",
)

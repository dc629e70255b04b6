"""Pools on disk: Parquet files of any size, from which is picked exactly as in memory."""

from accuacl.pools.picks import check_place, write_picks
from accuacl.pools.pool import Columns, files_of
from accuacl.pools.select import Picked, select
from accuacl.pools.write import GROUP_ROWS, write_pool

__all__ = ["GROUP_ROWS", "Columns", "Picked", "check_place", "files_of", "select", "write_picks", "write_pool"]

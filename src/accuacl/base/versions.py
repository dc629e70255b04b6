"""Databases carry the version of their tables, which SQLite keeps as `user_version`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from accuacl.base.errors import InputError


def table_version(db: sqlite3.Connection, path: Path, newest: int) -> int:
    """The version of the tables; InputError: a newer program has written them."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > newest:
        raise InputError(
            f"{path} was written by a newer version of accuacl (its tables have version {version}, this program knows "
            f"up to {newest}); upgrade accuacl."
        )
    return version

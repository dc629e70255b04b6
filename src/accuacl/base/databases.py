"""Databases: the version of their tables, and what is wrong when SQLite cannot read or write a file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from errno import EACCES, ENOENT, ENOSPC, EROFS
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite

LEAST = 1 << 16  # bytes; a transaction of ours may need as much
UNWRITABLE = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def table_version(db: sqlite3.Connection, path: Path, newest: int) -> int:
    """The version of the tables, which SQLite keeps as `user_version`; InputError: a newer program has written them."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > newest:
        raise InputError(
            f"{path} was written by a newer version of accuacl (its tables have version {version}, this program knows "
            f"up to {newest}); upgrade accuacl."
        )
    return version


def error_code(error: sqlite3.Error) -> int:
    """SQLite's primary code for an error; 0 for those that Python's module raises by itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def database_trouble(path: Path, error: sqlite3.Error) -> CannotWrite:
    """The error to raise for a database at `path` that cannot be written.

    SQLite says "disk I/O error" of a full disk and "unable to open database file" of a read-only one.
    """
    if not path.parent.is_dir():
        return CannotWrite(path, os.strerror(ENOENT).lower())
    if error_code(error) == sqlite3.SQLITE_FULL or _free(path.parent) < LEAST:
        return CannotWrite(path, os.strerror(ENOSPC).lower(), full=True)
    if _is_read_only(path.parent):
        return CannotWrite(path, os.strerror(EROFS).lower(), full=True)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return CannotWrite(path, os.strerror(EACCES).lower())
    return CannotWrite(path, str(error))


def _is_read_only(folder: Path) -> bool:
    try:
        return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return LEAST

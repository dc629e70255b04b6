"""Files that are complete or absent (written aside, made durable, then renamed), and locks between processes.

System errors, such as a full disk or a name that is too long, become an InputError here.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import filelock

from accuacl.base.errors import InputError
from accuacl.base.machine import sync_folder

ASIDE = re.compile(r"\.[0-9a-f]{8}\.part$")  # how the names end of files that `replacing` writes
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
SHOWN = 100  # characters of a path in a sentence
PATH_ADVICE = {  # what to do about a path that the system refuses
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EACCES: "change its permissions, or give another path",
    errno.EPERM: "change its permissions, or give another path",
    errno.EROFS: "give a path on a disk that can be written to",
    errno.ENOSPC: "free some space, or give a path on another disk",
    errno.EDQUOT: "free some space, or give a path on another disk",
    errno.ELOOP: "mend its symbolic links, or give another path",
}

# What NumPy raises for damaged files: their headers, compressed bytes, encryption, sizes beyond all memory.
BROKEN_ARRAYS = (
    ValueError, OSError, EOFError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error, TokenError
)  # fmt: skip


class CannotWrite(InputError):
    """A file that cannot be written: which, and what the system says is wrong.

    full: the disk is full or read-only, so that nothing else can be written there either.
    """

    def __init__(self, path: Path, reason: str, full: bool = False) -> None:
        super().__init__(path, reason)
        self.path, self.reason, self.full = path, reason, full

    def __str__(self) -> str:
        return f"{self.path} cannot be written: {self.reason}; fix that and try again."

    def at(self, path: Path) -> CannotWrite:
        """The same error for another path, the one that the user knows."""
        return CannotWrite(path, self.reason, self.full)


class CannotMakeFolder(CannotWrite):
    """A folder that cannot be made: which, and what the system says is wrong."""

    def __str__(self) -> str:
        return f"the folder {self.path} cannot be made: {self.reason}; give another."


def cannot_write(path: Path, error: OSError) -> CannotWrite:
    """The error to raise when the system does not let a file be written."""
    return CannotWrite(path, reason(error), error.errno in FULL)


def path_error(error: OSError) -> InputError | None:
    """The InputError for an OSError that one of the user's paths caused; None for any other.

    The command line calls it for what nothing else has caught, such as a check whether a file exists.

    >>> print(path_error(PermissionError(errno.EACCES, "Permission denied", "runs/a")))
    runs/a: permission denied; change its permissions, or give another path.
    """
    advice = PATH_ADVICE.get(error.errno or 0)
    if advice is None or error.filename is None:
        return None
    path = os.fsdecode(error.filename)
    shown = path if len(path) <= SHOWN else f"{path[: SHOWN // 2]}...{path[-SHOWN // 2 :]}"
    return InputError(f"{shown}: {reason(error)}; {advice}.")


@contextlib.contextmanager
def replacing(path: Path, name: Callable[[], str] | None = None) -> Iterator[IO[bytes]]:
    """A new file, open for writing and reading, that durably replaces `path` when the block ends.

    name: called at the end for the file's name in that folder, if the name depends on the content. On failure nothing
    is left behind and an older file stays. An OSError becomes an InputError.
    """
    _check_replaceable(path)
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with aside.open("xb+") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path.with_name(name()) if name else path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise
    sync_folder(path.parent)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` with `data`, durably; on failure nothing is left behind and an older file stays."""
    with replacing(path) as file:
        file.write(data)


def write_text(path: Path, text: str) -> None:
    """Replace `path` with `text` in UTF-8, durably."""
    write_bytes(path, text.encode())


def check_new_file(path: Path) -> None:
    """Refuse a path that cannot be written to, before any work is done."""
    folder = path.resolve().parent
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file in it.")
    _check_replaceable(path)
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder} to write {path.name} to; create it first.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"the folder {folder} may not be written to; give another.")


def _check_replaceable(path: Path) -> None:
    """Refuse a device, a pipe or a socket, which a renamed file would take the place of."""
    with contextlib.suppress(OSError):  # the system's own words come when the file is written
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path} is a device or a pipe; give the name of a file.")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Within the block, an OSError becomes an InputError that says that `path` cannot be read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}; fix that and try again.") from error


def read_json(path: Path) -> Any:
    """The content of a JSON file; None if there is no such file. An OSError becomes an InputError."""
    with reading(path):
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Within the block, an OSError becomes an InputError that says that `path` cannot be written."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, if it does not exist yet. An OSError becomes an InputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotMakeFolder(folder, reason(error), error.errno in FULL) from error


def strangers(folder: Path, *ours: str) -> str:
    """The name of a file in a folder that is not one of `ours`, so that a caller refuses to write there; "" if none.

    Hidden files do not count, because systems put them into folders that look empty. Nor do unfinished files of a
    process that was killed.
    """
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    whole = {name: ASIDE.sub("", name) for name in names if not name.startswith(".")}
    return next((name for name, meant in whole.items() if meant not in ours), "")


@contextlib.contextmanager
def filling(folder: Path) -> Iterator[None]:
    """Make a new or empty folder for this block; if the block fails, the folder and all that is in it are removed."""
    make_folder(folder)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextlib.contextmanager
def making(folder: Path, *worthless: str) -> Iterator[None]:
    """Make a folder, if it is not there yet, for this block to write to.

    If the block fails and has written nothing but files and folders called `worthless`, such as lock files, these are
    removed, and so are the folders that were made for it.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folder(folder)
    before = set(os.listdir(folder))
    try:
        yield
    except Busy:  # another process has made what is there
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            written = set(os.listdir(folder)) - before
            if written <= set(worthless):
                for path in [folder / name for name in written]:
                    path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
                for path in new:
                    path.rmdir()
        raise


def reason(error: Exception) -> str:
    """The message of an error from the system or from a library that reads a file, without '[Errno ...]'.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.txt"))
    'no such file or directory'
    >>> reason(ValueError("The footer is damaged. Is it another file?"))  # one sentence is enough
    'the footer is damaged'
    """
    said = error.args[0] if isinstance(error, TokenError) else error  # beside it, a place in numpy's header
    text = getattr(error, "strerror", None) or str(said) or type(error).__name__
    text = " ".join(text.split())
    if "pickle" in text:  # numpy takes all that it does not know for a pickle, and recommends to load it
        return "it does not hold plain arrays"
    return (text[:1] if text[1:2].isupper() else text[:1].lower()) + text[1:].split(". ")[0].rstrip(".")


class Busy(InputError):
    """Another process holds a lock."""


class Lock:
    """A lock file that one process holds at a time. It is freed when that process ends, for whatever reason."""

    def __init__(self, path: Path, busy: str = "", wait: bool = False, patience: float = 0) -> None:
        """busy: the message if another process, {holder}, holds it. wait: wait until it is free. patience: or how many
        seconds to wait at most.
        """
        self._lock = filelock.FileLock(path, timeout=-1 if wait else patience, thread_local=False)
        try:
            self._lock.acquire()
        except filelock.Timeout:
            raise Busy(busy.format(holder=_holder(path))) from None
        except OSError as error:
            raise cannot_write(path, error) from error
        with contextlib.suppress(OSError):  # Windows lets nobody write to a locked file
            path.write_text(f"{os.getpid()}\n", encoding="utf-8")

    def release(self) -> None:
        """Free the lock."""
        self._lock.release()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _holder(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8").strip() or "unknown"
    return "unknown"

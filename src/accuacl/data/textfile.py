"""Files of text, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from accuacl.base.errors import InputError
from accuacl.base.files import reading, reason

COMPRESSED: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def read_lines(path: Path) -> list[str]:
    """The lines of a file, without their ends."""
    with opened(path) as file:
        return [line.rstrip("\r\n") for line in file]


@contextmanager
def opened(path: Path, errors: str = "strict") -> Iterator[IO[str]]:
    """A file of text, compressed or not; InputError where it is not."""
    opener = COMPRESSED.get(path.suffix.lower(), open)
    try:
        with reading(path), opener(path, "rt", newline="", encoding="utf-8-sig", errors=errors) as file:
            yield file
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({reason(error)}); save it in UTF-8.") from None
    except (lzma.LZMAError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is damaged ({reason(error)}); write it again.") from None

"""What is there: published data sets that are found, and caches of decoded images with their sizes."""

from __future__ import annotations

from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.data.loading import cache_home
from accuacl.data.published import PUBLISHED, find_known


def found(data_dir: Path | None = None) -> dict[str, str]:
    """By the name of each published data set, the file or folder that it would be read from; "" if there is none.

    >>> found()["digits"]
    'embedded'
    """
    places = {}
    for name in PUBLISHED:
        try:
            places[name] = "embedded" if name == "digits" else str(find_known(name, data_dir).path)
        except InputError:
            places[name] = ""
    return places


def caches(cache_dir: Path | None = None) -> dict[Path, int]:
    """By its folder, the bytes of each cache of decoded images."""
    home = cache_home(cache_dir)
    folders = sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    return {folder: sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) for folder in folders}

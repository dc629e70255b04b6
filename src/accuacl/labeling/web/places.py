"""Folders on the server from which leads may add data: those named at its start, and their contents.

A place is written as the name of such a folder and names below it, such as `photos/spring`. No path from a request
touches the disk before it has been checked, and links that lead out are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import reading

MOST = 500  # entries of a folder that are listed
LONGEST = 1000  # characters of a place


@dataclass(frozen=True)
class Listing:
    """What is in a place: the folders and the files that can be added, each as a place; more: there are others."""

    place: str
    folders: list[str]
    files: list[str]
    more: bool = False


class Places:
    """The folders that were named with --data."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._roots: dict[str, Path] = {}
        for folder in folders:
            with reading(folder):
                root = folder.resolve()
                if not root.is_dir():
                    raise InputError(f"--data {folder} is not a folder; give one that holds data for projects.")
            name = root.name or "data"
            self._roots[name if name not in self._roots else f"{name}-{len(self._roots) + 1}"] = root

    def __bool__(self) -> bool:
        return bool(self._roots)

    def resolve(self, place: str) -> Path:
        """The folder or file of a place; InputError if it is not there, or not inside one of the named folders.

        >>> Places().resolve("../etc")
        Traceback (most recent call last):
        accuacl.base.errors.InputError: this server has no such folder or file; choose one from the list.
        """
        missing = InputError("this server has no such folder or file; choose one from the list.")
        first, *rest = place.split("/")
        root = self._roots.get(first)
        if root is None or len(place) > LONGEST or not all(map(_is_plain, rest)):
            raise missing
        try:
            path = root.joinpath(*rest).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):  # not there, a loop of links, or a strange character
            raise missing from None
        if not path.is_relative_to(root):
            raise missing
        return path

    def list(self, place: str, suffixes: Sequence[str]) -> Listing:
        """What is in a place; "": the folders that were named. suffixes: of the files that are of use."""
        if not place:
            return Listing("", sorted(self._roots), [])
        folder = self.resolve(place)
        if not folder.is_dir():
            raise InputError("this is a file, not a folder; choose a folder from the list.")
        folders, files = [], []
        with reading(folder), os.scandir(folder) as entries:
            for entry in entries:
                if not _is_plain(entry.name) or entry.is_symlink():
                    continue
                if entry.is_dir():
                    folders.append(f"{place}/{entry.name}")
                elif entry.name.lower().endswith(tuple(suffixes)):
                    files.append(f"{place}/{entry.name}")
        more = len(folders) > MOST or len(files) > MOST
        return Listing(place, sorted(folders)[:MOST], sorted(files)[:MOST], more)


def _is_plain(name: str) -> bool:
    """Whether it names an entry of a folder that is not hidden."""
    return bool(name) and not name.startswith(".") and not any(c in name for c in "/\\\0")

"""The published data sets: what they are called, what to get, and where they lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.data import cifar, folders, parquet
from accuacl.data.source import Source


@dataclass(frozen=True)
class Published:
    """A published data set: how many classes it has, how large its images are, what to get and from whom."""

    classes: int
    side: int
    files: str
    published: str


PARQUET = "train-*.parquet and test-*.parquet in the Hugging Face layout"
NAME_IT = "with --data-dir or in the environment variable ACCUACL_DATA"
TORONTO = "Alex Krizhevsky's CIFAR page at the University of Toronto"
PUBLISHED = {
    "digits": Published(10, 8, "nothing", "scikit-learn"),
    "cifar10": Published(10, 32, f"cifar-10-binary.tar.gz, cifar-10-python.tar.gz or {PARQUET}", TORONTO),
    "cifar100": Published(100, 32, f"cifar-100-binary.tar.gz, cifar-100-python.tar.gz or {PARQUET}", TORONTO),
    "tiny-imagenet": Published(
        200, 64, f"tiny-imagenet-200.zip, unpacked or not, or {PARQUET}", "Stanford's course CS231n on its web pages"
    ),
}


def find_known(name: str, data_dir: Path | None = None) -> Source:
    """Where a published data set lies: in a folder of its name in the data folder, or in that itself."""
    known, data_dir = PUBLISHED[name], data_folder(data_dir)
    if data_dir is None:
        raise InputError(
            f"{name} needs a data folder and none is set; put {known.files} (published on {known.published}) "
            f"in a folder and name it {NAME_IT}."
        )
    for folder in (data_dir / name, data_dir):
        source = cifar.find(name, folder)
        if source is None and name == "tiny-imagenet":
            source = folders.find_tiny(folder)
        source = source or parquet.find(folder)
        if source:
            return source
    raise InputError(
        f"{name} is not in {data_dir / name} nor in {data_dir}; put {known.files} there, "
        f"as published on {known.published}, or name another folder {NAME_IT}."
    )


def data_folder(given: Path | None) -> Path | None:
    """The folder with published data sets: the one given, or $ACCUACL_DATA."""
    set_ = os.environ.get("ACCUACL_DATA")
    return given if given is not None or not set_ else Path(set_)

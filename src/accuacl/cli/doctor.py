"""`accuacl doctor`: what accuacl finds on this machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from rich.markup import escape

import accuacl
from accuacl.base.errors import EXTRAS, counted, install
from accuacl.base.machine import available_memory, cores, cpu_name
from accuacl.cli.options import DataDir
from accuacl.cli.screen import console

SMALL = 2**20  # bytes of a cache that is not worth a line of its own
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow", "pydantic", "typer", "torch", "pillow")


def doctor(data_dir: DataDir = None) -> None:
    """Show what accuacl finds here: versions, extras, cores, memory, GPU, data sets and caches.

    Nothing is changed. Put its output into a question or a bug report.
    """
    from accuacl.experiments.data import caches, found

    installed = {each.name.lower(): each.version for each in metadata.distributions()}
    libraries = [f"{name} {installed[name]}" for name in LIBRARIES if name in installed]
    _section("accuacl", [f"{accuacl.__version__}, in {os.path.dirname(accuacl.__file__)}"])
    _section("Python", [f"{platform.python_version()}, {sys.executable}"])
    _section("libraries", [", ".join(libraries)])
    _section("extras", [_extra(name, what, modules) for name, (what, modules) in EXTRAS.items()])
    _section("embedding", [_runtimes(installed)])
    _section(
        "machine",
        [f"{cpu_name()}, {cores()} cores, {size(available_memory())} of memory free, {platform.platform()}", _gpu()],
    )
    where = data_dir or os.environ.get("ACCUACL_DATA") or "not set; give --data-dir or set ACCUACL_DATA"
    sets = [f"{name}: {place or 'not found'}" for name, place in found(data_dir).items()]
    _section("data", [f"folder: {where}", *sets])
    _section("caches", _caches(caches()))


def _caches(kept: Mapping[Path, int]) -> list[str]:
    """The large ones by name, largest first, the others together, and what to know of all of them."""
    by_size = sorted(kept.items(), key=lambda item: -item[1])
    lines = [f"{folder}: {size(count)}" for folder, count in by_size if count >= SMALL]
    small = [count for _, count in by_size if count < SMALL]
    if small:
        lines.append(f"{counted(len(small), 'small cache')} in {by_size[-1][0].parent}: {size(sum(small))}")
    return [*lines, f"{size(sum(kept.values()))} in all; a cache may be deleted, and is made again."]


def _section(title: str, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines):
        console.print(f"[bold]{'' if number else title:<10}[/bold] {escape(line)}", soft_wrap=True)


def _extra(name: str, what: str, modules: tuple[str, ...]) -> str:
    missing = [module for module in modules if not find_spec(module)]
    return f"{name} ({what}): " + (f"missing; {install(name)}" if missing else "installed")


def _runtimes(versions: Mapping[str, str]) -> str:
    """What runs the networks that embed images."""
    if not find_spec("torch"):
        return f"needs the extra train; {install('train')}"
    from accuacl.experiments.networks import installed as runtimes

    named = [f"{name} {versions.get(name.partition('-')[0], '')}" for name in runtimes()]
    faster = "" if "openvino" in versions else "; openvino would be faster where the processor has bfloat16"
    return f"{named[0]} runs the pretrained networks (here are {', '.join(named)}){faster}"


def _gpu() -> str:
    if not find_spec("torch"):
        return "no GPU is used without torch"
    import torch  # slow to load

    if not torch.cuda.is_available():
        return f"no GPU that torch {torch.__version__} can use"
    names = (torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    return "GPU: " + ", ".join(names)


def size(count: float) -> str:
    """Bytes in a suitable unit.

    >>> size(0), size(2048), size(5.5 * 2**30)
    ('0 B', '2 KiB', '5.5 GiB')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 2**power:
            return f"{count / 2**power:.{int(count < 10 * 2**power and power > 10)}f} {unit}"
    return f"{count:.0f} B"

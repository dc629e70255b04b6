"""Commands on a disk that is full or read-only: a small file system in memory that one process alone can see."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from pathlib import Path

from commands import accuacl
from processes import Running

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000  # of unshare
READ_ONLY, REMOUNT, PRIVATE_BELOW = 1, 32, 0x4000 | 0x40000  # of mount
LARGE = 64 << 20


def ends(kind: str, inputs: Path, uses: dict[str, str], folder: Path, room: int = 0) -> dict[str, dict]:
    """How each command ends that is given {disk} for its output; or {"skip": why there can be no such disk here}.

    kind: full, read-only, or full-then-larger: then the same command is given again when there is room. room: bytes
    that are free on a full disk.
    """
    folder.mkdir()
    ended = Running(_try_all, kind, inputs, uses, folder, room).wait()
    assert ended.returncode == 0, ended.stderr
    return json.loads((folder / "ends.json").read_text())


def _try_all(kind: str, inputs: Path, uses: dict[str, str], folder: Path, room: int) -> None:
    try:
        _have_own_mounts()
        found = {}
        for number, (name, use) in enumerate(uses.items()):
            disk = folder / f"disk{number}"
            disk.mkdir()
            _mount(disk, f"size={LARGE}")
            found[name] = _try(kind, inputs, use, disk, room)
    except OSError as error:
        found = {"skip": f"no disk can be made here: {error}"}
    (folder / "ends.json").write_text(json.dumps(found))


def _try(kind: str, inputs: Path, use: str, disk: Path, room: int) -> dict:
    shutil.copytree(inputs / "project", disk / "project")
    (disk / "filler").write_bytes(b"x")
    before = _content(disk)
    if kind == "read-only":
        _mount(disk, f"size={LARGE}", REMOUNT | READ_ONLY)
    else:
        at = os.statvfs(disk)
        _mount(disk, f"size={(at.f_blocks - at.f_bfree) * at.f_frsize + room}", REMOUNT)
    words = use.replace("{disk}", str(disk)).split()
    ended = accuacl(*words, cwd=inputs, width=300)
    left = sorted(_content(disk) ^ before)
    again = None
    if kind == "full-then-larger":
        _mount(disk, f"size={LARGE}", REMOUNT)
        again = accuacl(*words, cwd=inputs, width=300).returncode
    return {"code": ended.returncode, "out": ended.stdout, "err": ended.stderr, "left": left, "again": again}


def _content(disk: Path) -> set[str]:
    """The files, but for those that SQLite makes whenever it opens a database."""
    return {str(path.relative_to(disk)) for path in disk.rglob("*") if not path.name.endswith(("-shm", "-wal"))}


def _have_own_mounts() -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", NEW_MOUNTS | (NEW_USER if user else 0))
    if user:  # who may mount nothing but in a namespace of their own
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _call("mount", b"none", b"/", None, PRIVATE_BELOW, None)


def _mount(folder: Path, options: str, flags: int = 0) -> None:
    _call("mount", b"tmpfs", str(folder).encode(), b"tmpfs", flags, options.encode())


def _call(name: str, *arguments: object) -> None:
    if not hasattr(os, "geteuid") or getattr(function := ctypes.CDLL(None, use_errno=True), name, None) is None:
        raise OSError(f"this system has no {name}")
    if getattr(function, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

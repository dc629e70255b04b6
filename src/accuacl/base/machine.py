"""The machine and its system: everything that only some systems have, with a fallback for the others.

Linux has all of it. macOS lacks /proc and the GNU C library; Windows also lacks signal masks, resource limits and some
flags of `open`. `tests/test_portability.py` checks that no other module uses such things.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError

CPU_INFO = Path("/proc/cpuinfo")  # on Linux
STATUS, CLEAR_REFS, MEMORY = Path("/proc/self/status"), Path("/proc/self/clear_refs"), Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # the limits of a container
UNKNOWN_MEMORY = 4 << 30  # bytes, where the system does not say what it has
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # parameters of mallopt
DYNAMIC = 32 * 2**20  # bytes: the most that the library chooses by itself
ALL = 2**31 - 1


def cpu_name() -> str:
    """The model name of the processor, or its architecture where the system does not say."""
    names = (line.partition(":")[2].strip() for line in _lines(CPU_INFO) if line.startswith("model name"))
    return next(filter(None, names), platform.processor() or platform.machine())


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def device_of(device: str) -> str:
    """The torch device that a setting means: for auto the GPU, if there is one."""
    import torch  # slow to load

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device is {device!r}, but torch finds no GPU; give --device cpu.")
    return device


# Memory


def available_memory() -> int:
    """Bytes of memory that this process can still get, from the machine or the container that it runs in."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else UNKNOWN_MEMORY
    for line in _lines(MEMORY):
        if line.startswith("MemAvailable"):
            free = int(line.split()[1]) * 1024
    limit, used = _lines(CGROUP / "memory.max"), _lines(CGROUP / "memory.current")
    if limit and used and limit[0].isdigit():
        free = min(free, int(limit[0]) - int(used[0]))
    return free


def reset_peak_memory() -> int:
    """Reset the peak of this process's resident memory; returns how many bytes are resident now, 0 if unknown."""
    with contextlib.suppress(OSError):  # then the peak is that of the whole process
        CLEAR_REFS.write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak_memory() -> int:
    """The most bytes that this process has had resident, 0 if unknown."""
    return _status("VmHWM")


def one_heap() -> None:
    """Let all future threads share the main heap, the only one that can be kept as a whole."""
    if (library := _gnu()) is not None:
        library.mallopt(ARENA_MAX, 1)


@contextlib.contextmanager
def memory_kept() -> Iterator[None]:
    """Within the block freed memory is kept for the next use; afterwards it is given back."""
    library = _gnu()
    if library is None:
        yield
        return
    library.mallopt(MMAP_THRESHOLD, 2**30)
    library.mallopt(TRIM_THRESHOLD, ALL)
    try:
        yield
    finally:
        library.mallopt(MMAP_THRESHOLD, DYNAMIC)
        library.mallopt(TRIM_THRESHOLD, 2 * DYNAMIC)
        library.malloc_trim(0)


def _gnu() -> Any:
    """The C library, if it is GNU's."""
    import ctypes  # here, since every command imports this module

    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018
    except (AttributeError, OSError, TypeError):  # macOS, musl, Windows
        return None
    return library


# Files


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_unlinked(path: Path) -> int:
    """A descriptor of a file for reading; a link is refused and a pipe not waited for, where the system can do that."""
    flags = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    return os.open(path, os.O_RDONLY | flags)


def raise_file_limit(wanted: int) -> None:
    """Raise this process's limit of open files to this number, or as far as the system allows."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted and (hard == resource.RLIM_INFINITY or hard > soft):
        allowed = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


# Ctrl-C and processes


def ignore_interrupts() -> None:
    """Ignore Ctrl-C in this process, which another one controls."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def end_as_if_interrupted() -> None:
    """End as orderly as by Ctrl-C when a service manager ends this process."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Block Ctrl-C, so that it does not reach a process that has just been started and does not ignore it yet."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def how_it_ended(code: int) -> str:
    """Describe how a process with this exit code ended.

    >>> how_it_ended(3), how_it_ended(-9)
    ('exit code 3', 'killed by SIGKILL')
    """
    names = {each.value: each.name for each in signal.Signals}
    return f"killed by {names.get(-code, f'signal {-code}')}" if code < 0 else f"exit code {code}"


def _status(key: str) -> int:
    return next((int(line.split()[1]) * 1024 for line in _lines(STATUS) if line.startswith(key)), 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []

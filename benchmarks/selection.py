"""Selection out of core beside a bare Parquet scan: rows per second, memory, growth, and Ray beside processes.

A pool is written to a temporary folder. The bare scan reads the same columns twice, with the reader and on the number
of processes that the selection uses, and does nothing with them. Both are timed without the start of their processes,
in turn, and the best of each counts. Memory is the sum of the resident memory of all processes of a selection, sampled
twenty times a second. Run: python benchmarks/selection.py --json benchmarks/selection.json
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import multiprocessing as mp
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

SEED, FILE_ROWS = 0, 1 << 18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=["local", "ray"])
    parser.add_argument("--shuffled", action="store_true", help="Ids in no order: every one must be checked.")
    parser.add_argument("--folder", type=Path, help="Where to write the pools; default: the temporary folder.")
    parser.add_argument("--json", type=Path, help="Also write all numbers to this file.")
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "POOL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.budget, options.workers)))
        return
    from accuacl.experiments.sweeps.efficiency import machine

    table = [run(rows, options) for rows in sorted(options.rows)]
    print(
        f"{'rows':>12} {'':>6} {'seconds':>8} {'rows/s':>11} {'of bare':>8} {'CPU s':>7} {'start s':>8} {'peak MiB':>9}"
    )
    for row in table:
        n, bare_seconds = row["rows"], row["bare"]
        print(f"{n:>12,} {'bare':>6} {bare_seconds:>8.2f} {n / bare_seconds:>11,.0f} {'':>8} {row['bare_cpu']:>7.1f}")
        for name, one in row["engines"].items():
            speed = f"{one['seconds']:>8.2f} {n / one['seconds']:>11,.0f} {bare_seconds / one['seconds']:>8.2f}"
            rest = f"{one['cpu']:>7.1f} {one['start']:>8.1f} {one['peak'] / 2**20:>9,.0f}"
            print(f"{'':>12} {name:>6} {speed} {rest}")
    last, first = table[-1], table[0]
    local, small = last["engines"]["local"], first["engines"]["local"]
    growth = (local["seconds"] / small["seconds"]) / (last["rows"] / first["rows"])
    verdicts = {
        "of the bare scan's speed, at least 0.5": last["bare"] / local["seconds"],
        "of the bare scan's speed by CPU time": last["bare_cpu"] / local["cpu"],
        "GiB of all processes, at most 1.5": local["peak"] / 2**30,
        "times the memory of the smallest pool, 1 is the same": local["peak"] / small["peak"],
        "times the seconds a row of the smallest pool, 1 is linear": growth,
    }
    if "ray" in last["engines"]:
        verdicts["times the local seconds for Ray, at most 1.3"] = last["engines"]["ray"]["seconds"] / local["seconds"]
    for what, value in verdicts.items():
        print(f"{value:8.2f}  {what}")
    setup = f"{machine()}; {options.workers} workers; d={options.d} K={options.classes} b={options.budget}; seed {SEED}"
    print(setup)
    if options.json:
        text = json.dumps({"machine": setup, "table": table, "verdicts": verdicts}, indent=1)
        options.json.write_text(text + "\n")


def run(rows: int, options: argparse.Namespace) -> dict[str, Any]:
    """One size: the pool, then bare scans and selections in turn."""
    with tempfile.TemporaryDirectory(prefix="accuacl-pool-", dir=options.folder) as folder:
        size = write(Path(folder), rows, options.d, options.classes, options.shuffled)
        found: dict[str, Any] = {"rows": rows, "bytes": size, "bare": np.inf, "bare_cpu": np.inf, "engines": {}}
        for _ in range(options.repeats):
            seconds, used = bare(folder, options.workers)
            found["bare"], found["bare_cpu"] = min(found["bare"], seconds), min(found["bare_cpu"], used)
            for engine in options.engines:
                one = selection(engine, folder, options)
                best = found["engines"].setdefault(engine, one)
                best["seconds"], best["cpu"] = min(best["seconds"], one["seconds"]), min(best["cpu"], one["cpu"])
                best["peak"] = max(best["peak"], one["peak"])
                if one["picks"] != best["picks"]:
                    raise AssertionError(f"{engine} picked others than before")
        picks = {one["picks"] for one in found["engines"].values()}
        assert len(picks) == 1, "engines disagree"
        return found


def write(folder: Path, rows: int, d: int, K: int, shuffled: bool) -> int:
    """Clustered, rectified embeddings and the softmax of a linear model on them, as bench.py has them."""
    from accuacl.pools import write_pool

    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(K, d)).astype(np.float32)
    weights = (centres - centres.mean(axis=0)) / np.float32(d)
    ids = rng.permutation(rows) if shuffled else np.arange(rows)
    for start in range(0, rows, FILE_ROWS):
        n = min(FILE_ROWS, rows - start)
        h = rng.standard_normal((n, d), np.float32)
        h += centres[rng.integers(K, size=n)]
        logits = 8 * (h @ weights.T)
        np.maximum(h, 0, out=h)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        write_pool(folder / f"{start:012}.parquet", ids[start : start + n], h, p)
    return sum(file.stat().st_size for file in folder.iterdir())


def bare(folder: str, workers: int) -> tuple[float, float]:
    """Seconds, and seconds of CPU, to read all columns twice."""
    import pyarrow.parquet as pq

    groups = [
        (str(file), group)
        for file in sorted(Path(folder).iterdir())
        for group in range(pq.ParquetFile(file).metadata.num_row_groups)
    ]
    with mp.get_context("spawn").Pool(workers) as pool:
        pool.map(_nothing, range(100 * workers), 1)  # all have started
        start, used = time.perf_counter(), cpu(os.getpid())
        for _ in range(2):
            for _ in pool.imap_unordered(_scan, groups, 2):
                pass
        return time.perf_counter() - start, cpu(os.getpid()) - used


def _nothing(_: int) -> None:
    import pyarrow.parquet  # noqa: F401

    time.sleep(0.01)


def _scan(group: tuple[str, int]) -> int:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(group[0], buffer_size=1 << 20, pre_buffer=False)
    return sum(map(len, file.iter_batches(1 << 15, row_groups=[group[1]], use_threads=False)))


def selection(engine: str, folder: str, options: argparse.Namespace) -> dict[str, Any]:
    """A selection in a process of its own, watched."""
    command = [sys.executable, __file__, "--one", engine, folder]
    command += ["--budget", str(options.budget), "--workers", str(options.workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.05):
            peak = max(peak, resident(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    over.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(process.returncode)
    return json.loads(out.splitlines()[-1]) | {"peak": peak}


def measure(name: str, folder: str, budget: int, workers: int) -> dict[str, Any]:
    """In its own process: seconds of one selection, without those that starting the workers takes."""
    import hashlib

    from accuacl import engines, pools

    began = time.perf_counter()
    with engines.get(name, workers) as engine:
        for _ in engine.map(functools.partial(_wait), range(4 * workers)):
            pass
        start, used = time.perf_counter(), cpu(os.getpid())
        picked = pools.select(folder, "accuacl", budget=budget, engine=engine)
        seconds, used = time.perf_counter() - start, cpu(os.getpid()) - used
    digest = hashlib.sha256(picked.ids.tobytes()).hexdigest()
    return {"seconds": seconds, "cpu": used, "start": start - began, "picks": digest}


def _wait(item: int, report: Any) -> None:
    import torch  # noqa: F401

    import accuacl.pools  # noqa: F401

    time.sleep(0.2)


def resident(root: int) -> int:
    """Bytes of resident memory of a process and all below it."""
    return sum(int(stat[21]) for stat in family(root)) * os.sysconf("SC_PAGE_SIZE")


def cpu(root: int) -> float:
    """Seconds of CPU that a process and all below it, as far as they live, have used."""
    return sum(int(stat[11]) + int(stat[12]) for stat in family(root)) / os.sysconf("SC_CLK_TCK")


def family(root: int) -> list[list[str]]:
    """What /proc says of a process and all below it, from the third field on."""
    found: dict[int, list[str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                found[int(entry)] = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
    members = {root}
    while more := {pid for pid, stat in found.items() if int(stat[1]) in members} - members:
        members |= more
    return [found[pid] for pid in members if pid in found]


if __name__ == "__main__":
    main()

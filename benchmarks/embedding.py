"""How fast images are embedded: by runtime, network, size and number of threads, and end to end from files.

    python benchmarks/embedding.py --out docs/results/eyes/speed.csv

Each row is a process of its own, on so many cores. `alone`: the network runs on pixels that are in memory. The other
rows read and decode photographs (JPEG files of that size), as a project does, and then run the network. Images a second
are by the clock and by CPU time, which other work on the machine disturbs less; the best of several turns counts.
`share`: of the images per CPU second of the network alone. Memory is the most that the process ever had. The largest
photographs are embedded at 224 pixels alone.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

LARGE, SIDE, BATCH = "4000 x 3000", 224, 16
PHOTOS = {"alone": (0, 0), "224 x 224": (224, 224), "500 x 375": (500, 375), LARGE: (4000, 3000)}
COLUMNS = ("network", "side", "runtime", "threads", "photos", "per_second", "per_cpu_second", "share", "megabytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=["efficientnet-lite0", "efficientnet-lite2"])
    parser.add_argument("--sides", nargs="+", type=int, default=[128, 224])
    parser.add_argument("--runtimes", nargs="+", help="unset: all that are installed")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--photos", nargs="+", default=list(PHOTOS), choices=list(PHOTOS))
    parser.add_argument("--images", type=int, default=96, help="in each turn")
    parser.add_argument("--batch", type=int, default=BATCH, help="images that a thread is given at a time")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--row", help="used by this script itself")
    given = parser.parse_args()
    if given.row:
        print(json.dumps(measure(*json.loads(given.row), given.images, given.batch, given.turns)))
        return
    if not given.runtimes:
        from accuacl.experiments.networks import installed

        given.runtimes = installed()
    rows: list[dict[str, Any]] = []
    alone: dict[tuple[Any, ...], float] = {}
    cells = itertools.product(given.networks, given.sides, given.runtimes, given.threads, given.photos)
    with tempfile.TemporaryDirectory() as folder:
        for name in given.photos:
            write_photographs(Path(folder) / name, *PHOTOS[name])
        for *cell, photos in cells:
            if photos == LARGE and cell[1] != SIDE:
                continue
            command = [sys.executable, __file__, "--row", json.dumps([*cell, photos, folder])]
            command += ["--images", str(given.images), "--batch", str(given.batch), "--turns", str(given.turns)]
            row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            alone.setdefault(tuple(cell), row["per_cpu_second"])
            named = dict(zip(COLUMNS, (*cell, photos), strict=False)) | row
            named["share"] = f"{row['per_cpu_second'] / alone[tuple(cell)]:.2f}"
            rows.append({name: named[name] for name in COLUMNS})
            print(*rows[-1].values(), sep="  ", flush=True)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with given.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def measure(
    name: str, side: int, runtime: str, threads: int, photos: str, folder: str, images: int, batch: int, turns: int
) -> dict[str, Any]:
    """One row, in this process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    import torch

    from accuacl.base.machine import memory_kept, one_heap
    from accuacl.base.threads import ordered_thread_map
    from accuacl.experiments.data import decode
    from accuacl.experiments.networks import open_runtime, pretrained_network

    one_heap()
    torch.set_num_threads(1)
    run = open_runtime(runtime, pretrained_network(name), (side, side, 3)).run
    files = sorted((Path(folder) / photos).glob("*.jpg"))
    pixels = np.random.default_rng(0).integers(0, 256, (32, side, side, 3), np.uint8)

    def embed(rows: range) -> Any:
        if not files:
            return run(pixels[: len(rows)])
        return run(np.stack([decode(files[i % len(files)].read_bytes(), side) for i in rows]))

    batches = [range(start, min(start + batch, images)) for start in range(0, images, batch)]
    best = best_cpu = float("inf")
    with memory_kept():
        for _ in range(turns + 1):  # the first one warms up
            begun, cpu = time.monotonic(), time.process_time()
            for _rows in ordered_thread_map(embed, batches, threads, lambda: torch.set_num_threads(1)):
                pass
            best, best_cpu = min(best, time.monotonic() - begun), min(best_cpu, time.process_time() - cpu)
    return {
        "per_second": round(images / best, 1),
        "per_cpu_second": round(images / best_cpu, 1),
        "megabytes": megabytes(),
    }


def megabytes() -> int:
    """The peak memory of this process, on Linux; getrusage counts that of its parent too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return round(int(line.split()[1]) / 1024)


def write_photographs(folder: Path, width: int, height: int) -> None:
    """Eight JPEG files of smooth colours with the noise of a camera; none if they have no size."""
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(8 if width else 0):
        coarse = Image.fromarray(rng.integers(0, 256, (height // 40 + 2, width // 40 + 2, 3), np.uint8))
        smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32)
        noisy = np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / f"{i}.jpg", quality=90)


if __name__ == "__main__":
    main()

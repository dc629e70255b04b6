"""How fast images are embedded: by runtime, network, size and number of threads, and end to end from files.

    python benchmarks/embedding.py --out docs/results/eyes/speed.csv

Each row is a process of its own, on so many cores. `alone`: the network runs on pixels that are in memory. The other
rows decode photographs (JPEG files of that size), as a project does, and then run the network. Images a second are
by the clock and by CPU time, which other work on the machine disturbs less; the best of several turns counts.
`share`: of the images per CPU second of the network alone. Memory is the most that the process ever had.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

PHOTOS = {"alone": (0, 0), "224 x 224": (224, 224), "500 x 375": (500, 375), "4000 x 3000": (4000, 3000)}
COLUMNS = ("network", "side", "runtime", "threads", "photos", "per_second", "per_cpu_second", "share", "megabytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=["efficientnet-lite0", "efficientnet-lite2"])
    parser.add_argument("--sides", nargs="+", type=int, default=[128, 224])
    parser.add_argument("--runtimes", nargs="+", help="unset: all that are installed")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--photos", nargs="+", default=list(PHOTOS), choices=list(PHOTOS))
    parser.add_argument("--images", type=int, default=96, help="in each turn")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--row", help="used by this script itself")
    given = parser.parse_args()
    if given.row:
        print(json.dumps(measure(*json.loads(given.row), given.images, given.turns)))
        return
    if not given.runtimes:
        from accuacl.experiments.embed import installed

        given.runtimes = installed()
    rows: list[dict[str, Any]] = []
    alone: dict[tuple[Any, ...], float] = {}
    for cell in itertools.product(given.networks, given.sides, given.runtimes, given.threads):
        for photos in given.photos:
            command = [sys.executable, __file__, "--row", json.dumps([*cell, photos])]
            command += ["--images", str(given.images), "--turns", str(given.turns)]
            row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            alone.setdefault(cell, row["per_cpu_second"])
            named = dict(zip(COLUMNS, (*cell, photos), strict=False)) | row
            named["share"] = f"{row['per_cpu_second'] / alone[cell]:.2f}"
            rows.append({name: named[name] for name in COLUMNS})
            print(*rows[-1].values(), sep="  ", flush=True)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with given.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def measure(name: str, side: int, runtime: str, threads: int, photos: str, images: int, turns: int) -> dict[str, Any]:
    """One row, in this process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    import torch

    from accuacl.base.machine import memory_kept, one_heap
    from accuacl.base.threads import ordered_thread_map
    from accuacl.experiments.data import decode
    from accuacl.experiments.embed import open_runtime, pretrained_network

    one_heap()
    torch.set_num_threads(1)
    run = open_runtime(runtime, pretrained_network(name), (side, side, 3)).run
    files = [photograph(*PHOTOS[photos], seed) for seed in range(8)] if photos != "alone" else []
    pixels = np.random.default_rng(0).integers(0, 256, (32, side, side, 3), np.uint8)

    def embed(batch: range) -> Any:
        return run(np.stack([decode(files[i % len(files)], side) for i in batch]) if files else pixels[: len(batch)])

    batches = [range(start, min(start + 32, images)) for start in range(0, images, 32)]
    best = best_cpu = float("inf")
    with memory_kept():
        for _ in range(turns + 1):  # the first one warms up
            begun, cpu = time.monotonic(), time.process_time()
            for _rows in ordered_thread_map(embed, batches, threads, lambda: torch.set_num_threads(1)):
                pass
            best, best_cpu = min(best, time.monotonic() - begun), min(best_cpu, time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "per_second": round(images / best, 1),
        "per_cpu_second": round(images / best_cpu, 1),
        "megabytes": round(peak),
    }


def photograph(width: int, height: int, seed: int) -> bytes:
    """A JPEG file of smooth colours with the noise of a camera."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (height // 40 + 2, width // 40 + 2, 3), np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32)
    noisy = np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(noisy).save(file, "JPEG", quality=90)
    return file.getvalue()


if __name__ == "__main__":
    main()

"""How soon people can label: seconds from `accuacl project serve` to the first item, and to a whole first round.

    python benchmarks/first_item.py --images 300
    python benchmarks/first_item.py --images 50000 --pixels 4000

Makes random photographs (JPEG, of so many pixels a side) and a project in a temporary folder, starts the server as
users do, asks it for examples over HTTP until all of the first round is chosen, and stops it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

LABELS = 50  # of a round
COMMAND = [sys.executable, "-c", "from accuacl.cli import main; main()", "project"]


def photographs(folder: Path, count: int, pixels: int = 224) -> None:
    """Smooth random images, a hundred different ones under many names."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(count):
        path = folder / f"{i:06}.jpg"
        if i < 100:
            small = Image.fromarray(rng.integers(0, 256, (14, 14, 3), np.uint8))
            small.resize((pixels, pixels), Image.Resampling.BICUBIC).save(path, quality=90)
        else:
            os.link(folder / f"{i % 100:06}.jpg", path)


def first_items(project: Path) -> tuple[float, float, float]:
    """Seconds from the start of the process to the first example, to the whole round, and of the server's CPU time."""
    begun = time.monotonic()
    server = subprocess.Popen(
        [*COMMAND, "serve", str(project), "--person", "Ada", "--port", "0", "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        link = next(line for line in server.stdout if "#token=" in line).split()[-1]
        address, token = link.split("/login#token=")
        with httpx.Client(base_url=address, timeout=600) as client:
            client.post("/api/login", json={"token": token}).raise_for_status()
            first = 0.0
            while True:
                view = client.post("/api/next", json={}).raise_for_status().json()
                if view["pick"] and not first:
                    first = time.monotonic() - begun
                if view["pick"] and not view["state"]["preparing"] and view["state"]["total"] == LABELS:
                    break
                time.sleep(0.02 if not first else 0.2)
            whole = time.monotonic() - begun
    finally:
        server.kill()
        used = os.wait4(server.pid, 0)[2]
    return first, whole, used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--pixels", type=int, default=224)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photographs(Path(folder) / "photos", given.images, given.pixels)
        project = Path(folder) / "project"
        begun = time.monotonic()
        new = [*COMMAND, "new", str(project), "--images", f"{folder}/photos", "--classes", "a,b"]
        subprocess.run(new, check=True, stdout=subprocess.DEVNULL)
        print(f"project new with {given.images} images: {time.monotonic() - begun:.1f} s")
        copies = [shutil.copytree(project, f"{project}-{i}") for i in range(given.repeat)]
        seconds = [first_items(Path(copy)) for copy in copies]
        measured = ("serve to the first item", "serve to the whole first round", "CPU time until then")
        for what, values in zip(measured, zip(*seconds, strict=True), strict=True):
            print(f"{what}: {', '.join(f'{value:.1f}' for value in values)} s")


if __name__ == "__main__":
    main()

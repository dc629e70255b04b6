"""How soon people can label: seconds from `accuacl project serve` to the first item, and images embedded per second.

    python benchmarks/first_item.py --images 300
    python benchmarks/first_item.py --images 50000 --embed 0

Makes random photographs (224 pixels, JPEG) and a project in a temporary folder, starts the server as users do, asks it
for the first example over HTTP, and stops it. Then the images are embedded as the server does it in the background,
and the rate is compared with a bare forward pass of the same network over images that are already in memory, with the
same number of threads as there are cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

COMMAND = [sys.executable, "-c", "from accuacl.cli import main; main()", "project"]


def photographs(folder: Path, count: int) -> None:
    """Smooth random images, a hundred different ones under many names."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(count):
        path = folder / f"{i:06}.jpg"
        if i < 100:
            small = Image.fromarray(rng.integers(0, 256, (14, 14, 3), np.uint8))
            small.resize((224, 224), Image.Resampling.BICUBIC).save(path, quality=90)
        else:
            os.link(folder / f"{i % 100:06}.jpg", path)


def first_item(project: Path) -> float:
    """Seconds from the start of the process to the first example."""
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
            while client.post("/api/next", json={}).raise_for_status().json()["pick"] is None:
                time.sleep(0.02)
            return time.monotonic() - begun
    finally:
        server.kill()
        server.wait()


def embedding_rate(project: Path, count: int) -> tuple[float, float]:
    """Images per second: as a project embeds them, and in a bare forward pass."""
    import torch

    from accuacl.base.files import cores
    from accuacl.labeling.project import Project, backbones, inputs
    from accuacl.labeling.project.ahead import in_order

    torch.set_num_threads(1)
    with Project.open(project) as opened:
        settings, task = opened.settings, opened.tasks.all()[0]
        encode = inputs.encoder(opened.tasks, task, settings)
        batches = [slice(start, min(start + inputs.BATCH, count)) for start in range(0, count, inputs.BATCH)]
        encode(batches[0])
        begun = time.monotonic()
        for _ in in_order(encode, batches, cores(), 1):
            pass
        ours = count / (time.monotonic() - begun)
        net = backbones.load(settings).embed.eval()
        x = torch.rand(inputs.BATCH, 3, settings.side, settings.side)

        @torch.inference_mode()
        def forward(_: slice) -> None:
            net(x)

        begun = time.monotonic()
        with ThreadPoolExecutor(cores(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            list(pool.map(forward, batches))
        return ours, count / (time.monotonic() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--embed", type=int, default=512, help="how many images to embed; 0: none")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photographs(Path(folder) / "photos", given.images)
        project = Path(folder) / "project"
        begun = time.monotonic()
        new = [*COMMAND, "new", str(project), "--images", f"{folder}/photos", "--classes", "a,b"]
        subprocess.run(new, check=True, stdout=subprocess.DEVNULL)
        print(f"project new with {given.images} images: {time.monotonic() - begun:.1f} s")
        copies = [shutil.copytree(project, f"{project}-{i}") for i in range(given.repeat)]
        seconds = [first_item(Path(copy)) for copy in copies]
        print(f"serve to the first item: {', '.join(f'{s:.1f}' for s in seconds)} s")
        if given.embed:
            ours, bare = embedding_rate(project, min(given.embed, given.images))
            print(f"embedded: {ours:.1f} images/s; bare forward pass: {bare:.1f} images/s ({100 * ours / bare:.0f} %)")


if __name__ == "__main__":
    main()

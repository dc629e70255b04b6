"""A project of 50,000 images and one of 50,000 texts: how long people wait, and how much memory it takes.

    python benchmarks/large_projects.py

Makes 50,000 random images of 32 x 32 pixels and a small network for them (three convolutions, 64 numbers each: what
a large network costs for each image, benchmarks/embedding.py says), and 50,000 random texts (TF-IDF, 256 columns),
makes a project of each in a process of its own, and lets a scripted person label two rounds of 50. Prints the seconds
from the start of the work to the first example, the rate at which the pool is embedded, the seconds from the last
label of a round to the next batch, and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from pathlib import Path

import numpy as np
from first_item import photographs

from accuacl.base.machine import one_heap
from accuacl.base.progress import Progress, ignore
from accuacl.labeling.project import Project, make, read_images, read_texts

NETWORK = """
from torch import nn
def build():
    layers = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 2))
"""


def made(kind: str, folder: Path, count: int) -> Project:
    """A new project with its data."""
    if kind == "images":
        photographs(folder / "photos", count, pixels=32)
        (folder / "network.py").write_text(NETWORK)
        own = {"model": f"{folder}/network.py:build", "image_size": 32}
    else:
        rng = np.random.default_rng(0)
        words = np.array([f"word{i}" for i in range(5000)])
        texts = (" ".join(row) for row in words[rng.zipf(1.3, (count, 12)) % 5000])
        (folder / "t.csv").write_text("text\n" + "\n".join(f"{text} {i}" for i, text in enumerate(texts)) + "\n")
        own = {"model": "none", "text_features": 256}
    begun = time.monotonic()
    project = Project.create(folder / "p", make({"kind": kind, "per_round": 50, "rounds": 3, **own}), ["a", "b"])
    project.store.add_person("Ada")
    project.add(read_images(folder / "photos", ignore) if kind == "images" else read_texts(folder / "t.csv", "text"))
    print(f"made in {time.monotonic() - begun:.1f} s", flush=True)
    return project


def label_all(project: Project) -> None:
    """Label all that can be labelled now."""
    (ada,) = project.store.people()
    while (pick := project.store.lease(ada)) is not None:
        project.store.label(ada, pick.item, pick.item % 2, uuid.uuid4().hex)


def measure(kind: str, folder: Path, count: int) -> None:
    one_heap()
    warnings.simplefilter("ignore")
    with made(kind, folder, count) as project:
        preparing: list[tuple[float, float]] = []

        def on_progress(progress: Progress) -> None:
            if progress.stage == "preparing":
                preparing.append((time.monotonic(), progress.done))

        begun = time.monotonic()
        work = threading.Thread(target=project.advance, args=(on_progress,))
        work.start()
        while project.store.status() is None:
            time.sleep(0.005)
        print(f"first example after {time.monotonic() - begun:.2f} s")
        work.join()
        (start, _), (end, done) = preparing[0], preparing[-1]
        print(f"embedded: {done / (end - start):.0f} {kind}/s")
        print(f"the whole first round after {time.monotonic() - begun:.1f} s", flush=True)
        for number in (1, 2):
            label_all(project)
            begun = time.monotonic()
            project.advance()
            print(f"from the last label of round {number} to the next batch: {time.monotonic() - begun:.1f} s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory: {memory:.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--kind", choices=("images", "texts"), help="one of the two, in this process")
    given = parser.parse_args()
    if given.kind:
        with tempfile.TemporaryDirectory() as folder:
            measure(given.kind, Path(folder), given.count)
        return
    for kind in ("images", "texts"):
        print(f"{given.count} {kind}, {os.cpu_count()} cores", flush=True)
        subprocess.run([sys.executable, __file__, "--kind", kind, "--count", str(given.count)], check=True)


if __name__ == "__main__":
    main()

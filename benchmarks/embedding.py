"""How fast a project embeds images, beside a bare forward pass of the same network on the same cores.

    python benchmarks/embedding.py

Makes random photographs (JPEG) and a project. It embeds them as a project does, from files to rows, on all cores; the
bare pass has one batch in memory and does nothing but run the network, on as many threads. The two take turns, so that
other work on the machine slows both down, and the ratio of their times is that of all turns together. For both the C
library keeps freed memory, as it does for a project.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch
from first_item import photographs

from accuacl.base.machine import cores, memory_kept, one_heap
from accuacl.base.progress import ignore
from accuacl.base.threads import ordered_thread_map
from accuacl.labeling.project import Project, encoders, make, read_images, task_inputs as inputs


def turn(project: Project, batches: list[slice], encode: Callable[[slice], object]) -> float:
    """Seconds in which a project embeds the batches."""
    begun = time.monotonic()
    for _ in ordered_thread_map(encode, batches, cores(), partial(torch.set_num_threads, project.settings.threads)):
        pass
    return time.monotonic() - begun


def bare_turn(project: Project, batches: list[slice], net: torch.nn.Module) -> float:
    """Seconds of as many forward passes."""
    x = torch.rand(inputs.BATCH, 3, project.settings.side, project.settings.side)

    @torch.inference_mode()
    def forward(_: slice) -> None:
        net(x)

    begun = time.monotonic()
    with ThreadPoolExecutor(cores(), initializer=torch.set_num_threads, initargs=(project.settings.threads,)) as pool:
        list(pool.map(forward, batches))
    return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=128, help="in each turn")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--pixels", type=int, default=224, help="the side of the photographs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    one_heap()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        photographs(Path(folder) / "photos", given.images, given.pixels)
        with Project.create(Path(folder) / "project", make({"kind": "images"})) as project:
            project.add(read_images(Path(folder) / "photos", ignore))
            encode = inputs.encoder(project.tasks, project.tasks.all()[0], project.settings)
            net = encoders.load_backbone(project.settings).embed.eval()
            step = inputs.BATCH
            batches = [slice(start, min(start + step, given.images)) for start in range(0, given.images, step)]
            turn(project, batches[:1], encode)
            bare_turn(project, batches[:1], net)
            ours, bare = 0.0, 0.0
            with memory_kept():
                for _ in range(given.turns):
                    ours += turn(project, batches, encode)
                    bare += bare_turn(project, batches, net)
            count = given.turns * given.images
            print(f"{project.settings.model}, {cores()} cores, images of {given.pixels} x {given.pixels} pixels")
    print(f"embedded: {count / ours:.1f} images/s; bare forward pass: {count / bare:.1f} images/s; {bare / ours:.0%}")


if __name__ == "__main__":
    main()

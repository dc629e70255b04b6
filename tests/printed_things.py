"""What the pages assume that their reader has: folders of images, data sets, a model. Each by its name in a page."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from accuacl.pools import write_pool
from web_project import picture

Session = dict[str, Any]


def photos(folder: Path, session: Session, name: str = "photos", count: int = 12) -> None:
    """Roses are red, tulips are blue; the name of a file says which."""
    (folder / name).mkdir()
    for i in range(count):
        picture(i).resize((64, 64)).save(folder / name / f"{'tulip' if i % 2 else 'rose'}-{i:03}.png")


def new_photos(folder: Path, session: Session) -> None:
    photos(folder, session, "new-photos", 6)


def memory(folder: Path, session: Session) -> None:
    """The features of a replay buffer, by the model of the project with the photos."""
    rng = np.random.default_rng(1)
    ids, h, p = np.arange(20), rng.normal(size=(20, 1280)), rng.dirichlet(np.ones(2), 20)
    write_pool(folder / "memory.parquet", ids, h.astype(np.float32), p.astype(np.float32))


MODEL = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 4))
loader = torch.randn(300, 8, generator=torch.Generator().manual_seed(0)).split(100)
seen = [0, 1, 2]
"""


def model(folder: Path, session: Session) -> None:
    """A network, a loader of unlabelled examples, and the classes seen so far."""
    exec(MODEL, session)


def cifar(folder: Path, name: str, classes: int, each: int) -> None:
    """A look-alike of CIFAR in the layout of Hugging Face: noise, of which the brightness tells the class."""
    rng = np.random.default_rng(0)
    place = folder / name / f"cifar{classes}"
    place.mkdir(parents=True)
    for split, count in (("train", each), ("test", 5)):
        labels = np.repeat(np.arange(classes), count)
        pixels = rng.integers(0, 60, (len(labels), 32, 32, 3)) + labels[:, None, None, None] * (190 // classes)
        images = [{"bytes": _png(image), "path": None} for image in pixels.astype(np.uint8)]
        label = "label" if classes == 10 else "fine_label"
        names = {label: {"names": [f"class {c}" for c in range(classes)], "_type": "ClassLabel"}}
        about = {"huggingface": json.dumps({"info": {"features": names}})}
        table = pa.table({"img": images, label: labels}).replace_schema_metadata(about)
        pq.write_table(table, place / f"{split}-00000-of-00001.parquet")


def folder_of_tasks(folder: Path, session: Session) -> None:
    """Vectors in two tasks, of two classes each."""
    (folder / "FOLDER").mkdir()
    rng = np.random.default_rng(0)
    for task in (1, 2):
        y = np.arange(120) % 2 + 2 * task - 2
        x = (rng.normal(size=(120, 8)) + 2 * y[:, None]).astype(np.float32)
        arrays = {"x_train": x[:100], "y_train": y[:100], "x_test": x[100:], "y_test": y[100:]}
        np.savez(folder / "FOLDER" / f"task-{task}.npz", **arrays)


def sweep(folder: Path, session: Session) -> None:
    (folder / "my.yaml").write_text("benchmark: split-digits\nscale: smoke\nstrategy: [uniform, margin]\ntasks: 2\n")


def _png(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return out.getvalue()


THINGS: dict[str, Callable[[Path, Session], None]] = {
    "photos": photos,
    "new-photos": new_photos,
    "memory.parquet": memory,
    "model": model,
    "DATA": lambda folder, session: cifar(folder, "DATA", 10, 30),
    "DIR": lambda folder, session: cifar(folder, "DIR", 100, 5),
    "FOLDER": folder_of_tasks,
    "my.yaml": sweep,
}

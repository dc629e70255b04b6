"""What runs a project's network: settled by its first images, recorded, and never another one later."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.base.progress import ignore
from accuacl.experiments import models
from accuacl.experiments.data import decode
from accuacl.experiments.networks import runtime as runtimes
from accuacl.experiments.networks.runtime import IN_ORDER
from accuacl.labeling.project import Project, make, read_images
from accuacl.labeling.project.encoders import NETWORK, load_backbone
from accuacl.labeling.project.settings import ProjectSettings
from effort import has_pretrained

pytestmark = pytest.mark.skipif(not has_pretrained(), reason="the extra `label` is not installed")
SMALL = {"kind": "images", "image_size": 48, "per_round": 4, "rounds": 1}


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for i in range(9):
        pixels = rng.integers(0, 256, (6, 6, 3), np.uint8)
        Image.fromarray(pixels).resize((60, 50)).save(tmp_path / "photos" / f"{i}.png")
    (tmp_path / "photos" / "0.png").write_bytes(b"broken")
    return tmp_path / "photos"


def new(photos, directory, **given):
    with Project.create(directory, make(SMALL | given)) as project:
        project.add(read_images(photos, ignore))
    return directory


def embeddings(directory):
    with Project.open(directory) as project:
        project.advance()
        folder = project.tasks.folder_of(0)
        record = folder / NETWORK
        name = json.loads(record.read_text()) if record.exists() else None
        return np.load(folder / "inputs.npy"), name


def by_torch(photos, directory):
    """What torch gives, as projects embedded before there were runtimes."""
    with Project.open(directory) as project:
        backbone = load_backbone(project.settings)
    pixels = np.stack([decode((photos / f"{i}.png").read_bytes(), 48) for i in range(1, 9)])
    frozen = models.Frozen(backbone.embed, backbone.transform.plain)
    return frozen.embed_all(torch.from_numpy(pixels), batch=32).numpy()


def test_all_runtimes_can_be_asked_for():
    annotation = ProjectSettings.model_fields["runtime"].annotation
    assert set(annotation.__args__) == {"auto", *IN_ORDER}


def test_a_new_project_has_the_better_network_and_records_what_runs_it(photos, tmp_path):
    directory = new(photos, tmp_path / "p")
    rows, record = embeddings(directory)
    assert record == {"runtime": runtimes.installed()[0], "network": "efficientnet-lite2", "side": 48}
    assert runtimes.distance(rows, by_torch(photos, directory)) <= runtimes.TOLERANCE.get(record["runtime"], 1e-6)


def test_a_project_of_before_goes_on_with_torch_to_the_bit(photos, tmp_path):
    directory = new(photos, tmp_path / "p", model="efficientnet-lite0")
    written = json.loads((directory / "config.json").read_text())
    del written["runtime"]
    (directory / "config.json").write_text(json.dumps(written))
    rows, record = embeddings(directory)
    assert record is None
    np.testing.assert_array_equal(rows, by_torch(photos, directory))


def test_a_recorded_runtime_stays_even_if_a_faster_one_is_installed(photos, tmp_path, monkeypatch):
    directory = new(photos, tmp_path / "p")
    monkeypatch.setattr(runtimes, "installed", lambda: ["torch"])
    first, record = embeddings(directory)
    assert record["runtime"] == "torch"
    monkeypatch.undo()
    for name in ("inputs.json", "inputs.npy"):
        (directory / "tasks" / "000" / name).unlink()
    (directory / "journal.sqlite").unlink()
    again, record = embeddings(directory)
    assert record["runtime"] == "torch"
    np.testing.assert_array_equal(again, first)


def test_a_recorded_runtime_that_is_not_installed_is_named(photos, tmp_path, monkeypatch):
    directory = new(photos, tmp_path / "p", runtime="onnxruntime")
    folder = directory / "tasks" / "000"
    (folder / NETWORK).write_text(json.dumps({"runtime": "onnxruntime"}))
    monkeypatch.setattr(runtimes, "find_spec", lambda name: None)
    with Project.open(directory) as project, pytest.raises(InputError, match="onnxruntime, which is not installed"):
        project.advance()


def test_a_users_network_that_cannot_be_exported_is_said_so_when_the_project_is_made(photos, tmp_path):
    (tmp_path / "own.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Odd(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(4, 2)\n"
        "    def forward(self, x):\n        return self.head(torch.linalg.eigvals(x[:, 0, :4, :4]).real)\n"
        "def build(): return Odd()\n"
    )
    with pytest.warns(UserWarning, match="torch runs this network, as it cannot be exported"):
        directory = new(photos, tmp_path / "p", model=f"{tmp_path / 'own.py'}:build")
    with pytest.warns(UserWarning, match="torch runs this network, as it cannot be exported"):
        rows, record = embeddings(directory)
    assert record["runtime"] == "torch"
    assert rows.shape == (8, 4)

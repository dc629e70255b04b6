"""`embed` with the model of a labelling project: what it gives is what the project's own strategy chooses by."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accuacl.base.progress import ignore
from accuacl.cli import main
from accuacl.experiments import Journal
from accuacl.labeling.project import Project, make, read_images, read_vectors
from accuacl.labeling.project.people_steps import PeopleSteps
from effort import has_pretrained
from scripted import answer, blobs, finish, new_project, records, texts_project

pytestmark = pytest.mark.filterwarnings("ignore:the model learns from scratch")
OWN = """
import torch
from torch import nn

def vectors():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))

def images():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 7))
"""


@pytest.fixture
def embed(monkeypatch, capsys, tmp_path):
    """The command, in `tmp_path`; (exit code, what it wrote)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "own.py").write_text(OWN)

    def run(data, *more):
        arguments = ["embed", "--data", data, "--run", "p", "--out", "pool", "--device", "cpu", *more]
        monkeypatch.setattr(sys, "argv", ["accuacl", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return end.value.code or 0, (said.out + said.err).strip()

    return run


def pool(folder):
    whole = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet")))
    h, p = (np.array(whole.column(name).to_pylist()) for name in ("embedding", "probability"))
    return whole.column("id").to_pylist(), h, p


def by_itself(project, ids):
    """What the project computes for its own items."""
    with Journal(project.directory, project.settings, {}) as journal:
        steps = PeopleSteps(project, journal)
        for task in steps.tasks:
            steps.pool_of(task)
        trained = records(project, "*/train")
        handle = trained[max(trained)]
        return steps.networks.features(steps.networks.model(handle), np.array(ids), np.array(handle["seen"]))


def same(folder, expected, tolerance=1e-5):
    _, h, p = pool(folder)
    np.testing.assert_allclose(h, expected.embeddings, atol=tolerance)
    np.testing.assert_allclose(p, expected.probabilities, atol=tolerance)


@pytest.mark.parametrize(
    "given",
    [{}, {"head": "mlp", "width": 9}, {"model": "own.py:vectors"}, {"model": "own.py:vectors", "finetune": True}],
    ids=str,
)
def test_vectors(embed, tmp_path, given):
    with new_project(tmp_path / "p", 2, **given) as project:
        finish(project)
        expected = by_itself(project, range(60))
    np.save("x.npy", blobs(0)[0].vectors)
    code, said = embed("x.npy", "--shard-rows", 25)
    assert code == 0, said
    assert "60 rows of 4 classes" in said
    same(tmp_path / "pool", expected)
    pq.write_table(pa.table({"id": blobs(0)[0].names, "embedding": blobs(0)[0].vectors.tolist()}), "x.parquet")
    assert embed("x.parquet", "--out", "other")[0] == 0
    same(tmp_path / "other", expected)
    assert pool(tmp_path / "other")[0] == blobs(0)[0].names
    pq.write_table(pa.table({"id": blobs(0)[0].names, "features": blobs(0)[0].vectors.tolist()}), "x.parquet")
    assert embed("x.parquet", "--out", "another")[0] == 0
    same(tmp_path / "another", expected)


def test_a_table_with_a_column_for_each_number(embed, tmp_path):
    """As `project new --vectors` takes it."""
    source = blobs(0)[0]
    columns = {"id": source.names} | {f"x{i}": source.vectors[:, i] for i in range(6)}
    columns |= {"x2": (source.vectors[:, 2] * 10).astype(int), "note": ["a"] * 60}
    pq.write_table(pa.table(columns), "x.parquet", row_group_size=7)
    with Project.create(tmp_path / "p", make({"kind": "vectors", "per_round": 8, "rounds": 1, "epochs": 2})) as project:
        project.store.add_person("Ada")
        project.add(read_vectors(tmp_path / "x.parquet"))
        finish(project)
        expected = by_itself(project, range(60))
    code, said = embed("x.parquet", "--shard-rows", 25)
    assert code == 0, said
    assert pool(tmp_path / "pool")[0] == source.names
    same(tmp_path / "pool", expected)
    pq.write_table(pa.table(dict(reversed(columns.items())) | {"more": range(60)}), "x.parquet")
    assert embed("x.parquet", "--out", "turned")[0] == 0
    same(tmp_path / "turned", expected)
    pq.write_table(pa.table({"id": source.names, "y": range(60)}), "x.parquet")
    assert embed("x.parquet", "--out", "other")[1].startswith("accuacl: x.parquet has no column of numbers x0, x1")
    columns["x4"] = [None if i == 23 else 1.0 for i in range(60)]
    pq.write_table(pa.table(columns), "x.parquet", row_group_size=7)
    says = "accuacl: x.parquet, row group 3, row 23 has no x4; fill it in or drop the row."
    assert embed("x.parquet", "--out", "other") == (2, says)


PRETRAINED = pytest.mark.skipif(not has_pretrained(), reason="the extra `label` is not installed")
MODELS = [
    {"model": "conv4", "image_size": 32},
    {"model": "own.py:images", "image_size": 16},
    {"model": "own.py:images", "image_size": 16, "finetune": True},
    pytest.param({"model": "efficientnet-lite0", "image_size": 64}, marks=PRETRAINED),
]


@pytest.mark.parametrize("given", MODELS, ids=str)
def test_images(embed, tmp_path, given):
    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(10):
        noise = np.random.default_rng(i).integers(0, 60, (40, 52, 3)) + (190 if i % 2 else 0)
        Image.fromarray(noise.astype(np.uint8)).save(photos / f"{i}.png")
    small = {"kind": "images", "per_round": 4, "rounds": 1, "epochs": 2, "holdout": 0.25}
    with Project.create(tmp_path / "p", make(small | given)) as project:
        project.store.add_person("Ada")
        project.add(read_images(photos, ignore))
        while not project.advance().finished:
            answer(project, name=lambda project, item: str(int(project.item(item).name[0]) % 2))
        expected = by_itself(project, range(10))
    code, said = embed("photos", "--shard-rows", 4)
    assert code == 0, said
    assert pool(tmp_path / "pool")[0] == [f"{i}.png" for i in range(10)]
    same(tmp_path / "pool", expected, 2e-3)
    encoded = [{"bytes": (photos / f"{i}.png").read_bytes(), "path": None} for i in range(10)]
    pq.write_table(pa.table({"image": encoded}), "x.parquet")
    assert embed("x.parquet", "--out", "other")[0] == 0
    same(tmp_path / "other", expected, 2e-3)
    np.save("x.npy", np.ones((3, 5), np.float32))
    code, said = embed("x.npy", "--out", "third")
    assert (code, said.splitlines()) == (2, [said])
    assert said.startswith("accuacl: the model does not take inputs of shape (5,): ")


def test_texts(embed, tmp_path):
    with texts_project(tmp_path) as project:
        expected = by_itself(project, range(20))
    code, said = embed("t.csv", "--shard-rows", 7)
    assert code == 0, said
    assert pool(tmp_path / "pool")[0] == [f"k{i}" for i in range(20)]
    same(tmp_path / "pool", expected)
    assert embed("t.csv", "--shard-rows", 7, "--column", "name")[1].endswith("give the one with texts as --column.")
    says = "accuacl: p is not a file; this project labels texts, so give a .csv file or JSON lines."
    assert embed("p", "--out", "other") == (2, says)


def test_it_goes_on_with_the_same_model_only(embed, tmp_path):
    np.save("x.npy", blobs(0)[0].vectors)
    with new_project(tmp_path / "p") as project:
        project.advance()
        says = "accuacl: the project in p has learned nothing yet; label a round first."
        assert embed("x.npy") == (2, says)
        answer(project)
        project.advance()
        assert embed("x.npy", "--shard-rows", 20)[0] == 0
        whole = {file.name: file.read_bytes() for file in (tmp_path / "pool").glob("*.parquet")}
        (tmp_path / "pool" / "000001.parquet").unlink()
        times = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "pool").glob("*.parquet")}
        assert embed("x.npy", "--shard-rows", 20)[0] == 0
        assert {file.name: file.read_bytes() for file in (tmp_path / "pool").glob("*.parquet")} == whole
        assert {name: (tmp_path / "pool" / name).stat().st_mtime_ns for name in times} == times
        finish(project)
    code, said = embed("x.npy", "--shard-rows", 20)
    assert (code, "pool was begun with other model; give another --out" in said) == (2, True)


@pytest.mark.parametrize("width", [1, 5])
def test_vectors_of_another_width(embed, tmp_path, width):
    with new_project(tmp_path / "p") as project:
        finish(project)
    np.save("x.npy", np.ones((4, width), np.float32))
    says = f"accuacl: the model does not take inputs of shape ({width},): 6 numbers each were expected."
    assert embed("x.npy") == (2, says)
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (6, 6)).save(tmp_path / "photos" / "a.png")
    code, said = embed("photos", "--out", "other")
    assert (code, said.splitlines()) == (2, [said])
    assert "does not take inputs of shape (6, 6, 3): " in said

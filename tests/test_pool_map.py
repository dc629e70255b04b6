"""The map of the pool: principal components, of a bounded number of items, each in its place."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl.base.progress import ignore
from accuacl.labeling.project import NewItems, Project, make, pool_map
from accuacl.labeling.project.erasing import erase
from scripted import new_project, texts_project
from web_project import image_project


@pytest.fixture
def project(tmp_path):
    with new_project(tmp_path / "p", 2) as project:
        project.advance()
        yield project


def test_places_are_principal_components(project):
    items, places, total = pool_map.PoolMap(project.tasks, project.settings).shown([])
    assert len(items) == total == 60  # the second task has not been prepared
    rows = np.load(project.tasks.folder_of(0) / "inputs.npy")[items].astype(np.float64)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    _, _, directions = np.linalg.svd(z, full_matrices=False)
    for axis in range(2):
        true = z @ directions[axis]
        low, high = np.percentile(true, pool_map.INSIDE)
        expected = np.clip((true - low) / (high - low), 0, 1)
        same, mirrored = (np.abs(places[:, axis] - one).max() for one in (expected, 1 - expected))
        assert min(same, mirrored) < 1e-3


def test_the_first_are_those_that_are_asked_for_and_there_are_never_too_many(project, monkeypatch):
    monkeypatch.setattr(pool_map, "MOST", 10)
    chart = pool_map.PoolMap(project.tasks, project.settings)
    items, places, total = chart.shown([7, 3, 7, 10**9, -1])
    assert items[:2].tolist() == [7, 3]
    assert (len(items), len(set(items.tolist())), total, places.shape) == (10, 10, 60, (10, 2))
    assert chart.shown(range(60))[0].tolist() == list(range(10))
    again = pool_map.PoolMap(project.tasks, project.settings).shown([])
    assert np.array_equal(again[0], chart.shown([])[0])
    assert np.array_equal(again[1], chart.shown([])[1])


def test_axes_are_computed_once_until_there_are_other_items(project, monkeypatch):
    fits = []
    fit = pool_map.PoolMap._fit
    monkeypatch.setattr(pool_map.PoolMap, "_fit", lambda self, chosen: fits.append(len(chosen)) or fit(self, chosen))
    chart = pool_map.PoolMap(project.tasks, project.settings)
    for _ in range(3):
        chart.shown([])
    assert fits == [60]
    erase(project.tasks, project.tasks.all()[0], [4, 5])
    items, _, total = chart.shown([4, 6])
    assert (fits, total, items[0]) == ([60, 58], 58, 6)
    assert not {4, 5} & set(items.tolist())


def test_nothing_one_and_the_same(tmp_path):
    with new_project(tmp_path / "nothing", 0) as project:
        assert pool_map.PoolMap(project.tasks, project.settings).shown([1])[0].tolist() == []
    with Project.create(tmp_path / "one", make({"kind": "vectors"})) as project:
        for count in (1, 2, 5):
            same = np.ones((count, 3), np.float32)
            project.add(NewItems("vectors", f"{count}", [f"{count}-{i}" for i in range(count)], vectors=same))
        project.store.add_person("Ada")
        project.advance()
        items, places, _ = pool_map.PoolMap(project.tasks, project.settings).shown([])
        assert len(items) == len(places) >= 1
        assert np.isfinite(places).all()


def test_texts_and_pixels_have_a_map_too(tmp_path):
    with texts_project(tmp_path) as project:
        assert len(np.unique(pool_map.PoolMap(project.tasks, project.settings).shown([])[1], axis=0)) > 5
    with image_project(tmp_path / "images") as project:
        project.advance(ignore)
        _, places, total = pool_map.PoolMap(project.tasks, project.settings).shown([])
        assert total == 40
        assert len(np.unique(places, axis=0)) > 30

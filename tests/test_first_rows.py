"""A large pool of images: what the first round looks at is embedded first, and the rest while people label."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from accuacl.base.progress import ignore
from accuacl.experiments import read_steps
from accuacl.labeling.project import Project, make, people_steps, read_images, rounds, task_inputs
from scripted import answer

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
OWN = """
from torch import nn

def build():
    return nn.Sequential(nn.Conv2d(3, 6, 5, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2))
"""
COUNT, SAMPLE, ROUND = 90, 40, 5


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    monkeypatch.setattr(rounds, "SAMPLED", 1)


@pytest.fixture
def photos(tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "photos"
    folder.mkdir()
    for i in range(COUNT):
        Image.fromarray(rng.integers(0, 256, (5, 5, 3), np.uint8)).resize((20, 20)).save(folder / f"{i:03}.png")
    return folder


@pytest.fixture
def new(tmp_path, photos):
    (tmp_path / "own.py").write_text(OWN)

    def new(name, **given):
        settings = {"kind": "images", "image_size": 16, "per_round": ROUND, "rounds": 2, "sample": SAMPLE}
        settings |= {"model": f"{tmp_path / 'own.py'}:build", "runtime": "onnxruntime", "seed": 3}
        project = Project.create(tmp_path / name, make(settings | given), classes=["a", "b"])
        project.store.add_person("Ada")
        project.add(read_images(photos, ignore))
        return project

    return new


def picks(project):
    return [pick.item for pick in project.store.picks(0, 0)]


def rows(project):
    return np.load(project.tasks.folder_of(0) / "inputs.npy")


def test_the_first_round_is_whole_before_the_rest_is_embedded(new):
    """After 40 images all five picks are there, and people may answer, while the other fifty are embedded."""
    with new("p") as project:
        seen = []

        def watch(progress):
            if progress.stage == "preparing":
                seen.append((progress.done, progress.total, len(picks(project)), project.chosen(0, 0)))

        state = project.advance(watch)
        first = [each for each in seen if each[1] == SAMPLE]
        rest = [each for each in seen if each[1] == COUNT]
        assert first[-1][0] == SAMPLE
        assert not any(chosen for *_, chosen in first)
        assert rest
        assert all((count, chosen) == (ROUND, True) for _, _, count, chosen in rest)
        assert state.waiting == "labels"
        assert rows(project).shape == (COUNT, 6)
        assert not (project.tasks.folder_of(0) / task_inputs.PARTS).exists()
        (query,) = read_steps(project.journal, "query")
        assert (query.result["sample"], query.result["pool"]) == (SAMPLE, COUNT)


def test_the_sample_is_the_one_that_all_rows_would_give(new, photos):
    """Images that cannot be read, in the sample or not, are passed over as if all had been looked at before."""
    for i in (3, 8, 21, 55, 70, 89):
        (photos / f"{i:03}.png").write_bytes((photos / f"{i:03}.png").read_bytes()[:-30])
    with new("p") as project:
        project.advance()
        made = json.loads((project.tasks.folder_of(0) / "inputs.json").read_text())
        state = people_steps.PeopleState(
            people_steps.Task(0, (), project.tasks.all()[0].ids, np.empty(0, np.int64)),
            2,
            np.delete(project.tasks.all()[0].ids, made["bad"]),
        )
        looked_at = rounds.sample_of(state, "coverage", SAMPLE, ROUND, 3).pool
        covering = picks(project)[len(read_steps(project.journal, "query")[0].result["held"]) :]
        assert covering
        assert set(covering) <= set(looked_at.tolist())


def test_rows_and_picks_are_the_same_on_any_number_of_cores(new, monkeypatch):
    made = []
    for workers in (1, 4):
        monkeypatch.setattr(task_inputs, "cores", lambda workers=workers: workers)
        with new(f"p{workers}") as project:
            project.advance()
            made.append((rows(project), picks(project)))
    np.testing.assert_array_equal(made[0][0], made[1][0])
    assert made[0][1] == made[1][1]


def test_rows_are_those_that_are_embedded_in_one_go(new):
    with new("p") as project, new("whole", sample=0) as whole:
        project.advance()
        whole.advance()
        np.testing.assert_array_equal(rows(project), rows(whole))


@pytest.mark.parametrize("after", [1, SAMPLE, COUNT])
def test_killed_at_any_time_it_goes_on_to_the_same_bytes(new, after):
    with new("p") as project:
        project.advance()
        expected = rows(project), picks(project)
    with new("q") as project:

        def dies(progress):
            if progress.stage == "preparing" and (progress.done >= after or progress.total == COUNT):
                raise Killed

        with pytest.raises(Killed):
            project.advance(dies)
        project.advance()
        np.testing.assert_array_equal(rows(project), expected[0])
        assert picks(project) == expected[1]


def test_a_round_that_is_answered_at_once_is_learned_with_all_rows(new, monkeypatch):
    """People may be as fast as they like: the model learns when everything is embedded, from the same rows."""
    with new("p") as project:
        opened = project.store.open_round

        def answered(task, round, *rest):
            opened(task, round, *rest)
            answer(project, name=lambda project, item: "ab"[item % 2])

        monkeypatch.setattr(project.store, "open_round", answered)
        project.advance()
        assert read_steps(project.journal, "train")
        assert rows(project).shape == (COUNT, 6)


@pytest.mark.parametrize("given", [{"runtime": "torch"}, {"sample": 0}, {"sample": COUNT}, {"first_round": "uniform"}])
def test_otherwise_all_are_embedded_before(new, given, monkeypatch):
    monkeypatch.setattr(people_steps, "prepare_first", None)
    with new("p", **given) as project:
        project.advance()
        assert len(picks(project)) == ROUND

"""Images are decoded and embedded on all cores, with the same result as on one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from accuacl.base.threads import ordered_thread_map
from accuacl.labeling.project import Project, make, read_images, task_inputs as inputs
from test_labeling_data import IMAGES, folder_of, quiet

pytestmark = pytest.mark.filterwarnings("ignore:the model learns from scratch")


class Killed(Exception):
    """Instead of kill -9."""


def test_images_are_embedded_the_same_on_any_number_of_cores(tmp_path, monkeypatch):
    photos, made = folder_of(tmp_path / "photos", 23), []
    monkeypatch.setattr(inputs, "PART", 8)
    monkeypatch.setattr(inputs, "BATCH", 3)
    for number in (1, 4):
        monkeypatch.setattr(inputs, "cores", lambda number=number: number)
        with Project.create(tmp_path / f"p{number}", make(IMAGES)) as project:
            project.add(read_images(photos, quiet))
            if number == 4:
                (photos / "006.png").write_bytes(b"")
            reports = []
            found = inputs.prepare(project.tasks, project.tasks.all()[0], project.settings, reports.append)
            assert [report.done for report in reports] == sorted(report.done for report in reports)
            assert reports[-1].done == 23
            made.append((found["bad"], np.load(project.tasks.folder_of(0) / "inputs.npy")))
    assert [bad for bad, _ in made] == [[], [6]]
    assert not made[1][1][6].any()
    np.testing.assert_array_equal(np.delete(made[0][1], 6, 0), np.delete(made[1][1], 6, 0))


def test_work_ahead_is_bounded_and_stops_with_an_error():
    begun = itertools.count()

    def work(number):
        next(begun)
        if number == 3:
            raise Killed
        return number

    results = ordered_thread_map(work, range(1000), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(Killed):
        next(results)
    assert next(begun) < 20

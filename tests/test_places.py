"""Data that are moved: folders that the user moves, and uploads that move with the project."""

from __future__ import annotations

import json
import shutil

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project, Uploads, make, read_images, relocate_data
from commands import accuacl as command
from test_labeling_data import IMAGES, folder_of, quiet

pytestmark = pytest.mark.filterwarnings("ignore:the model learns from scratch")


@pytest.fixture
def project(tmp_path):
    with Project.create(tmp_path / "p", make(IMAGES)) as project:
        for number in (1, 2):
            project.add(read_images(folder_of(tmp_path / "photos" / f"task-{number}", 3, first=3 * number), quiet))
        yield project


def test_one_folder_above_moves_all_of_its_tasks_also_for_whoever_has_the_project_open(project, tmp_path):
    other = Project.open(tmp_path / "p")
    assert other.image_bytes(0)
    (tmp_path / "photos").rename(tmp_path / "pictures")
    with pytest.raises(InputError):
        other.image_bytes(0)
    moved = relocate_data(project.tasks, tmp_path / "photos", tmp_path / "pictures")
    assert [(one.task, one.missing) for one in moved] == [(0, []), (1, [])]
    for opened in (project, other, Project.open(tmp_path / "p")):
        assert opened.image_bytes(5) == (((tmp_path / "pictures" / "task-2" / "008.png").read_bytes()), "image/png")
    again = tmp_path / "again"
    (tmp_path / "pictures" / "task-1").rename(again)
    relocate_data(project.tasks, tmp_path / "pictures" / "task-1", again)
    assert [task.place for task in other.tasks.all()] == [str(again), str(tmp_path / "pictures" / "task-2")]
    assert other.tasks.all()[0].sha256 == project.tasks.all()[0].sha256
    with pytest.raises(InputError, match="has nothing new to label"):
        project.add(read_images(again, quiet))


def test_a_folder_above_that_begins_alike_is_another(project, tmp_path):
    with pytest.raises(InputError, match=r"this project has no data at .*photo; give one of its locations: .*task-1"):
        relocate_data(project.tasks, tmp_path / "photo", tmp_path)


def test_wrong_places_change_nothing(project, tmp_path):
    (tmp_path / "new" / "task-1").mkdir(parents=True)
    with pytest.raises(InputError, match=r"new/task-1 has none of the 3 images of task 1, such as 003\.png"):
        relocate_data(project.tasks, tmp_path / "photos", tmp_path / "new")
    shutil.copy(tmp_path / "photos" / "task-1" / "004.png", tmp_path / "new" / "task-1")
    with pytest.raises(InputError, match=r"there is no folder .*new/task-2 for the images of task 2"):
        relocate_data(project.tasks, tmp_path / "photos", tmp_path / "new")
    assert not (project.tasks.folder / "places.json").exists()
    assert project.tasks.all()[0].place == str(tmp_path / "photos" / "task-1")


def test_the_command_says_what_has_moved_and_what_is_missing(project, tmp_path):
    (tmp_path / "photos").rename(tmp_path / "pictures")
    (tmp_path / "pictures" / "task-1" / "004.png").unlink()
    ended = command("project", "relocate", "p", "photos", "pictures", cwd=tmp_path, width=300)
    assert ended.returncode == 0, ended.stderr
    assert f"task 2: {tmp_path}/pictures/task-2" in ended.stdout
    assert "missing there: 1 images: 004.png" in ended.stdout
    ended = command("project", "relocate", "p", "photos", "nowhere", cwd=tmp_path, width=300)
    assert (ended.returncode, "this project has no data at" in ended.stderr) == (2, True)


def upload(project, photos):
    uploads = Uploads(project)
    number = uploads.begin()
    for path in sorted(photos.iterdir()):
        uploads.take(number, path.name, path.read_bytes())
    return uploads.finish(number)[0]


def test_what_was_uploaded_moves_with_the_project(tmp_path):
    photos = folder_of(tmp_path / "photos", 3)
    with Project.create(tmp_path / "p", make(IMAGES)) as project:
        task = upload(project, photos)
        assert task.place.startswith(str(tmp_path / "p" / "uploads"))
        kept = json.loads((project.tasks.folder_of(0) / "task.json").read_text())
        assert kept["place"].startswith("uploads/")
    (tmp_path / "p").rename(tmp_path / "moved")
    with Project.open(tmp_path / "moved") as project:
        assert project.image_bytes(1)[0] == (photos / "001.png").read_bytes()


def test_a_file_of_texts_is_relocated_too(tmp_path):
    from scripted import texts_project

    with texts_project(tmp_path) as project:
        (tmp_path / "t.csv").rename(tmp_path / "u.csv")
        with pytest.raises(InputError, match=r"there is no file .*nothing\.csv for the texts of task 1"):
            relocate_data(project.tasks, tmp_path / "t.csv", tmp_path / "nothing.csv")
        relocate_data(project.tasks, tmp_path / "t.csv", tmp_path / "u.csv")
        assert project.tasks.all()[0].place == str(tmp_path / "u.csv")

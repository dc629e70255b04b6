"""What a project has of forgotten items besides their vectors: files that were sent, categories, what is left out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from accuacl.base.errors import InputError
from accuacl.base.progress import ignore
from accuacl.labeling.project import Project, TableOptions, make, read_images, read_table, read_texts
from accuacl.labeling.project.erasing import erase, forget_items
from accuacl.labeling.project.exporting import model_card
from accuacl.labeling.project.tasks import FORGOTTEN
from test_labeling_data import IMAGES, folder_of
from test_places import upload
from test_tables import claims

pytestmark = pytest.mark.filterwarnings("ignore:the model learns from scratch")
TEXTS = {"kind": "texts", "per_round": 4, "rounds": 1, "model": "none", "text_features": 64, "learner": "ridge"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("how", [erase, forget_items])  # when a task ends, and on request
def test_an_image_that_was_sent_is_deleted(tmp_path, how):
    photos = folder_of(tmp_path / "photos", 4)
    with Project.create(tmp_path / "p", make(IMAGES)) as project:
        sent = upload(project, photos)
        own = project.add(read_images(photos, ignore))
        for _ in range(2):  # done again it changes nothing
            how(project.tasks, sent, [1, 3])
            how(project.tasks, own, [0])
        assert names(tmp_path / "p" / "uploads" / sent.place.rpartition("/")[2]) == ["000.png", "002.png"]
        assert names(photos) == ["000.png", "001.png", "002.png", "003.png"]  # the user's own


def test_a_file_of_texts_that_was_sent_is_deleted(tmp_path):
    texts = tmp_path / "t"
    texts.mkdir()
    (texts / "t.csv").write_text("text\n" + "".join(f"text number {i}\n" for i in range(9)))
    with Project.create(tmp_path / "p", make(TEXTS)) as project:
        task = upload(project, texts)
        project.advance()
        project.forget(["4"])
        assert list((tmp_path / "p" / "uploads").rglob("*.csv")) == []
        assert project.item(5).text == "text number 5"
        assert b"text number 4" not in (project.tasks.folder_of(task.index) / "items.parquet").read_bytes()


def test_categories_that_nobody_has_any_more_are_removed_and_vectors_stay(tmp_path):
    """Two rows have a village and a word for a missing amount each, the first shares its village with a third."""
    path = claims(tmp_path)
    rows = path.read_text().splitlines()
    for row, village, amount in ((3, "Ham", "lost"), (5, "Nym", "unknown"), (6, "Ham", "17")):
        cells = rows[1 + row].split(",")
        rows[1 + row] = ",".join([cells[0], amount, village, *cells[3:]])
    path.write_text("\n".join(rows) + "\n")
    options = TableOptions("number", "verdict", ("currency",))
    settings = make({"kind": "tables", "learner": "ridge", "per_round": 8, "rounds": 1})
    Project.begin(tmp_path / "p", settings, ["fine", "fraud"], read_table(path, options))
    with Project.open(tmp_path / "p") as project:
        project.store.add_person("Ada")
        project.advance()
        schema, shown = project.tasks.schema(), project.tasks.rows(0, slice(None))
        project.forget(["c3", "c5"])
        left = (project.tasks.folder_of(0) / "table.json").read_text()
        assert ("Ham" in left, "Nym" in left, "lost" in left, "unknown" in left) == (True, False, False, False)
        others = [row for i, row in enumerate(shown) if i not in (3, 5)]
        assert np.array_equal(project.tasks.schema().encode(others), schema.encode(others))
        project.forget(["c6", "c7"])
        assert "Ham" not in (project.tasks.folder_of(0) / "table.json").read_text()
        assert np.array_equal(project.tasks.schema().encode(others[5:]), schema.encode(others[5:]))
        new = [{**others[0], "where": where} for where in ("Nym", "Elsewhere", " 2")]
        assert project.tasks.schema().encode(new).shape == schema.encode(new).shape
        assert "| 1 | tables | 36 |" in model_card(project)


def test_what_was_forgotten_is_not_taken_in_again(tmp_path):
    photos = folder_of(tmp_path / "photos", 4)
    with Project.create(tmp_path / "p", make(IMAGES)) as project:
        forget_items(project.tasks, project.add(read_images(photos, ignore)), [2])
        with pytest.raises(InputError, match="nothing new to label; 1 were forgotten, and are not added again"):
            project.add(read_images(photos, ignore))
        (photos / "000.png").rename(photos / "new.png")
        with pytest.warns(UserWarning, match="left out, since this project was asked to forget them: 1"):
            assert project.add(read_images(photos, ignore)).count == 1
        known = json.loads((project.tasks.folder / FORGOTTEN).read_text())
        assert (len(known["hashes"]), "002" in known["hashes"][0]) == (1, False)


def test_a_forgotten_text_is_not_taken_in_again(tmp_path):
    (tmp_path / "t.csv").write_text("text\n" + "".join(f"text number {i}\n" for i in range(9)))
    with Project.create(tmp_path / "p", make(TEXTS)) as project:
        project.add(read_texts(tmp_path / "t.csv", "text"))
        project.forget(["4"])
        (tmp_path / "t.csv").write_text((tmp_path / "t.csv").read_text() + "another\n")
        with pytest.warns(UserWarning, match="asked to forget them: 1"):
            assert project.add(read_texts(tmp_path / "t.csv", "text")).count == 1
        assert project.item(9).text == "another"

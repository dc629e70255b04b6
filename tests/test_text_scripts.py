"""Words of texts in scripts that have no spaces between them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from accuacl.labeling.project import Project, export, loader, make, read_texts
from accuacl.labeling.project.loader import count_words, words_of
from scripted import answer

CHINESE = [f"{verb}{thing}" for verb in ("打开", "关上") for thing in ("门", "窗户", "盒子", "商店", "水龙头", "箱子")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Close the door_2!", ["close", "the", "door_2"]),
        ("北京天气", ["北", "京", "天", "气", "北京", "京天", "天气"]),
        ("USBが壊れた", ["usb", "が", "壊", "れ", "た", "が壊", "壊れ", "れた"]),
        ("ที่", ["ท", "ี", "่", "ที", "ี่"]),  # vowels and tones are characters of their own
        ("naïve Straße 한국 여행 привет", ["naïve", "straße", "한국", "여행", "привет"]),
        ("。、!", []),
        ("𠀀𠀁", ["𠀀", "𠀁", "𠀀𠀁"]),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


def test_where_there_are_spaces_nothing_changes():
    texts = ["Where is Mr. O'Neil's car?", "voilà 3.5 km/h", "где вокзал", "", "한국 여행"]
    by_spaces, by_scripts = (count_words(texts, 256, words).toarray() for words in ("spaces", "scripts"))
    np.testing.assert_array_equal(by_spaces, by_scripts)


def project_of(folder, **more):
    (folder / "t.csv").write_text("id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(CHINESE)), "utf-8")
    small = {"kind": "texts", "model": "none", "per_round": 8, "rounds": 1, "text_features": 512}
    Project.begin(folder / "p", make(small | more), [], read_texts(folder / "t.csv", "text"))
    return folder / "p"


def rows(directory):
    with Project.open(directory) as project:
        project.advance()
        return np.load(project.tasks.folder_of(0) / "inputs.npy")


def test_texts_that_share_characters_are_near(tmp_path):
    kernel = (lambda x: x @ x.T)(rows(project_of(tmp_path)))
    assert kernel[:6, :6].mean() > 0.25 + kernel[:6, 6:].mean()


def test_a_project_of_before_goes_on_with_spaces(tmp_path):
    directory = project_of(tmp_path)
    config = json.loads((directory / "config.json").read_text())
    assert config.pop("words") == "scripts"
    (directory / "config.json").write_text(json.dumps(config))
    kernel = (lambda x: x @ x.T)(rows(directory))
    np.testing.assert_allclose(kernel, np.eye(12), atol=1e-6)  # every run of characters was a word of its own


def test_the_exported_model_sees_them_too(tmp_path):
    directory = project_of(tmp_path)
    with Project.open(directory) as project:
        project.store.add_person("Ada")
        while not project.advance().finished:
            answer(project, name=lambda project, item: project.item(item).text[:2])
        export(project, tmp_path / "e", None, "text", lambda progress: None)
    model = loader.load(tmp_path / "e")
    assert model.about["words"] == "scripts"
    assert model.predict(["打开电视", "关上电视"])[0] == ["打开", "关上"]

"""Texts as vectors: trained word vectors beside TF-IDF, TF-IDF alone, a model of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from accuacl.base.errors import InputError
from accuacl.base.progress import ignore
from accuacl.labeling.project import Project, encoders, loader, make, settings
from accuacl.labeling.project.encoders import text_encoder, token_table, word_weights
from accuacl.labeling.project.exporting import export
from accuacl.labeling.project.tables import read_texts
from processes import run_alone
from scripted import finish

TEXTS = [f"{verb} the {what}" for verb in ("open", "close") for what in ["door", "window", "shop", "lid", "box", "tap"]]
OWN = "import numpy as np\n\ndef build():\n    return lambda texts: np.array([[len(t), t.count('o')] for t in texts])\n"

pytestmark = pytest.mark.skipif(settings.word_vector_files() is None, reason="the extra `label` is not installed")


@pytest.fixture(scope="module")
def tokens():
    return loader.TokenVectors(token_table(make({"kind": "texts"})), settings.word_vector_files()[1])


def project_of(folder, **more):
    (folder / "t.csv").write_text("id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS)))
    small = {"kind": "texts", "per_round": 6, "rounds": 2, "epochs": 5, "text_features": 64, "holdout": 0}
    items = read_texts(folder / "t.csv", "text")
    Project.begin(folder / "p", make(small | more), ["open", "close"], items)
    project = Project.open(folder / "p")
    project.store.add_person("Ada")
    return project


def test_a_text_is_the_mean_of_its_tokens_vectors(tokens):
    (table,) = load_file(settings.word_vector_files()[0]).values()
    for text in ("cheap flights to Rome", "Wo ist der Bahnhof?", "駅はどこですか", "naïve café 😀"):
        ids = tokens.tokenizer.encode(text, add_special_tokens=False).ids
        mean = np.mean([table[i].astype(np.float64) for i in ids], axis=0)
        np.testing.assert_allclose(tokens([text])[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_words_that_are_alike_are_near(tokens):
    near, far = tokens(["cheap flights", "inexpensive airfare"]), tokens(["cheap flights", "chocolate cake recipe"])
    assert near[0] @ near[1] > far[0] @ far[1] + 0.2


def test_texts_may_be_empty_or_long_and_do_not_depend_on_their_neighbours(tokens):
    long = "a long story " * 5000  # more tokens than are summed at a time
    rows = tokens(["", long, "a long story"])
    assert not rows[0].any()
    np.testing.assert_allclose(np.linalg.norm(rows[1:], axis=1), 1, atol=1e-6)
    assert rows[1] @ rows[2] > 0.99
    np.testing.assert_array_equal(tokens([long])[0], rows[1])
    assert tokens([]).shape == (0, 256)


def test_a_project_of_texts_sees_word_vectors_beside_tf_idf(tmp_path, tokens):
    with project_of(tmp_path) as project:
        assert project.settings.model == "word-vectors"
        project.advance()
        rows = np.load(project.tasks.folder_of(0) / "inputs.npy")
        tf_idf = loader.word_vectors(TEXTS, word_weights(project.tasks.folder_of(0) / "words.json"))
        np.testing.assert_array_equal(rows, np.hstack([tokens(TEXTS), tf_idf]))


@pytest.mark.parametrize("model", ["word-vectors", "none", "own"])
def test_the_exported_model_predicts_the_same_without_the_package(model, tmp_path):
    if model == "own":
        (tmp_path / "mine.py").write_text(OWN)
        model = f"{tmp_path}/mine.py:build"
    with project_of(tmp_path, model=model) as project:
        finish(project)
        files = export(project, tmp_path / "out", None, "text", ignore)
        encode = text_encoder(project.settings, project.tasks)
    new = ["open a can", "please close it", ""]
    exported = loader.load(tmp_path / "out")
    p = exported.probabilities(new)
    assert p.shape == (3, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    raw = exported.texts(new)
    np.testing.assert_allclose(raw, encode(new), atol=1e-6)
    assert (tmp_path / "out" / "tokenizer.json" in files) == (model == "word-vectors")
    say = f"import model; print(model.load('.').probabilities({new!r}).tolist())"
    said = run_alone(say, cwd=tmp_path / "out", without=("accuacl", "wordllama"))
    assert said.returncode == 0, said.stderr
    np.testing.assert_allclose(json.loads(said.stdout), p, atol=1e-6)


def test_a_model_of_ones_own_embeds_texts(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    with project_of(tmp_path, model=f"{tmp_path}/mine.py:build") as project:
        project.advance()
        rows = np.load(project.tasks.folder_of(0) / "inputs.npy")
    np.testing.assert_array_equal(rows, [[len(text), text.count("o")] for text in TEXTS])


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("3", "returned int; return a function that takes a list of texts"),
        ("lambda texts: np.zeros(len(texts))", r"gave float64 \(12,\) for 12 texts; give one row of numbers each"),
        ("lambda texts: np.zeros((1, 4))", r"gave float64 \(1, 4\) for 12 texts"),
        ("lambda texts: np.full((len(texts), 2), np.nan)", "gave numbers that are not finite"),
    ],
)
def test_a_model_of_ones_own_that_gives_something_else_is_told(made, says, tmp_path):
    (tmp_path / "mine.py").write_text(f"import numpy as np\n\ndef build():\n    return {made}\n")
    with pytest.raises(InputError, match=says), project_of(tmp_path, model=f"{tmp_path}/mine.py:build") as project:
        project.advance()


def test_other_vectors_than_those_a_project_began_with_are_refused(tmp_path, monkeypatch):
    project_of(tmp_path).close()
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"other")
    monkeypatch.setattr(settings, "word_vector_files", lambda: (other, other))
    with (
        Project.open(tmp_path / "p") as project,
        pytest.raises(InputError, match="has changed since this project began"),
    ):
        project.advance()


def test_without_the_extra_words_alone_count_and_it_is_said(tmp_path, monkeypatch):
    (tmp_path / "before").mkdir()
    project_of(tmp_path / "before").close()
    monkeypatch.setattr(settings, "word_vector_files", lambda: None)
    monkeypatch.setattr(encoders, "word_vector_files", lambda: None)
    with pytest.warns(UserWarning, match=r"the extra `label`; "), project_of(tmp_path) as project:
        assert project.settings.model == "none"
    with pytest.raises(InputError, match="needs the extra `label`"):
        make({"kind": "texts", "model": "word-vectors"})
    with (
        Project.open(tmp_path / "before" / "p") as project,
        pytest.raises(InputError, match="encodes texts with the word vectors of wordllama; "),
    ):
        project.advance()

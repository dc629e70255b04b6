"""Models of texts as ONNX files, such as those that sentence-transformers exports."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project, export, loader, make, read_texts
from accuacl.labeling.project.loader import SentenceModel
from scripted import answer

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
tokenizers = pytest.importorskip("tokenizers")
WORDS = ["[UNK]", "open", "close", "the", "door", "window", "shop", "lid", "box", "tap"]
TEXTS = [f"{verb} the {what}" for verb in WORDS[1:3] for what in WORDS[4:]]


class Tokens(nn.Module):
    """A vector for each token, weighted by the mask."""

    def __init__(self, pooled):
        super().__init__()
        self.table, self.pooled = nn.Embedding(len(WORDS), 6), pooled

    def forward(self, input_ids, attention_mask):
        rows = self.table(input_ids) * attention_mask[..., None]
        return rows.sum(dim=1) if self.pooled else rows


@pytest.fixture
def model(tmp_path):
    def write(outputs=("last_hidden_state",), inputs=("input_ids", "attention_mask"), folder=tmp_path):
        torch.manual_seed(0)
        module, file = Tokens("sentence_embedding" in outputs), io.BytesIO()
        example = torch.ones(1, 4, dtype=torch.int64)
        axes = {name: {0: "n", 1: "tokens"} for name in inputs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter's age
            torch.onnx.export(
                module, (example, example), file, dynamo=False, input_names=list(inputs), output_names=list(outputs),
                dynamic_axes=axes,
            )  # fmt: skip
        (folder / "model.onnx").write_bytes(file.getvalue())
        tokenizer = tokenizers.Tokenizer(
            tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
        )
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        tokenizer.enable_padding()
        tokenizer.save(str(folder / "tokenizer.json"))
        return module.table.weight.detach().double().numpy()

    return write


@pytest.mark.parametrize("outputs", [("last_hidden_state",), ("sentence_embedding",)])
def test_a_text_is_the_mean_over_its_tokens(model, tmp_path, outputs):
    table = model(outputs)
    sentences = SentenceModel(tmp_path / "model.onnx", tmp_path / "tokenizer.json")
    texts = ["open the door", "close", "open unheard the the box"]
    expected = [table[[WORDS.index(w) if w in WORDS else 0 for w in text.split()]].mean(axis=0) for text in texts]
    expected = [row / np.linalg.norm(row) for row in expected]
    np.testing.assert_allclose(sentences(texts), expected, atol=1e-6)
    for text in texts:  # whatever else is embedded with it
        np.testing.assert_array_equal(sentences([text])[0], sentences(texts)[texts.index(text)])


def test_a_long_text_is_cut_off(model, tmp_path):
    model()
    sentences = SentenceModel(tmp_path / "model.onnx", tmp_path / "tokenizer.json")
    rows = sentences(["open " * 600, "open " * 512, "open " * 512 + "box " * 100])
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])


def project_of(folder, place):
    (folder / "t.csv").write_text("id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS)))
    settings = make({"kind": "texts", "model": str(place), "per_round": 8, "rounds": 1})
    Project.begin(folder / "p", settings, [], read_texts(folder / "t.csv", "text"))
    return Project.open(folder / "p")


def test_a_project_and_its_export_see_texts_through_it(model, tmp_path):
    model()
    with project_of(tmp_path, tmp_path / "model.onnx") as project:
        project.store.add_person("Ada")
        while not project.advance().finished:
            answer(project, name=lambda project, item: project.item(item).text.split()[0])
        rows = np.load(project.tasks.folder_of(0) / "inputs.npy")
        sentences = SentenceModel(tmp_path / "model.onnx", tmp_path / "tokenizer.json")
        np.testing.assert_array_equal(rows, sentences(TEXTS))
        export(project, tmp_path / "e", tmp_path / "t.csv", "text", lambda progress: None)
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).unlink()  # the export has its own
    alone = loader.load(tmp_path / "e")
    assert alone.predict(["open the window", "close the window"])[0] == ["open", "close"]


def test_a_model_that_has_changed_is_refused(model, tmp_path):
    model()
    with project_of(tmp_path, tmp_path / "model.onnx") as project:
        (tmp_path / "tokenizer.json").write_text((tmp_path / "tokenizer.json").read_text() + " ")
        with pytest.raises(InputError, match=r"model\.onnx or .*tokenizer\.json has changed since this project began"):
            project.advance()


def test_files_that_are_no_model_of_texts(model, tmp_path):
    with pytest.raises(InputError, match=r"model\.onnx cannot be read"):
        project_of(tmp_path, tmp_path / "model.onnx")
    model(inputs=("input_ids", "pixel_values"))
    with pytest.raises(InputError, match=r"model\.onnx cannot be used as a model of texts: it takes pixel_values"):
        project_of(tmp_path, tmp_path / "model.onnx")
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"model\.onnx cannot be used as a model of texts"):
        project_of(tmp_path, tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"tokenizer\.json cannot be read"):
        project_of(tmp_path, tmp_path / "model.onnx")
    model()
    with pytest.raises(InputError, match=r"there is no model .*model\.onnx' for vectors"):
        make({"kind": "vectors", "model": str(tmp_path / "model.onnx")})

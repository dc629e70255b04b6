"""A model that was trained with accuacl, to be used without it: this file, model.json and model.safetensors.

    import model

    flowers = model.load("folder-with-these-files")
    classes, confidences = flowers.predict(["a.jpg", "b.jpg"])   # or texts, vectors, or rows of a table as dictionaries

Or from a shell: python model.py a.jpg b.jpg, for tables new.csv or new.tsv, for vectors new.npy with a row for each.
Needs torch, safetensors, numpy; for images pillow and the package that has the code of the network
(efficientnet-lite-pytorch; your own file lies beside this one; accuacl for conv4); for texts scikit-learn, and
tokenizers where tokenizer.json lies beside this file, onnxruntime where sentences.onnx does.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


def load(folder: str | Path) -> Model:
    """The model in a folder."""
    folder = Path(folder)
    about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return Model(about, safetensors.torch.load_file(folder / "model.safetensors"), folder)


class Model:
    """Ask it for classes; `about` is what model.json says."""

    def __init__(self, about: dict[str, Any], state: dict[str, Tensor], folder: Path) -> None:
        self.about, self.state = about, state
        self.embed = _network(about, _below(state, "network."), folder)
        self.texts = _text_model(about, state, folder) if about["kind"] == "texts" else None
        self.rows = _row_model(folder) if about["kind"] == "tables" else None
        self.files: Any = getattr(_code(folder, "own_model"), about["function"]) if about["kind"] == "files" else None

    @property
    def classes(self) -> list[str]:
        return list(self.about["classes"])

    def predict(self, items: Sequence[Any], batch: int = 32) -> tuple[list[str], NDArray[np.float32]]:
        """The class of each item and the model's confidence in it."""
        p = self.probabilities(items, batch)
        return [self.classes[i] for i in p.argmax(axis=1)], p.max(axis=1)

    def probabilities(self, items: Sequence[Any], batch: int = 32) -> NDArray[np.float32]:
        """Of each class, one row per item."""
        rows = [np.empty((0, len(self.classes)), np.float32)]
        with torch.inference_mode():
            for start in range(0, len(items), batch):
                rows.append(self.forward(self._inputs(items[start : start + batch])).numpy())
        return np.concatenate(rows)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities from inputs: pixels in [0, 1], vectors, or the vectors of texts."""
        if self.about["kind"] == "images":
            mean, std = torch.tensor(self.about["mean"]), torch.tensor(self.about["std"])
            x = (x - mean[:, None, None]) / std[:, None, None]
        if self.embed is not None:
            x = _flat(self.embed(x))
        scale = _below(self.state, "scale.")
        if scale:
            x = ((x - scale["mean"]) / scale["std"]).clip(-self.about["limit"], self.about["limit"]) * scale["each"]
        head = _below(self.state, "head.")
        for layer in ("embed.0", "embed.2"):  # the hidden layers, where there are any
            if f"{layer}.weight" in head:
                x = torch.relu(nn.functional.linear(x, head[f"{layer}.weight"], head[f"{layer}.bias"]))
        if "kernel" in self.about:
            x = kernel_features(self.about["kernel"], x, head["head.support"].float(), head.get("head.reference"))
        p = nn.functional.linear(x, head["head.weight"], head.get("head.bias")).softmax(1)
        return p @ torch.eye(len(self.classes))[self.about["columns"]]  # columns of merged classes are added up

    def _inputs(self, items: Sequence[Any]) -> Tensor:
        if self.about["kind"] == "images":
            pixels = torch.from_numpy(np.stack([_pixels(item, self.about["side"]) for item in items]))
            return pixels.permute(0, 3, 1, 2).float() / 255
        if self.rows is not None:
            return torch.from_numpy(self.rows(list(items)))
        if self.about["kind"] == "files":
            return torch.from_numpy(np.stack([np.asarray(self.files(Path(item)), np.float32) for item in items]))
        if self.texts is not None:
            return torch.from_numpy(np.asarray(self.texts(list(items)), np.float32))
        return torch.from_numpy(np.array(items, np.float32))


def kernel_features(
    terms: Sequence[tuple[str, int, int, float]], x: Tensor, support: Tensor, reference: Tensor | None = None
) -> Tensor:
    """The kernel between rows and support rows: a sum of terms (kernel, first column, last + 1, weight).

    Each is of rows at length 1: the cosine (linear) or exp(-distance^2) (gaussian). reference: rows to whose 10 nearest
    each row moves halfway first.
    """
    total = torch.zeros(1)
    for name, first, end, weight in terms:
        rows, others = _unit_rows(x[:, first:end]), support[:, first:end]
        if reference is not None:
            near = reference[:, first:end].float()
            turn = 1e-12 * torch.arange(len(near), dtype=torch.float64)  # equal ones in their order
            nearest = ((rows @ near.T).double() - turn).topk(min(10, len(near)), dim=1).indices
            moved = rows + _unit_rows(near[nearest].mean(1)) * (rows != 0).any(1, keepdim=True)
            rows = _unit_rows(moved)
        value = (rows @ others.T).clamp(-1.0, 1.0)
        there = (rows != 0).any(1, keepdim=True).float(), (others != 0).any(1)[None, :].float()
        if name == "gaussian":
            value = torch.exp(2 * value - there[0] - there[1])
        total = total + weight * value
    return total


def _unit_rows(rows: Tensor) -> Tensor:
    largest = rows.abs().amax(1, keepdim=True)
    return nn.functional.normalize(rows / torch.where(largest > 0, largest, torch.ones(1)), eps=1e-12)


def _network(about: dict[str, Any], state: dict[str, Tensor], folder: Path) -> Any:
    """What comes before the head, if anything."""
    name = about["network"]
    if name == "none":
        return None
    net: Any
    if name.startswith("efficientnet-lite"):
        from efficientnet_lite_pytorch import EfficientNet

        net = EfficientNet.from_name(name)
    elif name == "own":
        net = _own(about, folder)
    else:
        from accuacl.experiments.models import build

        net = build(name, 1, seed=0, input_shape=(3, about["side"], about["side"])).embed
    if about["layer"]:
        parent, _, child = about["layer"].rpartition(".")
        setattr(net.get_submodule(parent), child, nn.Identity())
    net.load_state_dict({key.removeprefix("module."): value for key, value in state.items()})
    return net.eval()


def _own(about: dict[str, Any], folder: Path) -> Any:
    """What the user's function in the file beside this one makes."""
    return getattr(_code(folder, "own_model"), about["function"])()


def _code(folder: Path, name: str) -> Any:
    """The Python file of that name beside this one, as a module."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    code = sys.modules[name] = importlib.util.module_from_spec(spec)  # before it runs: dataclasses look it up
    spec.loader.exec_module(code)
    return code


def _flat(answer: Any) -> Tensor:
    for name in ("logits", "pooler_output"):
        answer = getattr(answer, name, answer)
    x: Tensor = answer[0] if isinstance(answer, tuple | list) else answer
    return x.mean(dim=(2, 3)) if x.ndim == 4 else x


def _pixels(path: str | Path, size: int) -> NDArray[np.uint8]:
    """The image's centre square at that size, as it was seen in training."""
    from PIL import Image, ImageOps

    with Image.open(path) as opened:
        opened.draft(None, (2 * size, 2 * size))
        image = ImageOps.exif_transpose(opened)
        if image.mode.startswith("I;16"):
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        image = (image.convert("RGBA") if image.mode == "P" else image).convert("RGB")
        if image.size != (size, size):
            image = ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)
        return np.array(image)


def _row_model(folder: Path) -> Any:
    """From rows of a table, as dictionaries, to rows of numbers."""
    code, columns = _code(folder, "table_encoder"), json.loads((folder / "table.json").read_text("utf-8"))["columns"]

    def encode(rows: list[Any]) -> NDArray[np.float32]:
        for row in rows:
            code.check_names(columns, row)
        return np.asarray(code.encode(columns, rows), np.float32)

    return encode


def _text_model(about: dict[str, Any], state: dict[str, Tensor], folder: Path) -> Any:
    """From texts to rows of numbers."""
    if about.get("texts") == "own":
        return _own(about, folder)
    if about.get("texts") == "onnx":
        return SentenceModel(folder / SENTENCES, folder / "tokenizer.json")
    idf, words = state["idf"].double().numpy(), about.get("words", SPACES)
    if about.get("texts") != "word-vectors":
        return lambda texts: word_vectors(texts, idf, words)
    tokens = TokenVectors(state["tokens"].numpy(), folder / "tokenizer.json")
    return lambda texts: np.hstack([tokens(texts), word_vectors(texts, idf, words)])


SENTENCES = "sentences.onnx"  # beside this file, if the model of texts is one
TAKEN = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}  # by inputs of models
LONGEST = 512  # tokens of a text, where tokenizer.json sets no limit


class SentenceModel:
    """A network that embeds texts, as an ONNX file with a tokenizer.json, as sentence-transformers exports them.

    Its output `sentence_embedding` counts, or else the mean of its first output over the tokens. Texts are run one at a
    time, on all cores: a row of length 1 for each, which does not depend on the others.
    """

    def __init__(self, file: Path, tokenizer: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(file.read_bytes(), options, providers=["CPUExecutionProvider"])
        self.inputs = [each.name for each in self.session.get_inputs()]
        if unknown := [name for name in self.inputs if name not in TAKEN]:
            raise ValueError(f"it takes {', '.join(unknown)}; export a model that takes {', '.join(TAKEN)}.")
        names = [each.name for each in self.session.get_outputs()]
        self.output = next((name for name in names if name == "sentence_embedding"), names[0])
        self.tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        if self.tokenizer.truncation is None:
            self.tokenizer.enable_truncation(LONGEST)

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            rows = list(pool.map(self._row, self.tokenizer.encode_batch(texts)))
        return _unit_length(np.stack(rows)) if rows else np.empty((0, 0), np.float32)

    def _row(self, encoding: Any) -> NDArray[np.float64]:
        given = {name: np.array([getattr(encoding, TAKEN[name])], np.int64) for name in self.inputs}
        (rows,) = self.session.run([self.output], given)
        return np.asarray(rows[0] if rows.ndim == 2 else rows[0].mean(axis=0), np.float64)


class TokenVectors:
    """The sum of trained vectors of tokens: a row of length 1 for each text, all zeros for a text without tokens."""

    def __init__(self, table: NDArray[Any], tokenizer: Path) -> None:
        from tokenizers import Tokenizer

        self.table, self.tokenizer = table, Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.table.shape[1]))
        for row, encoding in zip(rows, self.tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            for start in range(0, len(encoding.ids), 4096):  # so that a long text needs no more memory
                row += self.table[encoding.ids[start : start + 4096]].astype(np.float64).sum(axis=0)
        return _unit_length(rows)


SPACES, SCRIPTS = "spaces", "scripts"  # how words are told apart
# Scripts without spaces between words: Chinese, Japanese, Thai, Lao, Burmese and Khmer.
SPACELESS = (
    r"\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
TOKEN = re.compile(rf"([{SPACELESS}]+)|(?:(?![{SPACELESS}])\w)+")


def words_of(text: str) -> list[str]:
    """The words of a text; in scripts without spaces, single characters and pairs of them.

    >>> words_of("Wi-Fi 坏了")
    ['wi', 'fi', '坏', '了', '坏了']
    """
    words: list[str] = []
    for token in TOKEN.finditer(text.lower()):
        run = token[0]
        if token[1] is None:
            words.append(run)
        else:
            words += [run[i : i + n] for n in (1, 2) for i in range(len(run) - n + 1)]
    return words


def word_vectors(texts: list[str], idf: NDArray[np.float64], words: str = SPACES) -> NDArray[np.float32]:
    """TF-IDF: a row of length 1 for each text, all zeros for a text without words."""
    from sklearn.feature_extraction.text import TfidfTransformer

    weighting = TfidfTransformer(norm=None, sublinear_tf=True)
    weighting.idf_ = idf
    return _unit_length(weighting.transform(count_words(texts, len(idf), words)).toarray())


def count_words(texts: list[str], columns: int, words: str = SPACES) -> Any:
    """How often each text has the words that are hashed to each column.

    words: "spaces": they are runs of letters and digits; "scripts": those of `words_of`.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    how: dict[str, Any] = {"analyzer": words_of} if words == SCRIPTS else {"token_pattern": r"(?u)\b\w+\b"}
    return HashingVectorizer(n_features=columns, alternate_sign=False, norm=None, **how).transform(texts)


def _unit_length(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def _below(state: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def _read(kind: str, arguments: list[str]) -> tuple[list[str], list[Any]]:
    """What was given on the command line: what to call each item, and the items."""
    if kind in ("images", "texts", "files"):
        return arguments, list(arguments)
    names, items = [], []
    for file in arguments:
        if kind == "vectors":
            rows: list[Any] = list(np.atleast_2d(np.load(file, allow_pickle=False)))
        else:
            text = io.StringIO(Path(file).read_text("utf-8-sig"), newline="")
            rows = list(csv.DictReader(text, delimiter="\t" if file.lower().endswith(".tsv") else ","))
        names += [f"{file}, row {number}" for number in range(len(rows))]
        items += rows
    return names, items


if __name__ == "__main__":
    model = load(Path(__file__).parent)
    try:
        titles, inputs = _read(model.about["kind"], sys.argv[1:])
        classes, confidences = model.predict(inputs)
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"model.py: {error}")
    for title, name, confidence in zip(titles, classes, confidences, strict=True):
        print(f"{title}\t{name}\t{confidence:.3f}")

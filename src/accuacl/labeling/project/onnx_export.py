"""An exported model as one ONNX file, checked against the original by onnxruntime."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError, install
from accuacl.base.files import write_bytes
from accuacl.labeling.project import loader

LARGEST_ERROR = 1e-3  # of a probability


def write_onnx(folder: Path) -> Path:
    """Make model.onnx of the model that was exported to the folder.

    Its input `inputs` has a row for each item: pixels in [0, 1] (3 x side x side), the numbers of a vector, or the
    vector of a text, as `model.py` makes it. Its output is `probabilities`; its metadata have the `classes` as JSON.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it
    except ImportError as error:
        raise InputError(f"--onnx needs the extra `onnx` ({error}); {install('onnx')}.") from None
    model = loader.load(folder)
    example = _example(model)
    whole = _Whole(model).eval()
    with _silence():
        program: Any = torch.onnx.export(
            whole,
            (example,),
            dynamo=True,
            input_names=["inputs"],
            output_names=["probabilities"],
            dynamic_shapes=({0: torch.export.Dim("items", min=1)},),
            verbose=False,
        )
    proto = program.model_proto
    proto.metadata_props.add(key="classes", value=json.dumps(model.classes, ensure_ascii=False))
    data = proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for rows in (example, example[:1]):
        (said,) = session.run(None, {"inputs": rows.numpy()})
        with torch.inference_mode():
            off = float(np.abs(said - whole(rows).numpy()).max())
        if not off < LARGEST_ERROR:
            raise InputError(f"the ONNX model gives other probabilities (by {off:.2g}); export it without --onnx.")
    write_bytes(folder / "model.onnx", data)
    return folder / "model.onnx"


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Without what torch's exporter says of its own work and of packages that it does not need."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _example(model: loader.Model) -> Tensor:
    """Three items of the shape that the model takes, to trace and to check it with."""
    about = model.about
    if about["kind"] == "images":
        shape: tuple[int, ...] = (3, about["side"], about["side"])
    elif "length" in about:
        shape = (about["length"],)
    else:
        shape = tuple(model.state["scale.mean"].shape)
    return torch.from_numpy(np.random.default_rng(0).random((3, *shape), np.float32))


class _Whole(nn.Module):
    """The model as a module, from inputs to probabilities."""

    def __init__(self, model: loader.Model) -> None:
        super().__init__()
        self.network = model.embed
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.forward(x)

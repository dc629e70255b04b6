"""An exported model as one ONNX file, checked against the original by onnxruntime."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError
from accuacl.base.files import write_bytes
from accuacl.labeling.project.results import loader

LARGEST_ERROR = 1e-3  # of a probability


def write_onnx(folder: Path) -> Path:
    """Make model.onnx of the model that was exported to the folder.

    Its input `inputs` has a row for each item: pixels in [0, 1] (3 x side x side), the numbers of a vector, or the
    vector of a text, as `model.py` makes it. Its output is `probabilities`.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it
    except ImportError as error:
        raise InputError(f"--onnx needs the extra `onnx` ({error}); install accuacl[onnx].") from None
    model = loader.load(folder)
    example = _example(model)
    whole = _Whole(model).eval()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program: Any = torch.onnx.export(
            whole,
            (example,),
            dynamo=True,
            input_names=["inputs"],
            output_names=["probabilities"],
            dynamic_shapes=({0: torch.export.Dim("items", min=1)},),
            verbose=False,
        )
    data = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for rows in (example, example[:1]):
        (said,) = session.run(None, {"inputs": rows.numpy()})
        with torch.inference_mode():
            off = float(np.abs(said - whole(rows).numpy()).max())
        if not off < LARGEST_ERROR:
            raise InputError(f"the ONNX model gives other probabilities (by {off:.2g}); export it without --onnx.")
    write_bytes(folder / "model.onnx", data)
    return folder / "model.onnx"


def _example(model: loader.Model) -> Tensor:
    """Three items of the shape that the model takes, to trace and to check it with."""
    about = model.about
    if about["kind"] == "images":
        shape: tuple[int, ...] = (3, about["side"], about["side"])
    elif model.embed is None:
        shape = tuple(model.state["scale.mean"].shape)
    else:
        raise InputError("--onnx cannot tell how long the vectors of your own network are; export without it.")
    return torch.from_numpy(np.random.default_rng(0).random((3, *shape), np.float32))


class _Whole(nn.Module):
    """The model as a module, from inputs to probabilities."""

    def __init__(self, model: loader.Model) -> None:
        super().__init__()
        self.network = model.embed
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.forward(x)

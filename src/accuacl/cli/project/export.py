"""`accuacl project export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from accuacl.cli.options import TextColumn, TrustCode
from accuacl.cli.project.options import Directory, open_project
from accuacl.cli.screen import console, drawn


def export(
    directory: Directory,
    out: Annotated[Path, typer.Option(help="A new folder for the labels, the model and a file that loads it.")],
    predict: Annotated[
        Path | None, typer.Option(help="Also write the model's predictions for these images, vectors, texts or rows.")
    ] = None,
    column: TextColumn = "text",
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help="Also write model.onnx (extra `onnx`), checked with onnxruntime."),
    ] = False,
    trust_code: TrustCode = False,
) -> None:
    """Write the labels (CSV, Parquet), the model (safetensors, a loader), and predictions for new data."""
    with open_project(directory, trust_code) as project, drawn() as draw:
        from accuacl.labeling.project import export as write  # loads torch

        written = write(project, out, predict, column, draw, onnx)
    for path in written:
        console.print(f"written: {escape(str(path))}", soft_wrap=True)
    if out / "model.safetensors" not in written:
        console.print("[yellow]note:[/yellow] nothing has been learned yet, so there is no model; label a round first.")

"""`accuacl embed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TimeRemainingColumn

from accuacl.base.errors import InputError
from accuacl.cli.screen import console, progress_bar
from accuacl.embed.checkpoint import Checkpoint, of_module, of_run
from accuacl.embed.inputs import Inputs, open_inputs
from accuacl.embed.shards import embed as embed_to
from accuacl.labeling.project import open_for_embedding
from accuacl.pools import GROUP_ROWS


def embed(
    data: Annotated[
        str,
        typer.Option(
            help="A folder of images, Parquet (file, folder or pattern) of images or vectors, a .npy; "
            "for a project of texts .csv or JSON lines."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder that the pool goes to.")],
    run: Annotated[
        Path | None, typer.Option(help="The directory of a finished run, or of a project: its model embeds.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Or your own: net.py:build, a function that returns a torch module ending in a linear layer."
        ),
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Weights for --model, as safetensors.")] = None,
    half: Annotated[bool, typer.Option("--half", help="Write float16: half of the bytes.")] = False,
    image_size: Annotated[int, typer.Option(min=0, help="Side to bring images to; 0: the run's, or as they are.")] = 0,
    column: Annotated[str, typer.Option(help="Column of images, vectors or texts (img, image, vector, ...).")] = "",
    id_column: Annotated[str, typer.Option(help="Parquet column of ids; without it ids are row numbers.")] = "id",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out images that cannot be read.")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = "auto",
    batch: Annotated[int, typer.Option(min=1, help="Examples that the model gets at a time.")] = 256,
    shard_rows: Annotated[int, typer.Option(min=1, help="Rows per file.")] = GROUP_ROWS,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of going on.")] = False,
) -> None:
    """Turn images, vectors or texts into a pool for `accuacl select`: ids, embeddings and probabilities.

    Given again after it was stopped, the same command goes on where it was. Ids are paths within the folder, the id
    column of Parquet files, or row numbers.

    `accuacl embed --data photos/ --run runs/a --out pool/`
    """
    if (run is None) == (model is None):
        raise InputError("give either --run, the directory of a finished run or of a project, or --model, your own.")
    if Path(data).is_dir() and out.resolve().is_relative_to(Path(data).resolve()):
        raise InputError(f"{out} is inside {data}, where the pool would be taken for data; give an --out elsewhere.")
    if weights and not model:
        raise InputError("--weights are for --model; a run has its own.")
    inputs: Inputs
    checkpoint: Checkpoint
    if run and (run / "labels.sqlite").exists():
        inputs, checkpoint = open_for_embedding(run, data, image_size, column, id_column, skip_bad)
    elif run:
        checkpoint = of_run(run)
        inputs = open_inputs(data, image_size or checkpoint.size, column, id_column, skip_bad)
    else:
        assert model is not None
        inputs = open_inputs(data, image_size, column, id_column, skip_bad)
        some = (inputs.read(start, start + 2)[1] for start in range(0, len(inputs), 2))
        example = next((rows for rows in some if len(rows)), None)
        if example is None:
            raise InputError(f"none of the images in {data} can be read; give some that can.")
        checkpoint = of_module(model, weights, torch.from_numpy(example))
    with progress_bar(MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        job = bar.add_task("embedding", total=len(inputs))
        rows = embed_to(
            inputs,
            checkpoint,
            out,
            half=half,
            device=device,
            batch=batch,
            shard_rows=shard_rows,
            fresh=fresh,
            progress=lambda rows: bar.update(job, completed=rows.done, total=rows.total),
        )
    left_out = f", {len(inputs) - rows:,} left out" if rows < len(inputs) else ""
    console.print(f"{rows:,} rows of {len(checkpoint.seen)} classes{left_out}: {escape(str(out))}")

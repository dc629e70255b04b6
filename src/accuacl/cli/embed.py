"""`accuacl embed`: a pool from a model and raw data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TimeRemainingColumn

from accuacl.cli.options import Fresh, IdColumn, SkipBad, TrustCode
from accuacl.cli.screen import command, console, drawn


def embed(
    data: Annotated[
        str,
        typer.Option(
            help="What to embed: a folder of images, Parquet (file, folder or pattern) of images or vectors, a .npy, "
            ".npz or idx (-ubyte) file or a table (.csv, .tsv, .json, .jsonl, .arrow) of either; for a project of "
            "texts a .csv file or JSON lines, of tables .csv, .tsv or Parquet."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write the pool to.")],
    run: Annotated[
        Path | None, typer.Option(help="Embed with the model of this finished run or project (its directory).")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Embed with your own model: net.py:build, a function that returns a torch module ending in a linear "
            "layer."
        ),
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Weights for --model, a safetensors file.")] = None,
    half: Annotated[bool, typer.Option("--half", help="Write float16: half the size.")] = False,
    image_size: Annotated[
        int, typer.Option(min=0, help="Resize images to this side; 0: the run's size, or unchanged.")
    ] = 0,
    column: Annotated[
        str,
        typer.Option(
            help="The column, or the array of an .npz file, that holds images, vectors or texts (default: found by "
            "its name)."
        ),
    ] = "",
    id_column: IdColumn = "id",
    skip_bad: SkipBad = False,
    device: Annotated[str, typer.Option(help="Where the model runs: cpu, cuda, cuda:1 or auto.")] = "auto",
    runtime: Annotated[
        str,
        typer.Option(
            help="What runs the model on images: onnxruntime, openvino, openvino-bf16 or torch. auto: the fastest of "
            "these that is installed and agrees with torch."
        ),
    ] = "auto",
    batch: Annotated[int, typer.Option(min=1, help="Batch size.")] = 256,
    shard_rows: Annotated[int, typer.Option(min=1, help="Rows per file.")] = 65_536,
    fresh: Fresh = False,
    trust_code: TrustCode = False,
) -> None:
    """Turn images, vectors or texts into a pool for `accuacl select`: ids, embeddings and probabilities.

    Run the same command again to resume. Ids are the paths of images within their folder, the id column of tables, or
    else row numbers.

    `accuacl embed --data photos/ --run runs/a --out pool/`
    """
    from accuacl.experiments.embed import LABELS, ReadOptions, check_places

    check_places(data, out, run, model, weights)
    from accuacl.experiments.embed import embed as write_pool, open_for_module, open_for_run  # loads torch
    from accuacl.labeling.project import open_for_embedding

    options = ReadOptions(image_size, column, id_column, skip_bad)
    if model:
        inputs, checkpoint = open_for_module(model, weights, data, options)
    elif run and (run / LABELS).exists():
        inputs, checkpoint = open_for_embedding(run, data, options, trust_code)
    else:
        inputs, checkpoint = open_for_run(run or Path(), data, options, trust_code)
    with drawn(MofNCompleteColumn(), TimeRemainingColumn()) as draw:
        rows = write_pool(
            inputs,
            checkpoint,
            out,
            half=half,
            device=device,
            batch=batch,
            shard_rows=shard_rows,
            fresh=fresh,
            runtime=runtime,
            progress=draw,
        )
    left_out = f", {len(inputs) - rows:,} left out" if rows < len(inputs) else ""
    console.print(f"{rows:,} rows of {len(checkpoint.seen)} classes{left_out}: {escape(str(out))}")
    console.print(f"next: {command('select', '--pool', out, '--budget', 100, '--out', 'picked.csv')}", soft_wrap=True)

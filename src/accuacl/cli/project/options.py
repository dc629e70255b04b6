"""Options that the commands of projects share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accuacl.labeling.label_studio import TOKEN

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")]
Images = Annotated[Path | None, typer.Option(help="A folder of images.")]
Vectors = Annotated[Path | None, typer.Option(help="A Parquet file: `id`, and `embedding` or columns of numbers.")]
Texts = Annotated[Path | None, typer.Option(help="A .csv file or JSON lines.")]
Server = Annotated[
    str,
    typer.Option(
        "--label-studio",
        metavar="URL",
        help=f"The Label Studio server; the environment variable {TOKEN} holds the access token.",
    ),
]

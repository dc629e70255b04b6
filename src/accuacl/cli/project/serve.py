"""`accuacl project serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accuacl.base.errors import InputError
from accuacl.cli.project.options import Directory
from accuacl.labeling.project import Project


def serve(
    directory: Directory,
    host: Annotated[
        str, typer.Option(help="Address to listen on; a warning is shown for any but this machine's own.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8765,
    person: Annotated[
        list[str] | None,
        typer.Option(help="Print a new login link for this person; their old one ends. May be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another host name under which the page may be opened; may be repeated.")
    ] = None,
    cert: Annotated[Path | None, typer.Option(help="The certificate, for HTTPS.")] = None,
    key: Annotated[Path | None, typer.Option(help="The certificate's private key.")] = None,
) -> None:
    """Serve the page on which people label, and train whenever a round is complete."""
    try:
        from accuacl.labeling.web import serve as run
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs the extra `web` ({error}); install accuacl[web].") from None
    with Project.open(directory) as project:
        run(project, host=host, port=port, people=person or (), allow_host=allow_host or (), cert=cert, key=key)

"""`accuacl project serve`."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from accuacl.base.errors import InputError, install
from accuacl.cli.options import TrustCode
from accuacl.cli.project.options import Directory, open_project
from accuacl.labeling.project import check_trusted


def serve(
    directory: Directory,
    host: Annotated[
        str, typer.Option(help="Address to listen on; a warning is shown for any but this machine's own.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8765,
    person: Annotated[
        list[str] | None,
        typer.Option(help="Print a login link for this person, which works once. May be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another host name under which the page may be opened; may be repeated.")
    ] = None,
    cert: Annotated[Path | None, typer.Option(help="The certificate, for HTTPS.")] = None,
    key: Annotated[Path | None, typer.Option(help="The certificate's private key.")] = None,
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="The address that people open, if a proxy stands before this server.")
    ] = "",
    overlap: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of each new round that two people label. Unset: as in `project new`."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    trust_code: TrustCode = False,
) -> None:
    """Serve the page on which people label, and train whenever a round is complete."""
    with open_project(directory, trust_code) as project:
        try:
            from accuacl.labeling.web import serve as run
        except ModuleNotFoundError as error:
            raise InputError(f"the page needs the extra `label` ({error}); {install('label')}.") from None
        if overlap is not None:
            project.overlap = overlap
        check_trusted(project.settings)  # now, not when the first round is complete
        run(
            project,
            host=host,
            port=port,
            people=person or (),
            allow_host=allow_host or (),
            cert=cert,
            key=key,
            public_url=public_url,
            open_browser=webbrowser.open if open_page and _has_browser() else None,
        )


def _has_browser() -> bool:
    """Whether somebody sits before this machine; elsewhere a browser in the terminal might open."""
    windows = sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return sys.stdout.isatty() and windows

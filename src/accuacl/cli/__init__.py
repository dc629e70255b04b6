"""The command line: parse, call, print, draw progress. One file a command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import accuacl
from accuacl.base.errors import InputError
from accuacl.cli import bench, embed, paper, project, report, run, select, sweep  # each adds its command
from accuacl.cli.app import app
from accuacl.experiment import LabelsPending

__all__ = ["app", "bench", "embed", "main", "paper", "project", "report", "run", "select", "sweep"]

RESUMED = ("run", "sweep", "paper", "embed", "project")  # commands that record what they have done


def main() -> None:
    """Run the command; wrong input ends with one sentence and exit code 2."""
    try:
        code = app(standalone_mode=False)
        if code == 130:  # typer's, for Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        where = f" (see {context.command_path} --help)" if context else ""
        if error.format_message():  # empty where the help has been shown instead
            print(f"accuacl: {error.format_message().rstrip('.')}{where}.", file=sys.stderr)
    except LabelsPending as waiting:
        print(f"accuacl: {waiting}", file=sys.stderr)
        sys.exit(75)
    except InputError as error:
        print(f"accuacl: {error}", file=sys.stderr)
    except (KeyboardInterrupt, typer.Abort):
        goes_on = "; the same command goes on where it was" if sys.argv[1:2] and sys.argv[1] in RESUMED else ""
        print(f"accuacl: interrupted{goes_on}.", file=sys.stderr)
        sys.exit(130)
    sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"accuacl {accuacl.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What to label next, when a model must learn new classes without forgetting the old."""

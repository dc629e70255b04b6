"""The command line: parse, call, print, draw progress."""

from __future__ import annotations

import errno
import io
import sys
from typing import Annotated

import typer

import accuacl
from accuacl.base.errors import InputError, LabelsPending, missing_extra, near, remedy
from accuacl.base.userfile import users_line, users_traceback
from accuacl.cli.lazy import lazy_group

__all__ = ["app", "main"]

COMMANDS = {  # by name: its module, and the line that the list of commands shows
    "run": ("accuacl.cli.run", "Learn a stream of tasks with few labels: any learner, any strategy, any benchmark."),
    "select": (
        "accuacl.cli.select",
        "Pick what to label next from a pool of any size in Parquet files, exactly as in memory.",
    ),
    "embed": (
        "accuacl.cli.embed",
        "Turn images, vectors or texts into a pool for `accuacl select`: ids, embeddings and probabilities.",
    ),
    "project": ("accuacl.cli.project", "Let people label while a model learns: labelling projects."),
    "sweep": ("accuacl.cli.sweep", "Do a grid of runs in parallel, only those that are missing, into one table."),
    "paper": (
        "accuacl.cli.sweep",
        "Reproduce a table or figure of the paper and write its report, our numbers beside the paper's.",
    ),
    "report": (
        "accuacl.cli.report",
        "Show finished runs: tables with deviations, plots, significance, the paper's figures beside ours.",
    ),
    "check": (
        "accuacl.cli.check",
        "Check that strategies, learners and memory policies of your own keep the contract that ours keep.",
    ),
    "doctor": (
        "accuacl.cli.doctor",
        "Show what accuacl finds here: versions, extras, cores, memory, GPU, data sets and caches.",
    ),
}
CONTINUED = ("run", "sweep", "paper", "embed", "project")  # given again, these go on where they were

app = lazy_group(COMMANDS, "What to label next, when a model must learn new classes without forgetting the old.")


def main() -> None:
    """Run a command. Wrong input ends it with one sentence and exit code 2; a bug shows its traceback.

    That of a bug in a user's own file begins in that file: what led there says nothing to its author.
    """
    for stream in (sys.stdout, sys.stderr):  # a name that a terminal or pipe has no letters for is still shown
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _command()
        if code == 130:  # typer's, for Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
        sys.exit(code)
    except typer.TyperException as error:
        if text := _wrong_usage(error):  # empty where the help has been shown instead
            context = getattr(error, "ctx", None)
            _end(2, f"{text} (see {context.command_path} --help)." if context else f"{text}.")
        sys.exit(2)
    except LabelsPending as waiting:
        _end(75, str(waiting))
    except InputError as error:
        _end(2, str(error))
    except (KeyboardInterrupt, typer.Abort):
        goes_on = "; the same command goes on where it was" if sys.argv[1:2] and sys.argv[1] in CONTINUED else ""
        _end(130, f"interrupted{goes_on}.")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (refusal := missing_extra(error)):
            _end(2, str(refusal))
        if trace := users_traceback(error):
            print(trace, end="", file=sys.stderr)
            sys.exit(1)
        if isinstance(error, OSError):
            from accuacl.base.files import path_error  # here, since --help need not wait for it

            if refusal := path_error(error):
                _end(2, str(refusal))
            if error.errno == errno.ENOSPC:  # of what is printed
                _end(2, "the output cannot be written: the disk is full; make room, or send it somewhere else.")
        raise


def _command() -> int | None:
    """Run the command that was given; returns its exit code."""
    try:
        return app(standalone_mode=False, prog_name="accuacl")
    except SystemExit as error:
        if not (place := users_line(error)):
            raise
        raise InputError(f"{place} ended the whole program, with exit code {error.code!r}; take that out.") from error


def _wrong_usage(error: typer.TyperException) -> str:
    """What is wrong with the words of a command, without a full stop."""
    option, cause = getattr(error, "option_name", ""), error.__cause__
    if hasattr(error, "possibilities"):  # for an unknown option typer names some that are hardly alike
        meant = near(option, error.possibilities or (), 0.75)
        return f"there is no option {option}; did you mean {meant}?" if meant else f"there is no option {option}"
    if isinstance(cause, ValueError) and hasattr(cause, "errors"):  # pydantic's, which knows the value
        fault = cause.errors()[0]
        return f"{error.param.opts[-1]} is {fault['input']!r}; {remedy(fault)}"  # type: ignore[attr-defined]
    return f"{option} needs a value" if option else error.format_message().rstrip(".")


def _end(code: int, text: str) -> None:
    print(f"accuacl: {text}", file=sys.stderr)
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"accuacl {accuacl.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What to label next, when a model must learn new classes without forgetting the old."""

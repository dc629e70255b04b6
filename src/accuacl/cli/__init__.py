"""The command line: parse, call, print, draw progress.

The module of a command is imported when it is needed, so that help and typing errors cost nothing.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

import accuacl
from accuacl.base.errors import InputError, LabelsPending, missing_extra, near, remedy
from accuacl.base.userfile import users_line, users_traceback

__all__ = ["app", "lazy_group", "load", "main"]

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
    "sweep": (
        "accuacl.cli.sweep",
        "Run a grid of settings in parallel, skip finished runs, and collect the results in one table.",
    ),
    "paper": (
        "accuacl.cli.sweep",
        "Reproduce a table or figure of the paper and write its report, our numbers beside the paper's.",
    ),
    "report": (
        "accuacl.cli.report",
        "Show finished runs: tables with standard deviations, plots, tests, the paper's figures beside ours.",
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
CONTINUED = ("run", "sweep", "paper", "embed", "project")  # these resume when run again

KINDS = {bool: "", int: "INTEGER", float: "NUMBER", Path: "PATH"}  # of values, as help names them; others are TEXT


def lazy_group(commands: Mapping[str, tuple[str, str]], help: str) -> typer.Typer:
    """A group of commands that imports only the requested one.

    commands: by name, the module that has a function or group of that name, and the line that the group's help shows.
    """

    class LazyGroup(_PlainHelp, TyperGroup):
        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            name, known, rest = super().resolve_command(ctx, args)
            return name, load(commands[name][0], name) if name else known, rest

    group = _typer(cls=LazyGroup, no_args_is_help=True, help=help)
    for name, (_, line) in commands.items():
        group.command(name, help=line)(_not_loaded)
    return group


def load(module: str, name: str) -> Any:
    """Import a command."""
    command = getattr(importlib.import_module(module), name)
    if isinstance(command, typer.Typer):
        return typer.main.get_command(command)
    alone = _typer()
    alone.command(name, cls=_Command)(_with_kinds(command))
    return typer.main.get_command(alone)


class _PlainHelp:
    """A command whose --help is shown without a value, which it does not take."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option:
            option.metavar = ""
        return option


class _Command(_PlainHelp, TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        """An argument's name says what it is: help shows no type beside it, which would be <path> or <list[str]>."""
        parameters = super().get_params(ctx)
        for argument in (each for each in parameters if isinstance(each, TyperArgument)):
            argument.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse words that belong to no option; a pattern without quotes may have become thousands of them."""
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest:
            ctx.fail(f"unexpected argument {rest[0]!r}; name an option before each value, and put patterns in quotes")
        return rest


def _with_kinds(command: Callable[..., None]) -> Callable[..., None]:
    """The command, whose help names what it takes: typer's own words would be <bool> and <list[Path]>."""
    signature = inspect.signature(command, eval_str=True)
    for parameter in signature.parameters.values():
        if get_origin(parameter.annotation) is Annotated:
            kind, *notes = get_args(parameter.annotation)
            for note in notes:
                if isinstance(note, ArgumentInfo) and note.metavar is None:
                    note.metavar = parameter.name.upper()
                elif isinstance(note, OptionInfo) and note.metavar is None:
                    note.metavar = next((KINDS[each] for each in _leaves(kind) if each in KINDS), "TEXT")
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return command


def _leaves(kind: Any) -> list[Any]:
    """The types that a type is made of: those of `list[Path] | None` are Path and None's."""
    inner = get_args(kind)
    return [leaf for each in inner for leaf in _leaves(each)] if inner else [kind]


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown", **settings)


def _not_loaded() -> None:
    """The entry in a group's list until its command is needed."""


app = lazy_group(COMMANDS, "What to label next, when a model must learn new classes without forgetting the old.")


def _check_folder() -> None:
    """Refuse to begin in a folder that has been removed: libraries such as torch do not survive it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise InputError("the current folder is gone; change to another one.") from None


def main() -> None:
    """Run a command. Wrong input ends it with one sentence and exit code 2; a bug shows its traceback.

    For a bug in a user's own file, the traceback begins in that file: the steps before it mean nothing to its author.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as with >&-
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a name that a terminal or pipe has no letters for is still shown
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        _check_folder()
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
        goes_on = "; run the same command again to resume" if sys.argv[1:2] and sys.argv[1] in CONTINUED else ""
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
        if not (line := users_line(error)):
            raise
        raise InputError(f"{line} ended the whole program, with exit code {error.code!r}; remove that.") from error


def _wrong_usage(error: typer.TyperException) -> str:
    """What is wrong with a command line, without a full stop."""
    option, cause = getattr(error, "option_name", ""), error.__cause__
    if hasattr(error, "possibilities"):  # for an unknown option typer names some that are hardly alike
        name = option.removeprefix("--").replace("-", "_")
        if _is_option_of_strategies(error, name):
            return f"there is no option {option}; give --option {name}=VALUE"
        meant = near(option, error.possibilities or (), 0.75)
        return f"there is no option {option}; did you mean {meant}?" if meant else f"there is no option {option}"
    if isinstance(cause, ValueError) and hasattr(cause, "errors"):  # pydantic's, which knows the value
        fault = cause.errors()[0]
        return f"{error.param.opts[-1]} is {fault['input']!r}; {remedy(fault)}"  # type: ignore[attr-defined]
    return f"{option} needs a value" if option else error.format_message().rstrip(".")


def _is_option_of_strategies(error: Any, name: str) -> bool:
    """Whether a command, of which the error is, takes it as --option."""
    if not error.ctx or all(parameter.name != "option" for parameter in error.ctx.command.params):
        return False
    from accuacl.strategies import BUILT_IN, options_of  # loads numpy

    return any(name in options_of(strategy) for strategy in BUILT_IN)


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

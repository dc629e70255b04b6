"""Options that several commands have, and options made from the fields of a settings model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import typer
from rich.markup import escape

from accuacl.base.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel


def a_folder(path: Path | None) -> Path | None:
    """Refuse a --data-dir that is no folder before anything else is done."""
    if path is not None and not path.is_dir():
        raise InputError(f"--data-dir is {str(path)!r}, which is no folder; give the one that holds the data sets.")
    return path


DataDir = Annotated[
    Path | None,
    typer.Option(
        callback=a_folder, help="The folder with the data sets; default: the environment variable ACCUACL_DATA."
    ),
]
Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        help="A Python file that registers strategies, learners, memory policies or streams of yours; may be repeated."
    ),
]
Workers = Annotated[
    int, typer.Option(min=0, help="How many worker processes (on Ray: CPUs), each with one thread; 0: one per core.")
]
EngineName = Annotated[
    str, typer.Option("--engine", help="Where the work is done: local (processes of this machine) or ray.")
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray: the address of a running cluster, such as 10.0.0.1:6379 or auto (default: a new one)."),
]
Gpus = Annotated[float, typer.Option(min=0, help="Ray: the share of a GPU that each run takes, such as 0.5.")]
Results = Annotated[
    Path | None,
    typer.Option(help="The table of results (default: OUT/results.csv); runs that it has are not done again."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only", help="Only some runs: SETTING=VALUE or SETTING=A,B, such as seed=0; repeat to narrow further."
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over: remove what an earlier start wrote, then begin.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out images that cannot be read.")]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Run the Python file that the project or run names as its model; read it first."),
]
IdColumn = Annotated[str, typer.Option(help="The Parquet column that holds the ids.")]
TextColumn = Annotated[str, typer.Option("--column", help="The column that holds the texts.")]

Command = TypeVar("Command", bound=Callable[..., None])


def with_settings(
    model: type[BaseModel], without: Collection[str] = (), defaults: bool = False, varying: Collection[str] = ()
) -> Callable[[Command], Command]:
    """Give a command an option for every field of a settings model, in place of its `**given`.

    The field's description is the option's help. What is not given on the command line is None. without: fields that
    get no option. defaults: whether the help names the fields' default values. varying: fields whose defaults follow
    from others, which their descriptions say.
    """
    options = [
        _option(name, field, defaults and name not in varying)
        for name, field in model.model_fields.items()
        if name not in without
    ]

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        every = [parameter for parameter in own if parameter.kind is not parameter.VAR_KEYWORD] + options
        command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return command

    return decorate


def _option(name: str, field: Any, defaults: bool) -> inspect.Parameter:
    kinds = () if get_origin(field.annotation) is tuple else get_args(field.annotation) or (field.annotation,)
    kind: Any = next((kind for kind in kinds if kind in (bool, int, float)), str)
    flags = (f"--{name.replace('_', '-')}",) if kind is bool else ()
    shown = (
        f" [default: {field.default}]" if defaults and kind is not bool and field.default not in ("", (), None) else ""
    )
    annotation = Annotated[kind | None, typer.Option(*flags, help=f"{field.description or ''}{escape(shown)}")]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)

"""Options that several commands have, those made from settings and from strategies, and what --only means."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import typer
from rich.markup import escape

from accuacl.base.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel


DataDir = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        file_okay=False,
        help="The folder with the data sets; default: the environment variable ACCUACL_DATA.",
    ),
]
Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        help="A Python file that registers your own strategies, learners, memory policies or streams; may be repeated."
    ),
]
OptionWords = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the strategy (or of a plugin's), such as share=0.3; may be repeated.",
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
    typer.Option(help="The table of results (default: OUT/results.csv); runs already in it are not repeated."),
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
    typer.Option("--trust-code", help="Run the Python files that the project or run names; read them first."),
]
IdColumn = Annotated[str, typer.Option(help="The Parquet column that holds the ids.")]
TextColumn = Annotated[str, typer.Option("--column", help="The column that holds the texts.")]

Command = TypeVar("Command", bound=Callable[..., None])
T = TypeVar("T")


def with_settings(
    model: type[BaseModel], without: Collection[str] = (), varying: Collection[str] = ()
) -> Callable[[Command], Command]:
    """Give a command an option for every field of a settings model, in place of its `**given`.

    The field's description is the option's help. What is not given on the command line is None. without: fields that
    get no option. varying: fields whose defaults follow from others, which their descriptions say.
    """
    parameters = []
    for name, field in model.model_fields.items():
        kinds = () if get_origin(field.annotation) is tuple else get_args(field.annotation) or (field.annotation,)
        kind: Any = next((kind for kind in kinds if kind in (bool, int, float)), str)
        default = None if name in varying or kind is bool else field.default
        parameters += [] if name in without else [_parameter(name, kind, field.description or "", default)]
    return _with_parameters(parameters)


def with_strategy_options(without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command an option for every option of the built-in strategies, in place of its `**given`.

    The help names a default that is the same for all strategies.
    """
    from accuacl.strategies import BUILT_IN, options_help, options_of  # loads numpy

    parameters = []
    for name in dict.fromkeys(name for strategy in BUILT_IN for name in options_of(strategy) if name not in without):
        declared = [options_of(strategy)[name] for strategy in BUILT_IN if name in options_of(strategy)]
        kind = declared[0].kind if declared[0].kind in (int, float) else str
        defaults = {option.default for option in declared}
        default = defaults.pop() if len(defaults) == 1 else None
        parameters.append(_parameter(name, kind, f"{options_help(name)}.", default))
    return _with_parameters(parameters)


def _parameter(name: str, kind: Any, help: str, default: Any) -> inspect.Parameter:
    flags = (f"--{name.replace('_', '-')}",) if kind is bool else ()  # without --no-name
    shown = "" if default in ("", (), None) else f" [default: {default}]"
    annotation = Annotated[kind | None, typer.Option(*flags, help=help + escape(shown))]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _with_parameters(parameters: list[inspect.Parameter]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        every = [parameter for parameter in own if parameter.kind is not parameter.VAR_KEYWORD] + parameters
        command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return command

    return decorate


def narrow(runs: Sequence[T], only: Sequence[str], setting: Callable[[T, str], Any]) -> list[T]:
    """The runs, or rows of results, that all conditions `name=value` let through.

    setting: gives a run's value of the setting with a name.
    """
    from accuacl.experiments import ALIASES, Config
    from accuacl.experiments.report import show

    chosen = list(runs)
    for condition in only:
        name, equals, text = condition.partition("=")
        name = ALIASES.get(name, name.replace("-", "_"))
        if not equals or name not in Config.model_fields:
            raise InputError(f"--only {condition}: give setting=value with a setting's name, like strategy=accuacl.")
        there = dict.fromkeys(setting(run, name) for run in runs)
        values = _meant(text, there, show)  # the whole text first: orders of classes have commas
        for word in [] if values else map(str.strip, text.split(",")):
            if not (meant := _meant(word, there, show)):
                known = "; ".join(map(show, there))
                raise InputError(f"--only {condition}: no run has {name} {word}; the values are {known}.")
            values |= meant
        chosen = [run for run in chosen if setting(run, name) in values]
    if not chosen:
        raise InputError(f"no run matches --only {' --only '.join(only)}; relax it.")
    return chosen


def _meant(word: str, values: Iterable[Any], show: Callable[[Any], str]) -> set[Any]:
    """The values that a word stands for: the one it spells, or fractions that it rounds.

    >>> _meant("0", [0.0, 0.5], str), _meant("0.667", [0.5, 2 / 3], str), _meant("1000", [1001], str)
    ({0.0}, {0.6666666666666666}, set())
    """
    spelt = {value for value in values if word in (str(value), show(value))}
    try:
        number = float(word)
    except ValueError:
        return spelt
    return spelt or {
        value
        for value in values
        if value == number or (isinstance(value, float) and math.isclose(value, number, rel_tol=1e-3))
    }

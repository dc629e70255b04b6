"""Groups of commands whose modules are imported when they are needed, so that help and typing errors cost nothing."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

KINDS = {bool: "", int: "INTEGER", float: "NUMBER", Path: "PATH"}  # of values, as help names them; others are TEXT


def lazy_group(commands: Mapping[str, tuple[str, str]], help: str) -> typer.Typer:
    """A group of commands, of which only the one that is asked for is imported.

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
    """The entry in a group's list until its command is asked for."""

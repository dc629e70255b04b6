"""Groups of commands whose modules are imported when they are needed, so that help and typing errors cost nothing."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup


def lazy_group(package: str, commands: Mapping[str, str], help: str) -> typer.Typer:
    """A group with one command for each module of a package.

    commands: by name, the line that the group's help shows. The command called `run` is the function or group `run` in
    the module `run` of the package; only the one that is asked for is imported.
    """

    class LazyGroup(TyperGroup):
        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            name, known, rest = super().resolve_command(ctx, args)
            return name, load(package, name) if name else known, rest

    group = _typer(cls=LazyGroup, no_args_is_help=True, help=help)
    for name, line in commands.items():
        group.command(name, help=line)(_not_loaded)
    return group


def load(package: str, name: str) -> Any:
    """Import a command."""
    command = getattr(importlib.import_module(f"{package}.{name}"), name)
    if isinstance(command, typer.Typer):
        return typer.main.get_command(command)
    alone = _typer()
    alone.command(name)(command)
    return typer.main.get_command(alone)


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown", **settings)


def _not_loaded() -> None:
    """Stands in the group's list until its command is asked for."""

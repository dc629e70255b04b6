"""`accuacl check`: whether the strategies, learners and memory policies of a Python file keep their contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from accuacl.base.errors import counted
from accuacl.base.userfile import REGISTERED
from accuacl.cli.screen import console
from accuacl.experiments import checks
from accuacl.strategies import load_plugins

CONTRACTS: dict[str, str] = {  # by what can be registered: the function that checks one
    "strategy": "check_strategy",
    "learner": "check_learner",
    "memory policy": "check_memory_policy",
}


def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.py", help="Files as --plugin takes them.")],
) -> None:
    """Check that strategies, learners and memory policies of your own keep the contract that ours keep.

    The exit code is 0 if they do and 1 if one does not. The files are run: read those of others first.
    """
    before = len(REGISTERED)
    load_plugins(files)
    done, broken = 0, 0
    for kind, name in REGISTERED[before:]:
        console.print(f"[bold]{kind} {escape(name)}[/bold]", highlight=False)
        if kind not in CONTRACTS:
            console.print(f"  not checked: there are no checks of a {kind}")
            continue
        checked: Callable[[str], Iterator[checks.CheckResult]] = getattr(checks, CONTRACTS[kind])
        for result in checked(name):
            done, broken = done + 1, broken + bool(result.fault)
            mark = "[red]BROKEN[/red]" if result.fault else "[green]ok[/green]    "
            detail_text = result.fault or result.remark
            detail = f": {detail_text.rstrip('.')}." if detail_text else "."
            console.print(f"  {mark} {escape(result.contract + detail)}", soft_wrap=True, highlight=False)
    if broken:
        console.print(f"{broken} of {counted(done, 'check')} failed.")
        raise typer.Exit(1)
    console.print(f"{counted(done, 'check')} passed.")

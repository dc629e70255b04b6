"""mkdocs: writes reference/commands.md from the commands themselves, so that it cannot be out of date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from accuacl.cli import COMMANDS, load
from accuacl.cli.project import COMMANDS as PROJECT_COMMANDS

PAGE = "reference/commands.md"


def on_files(files: Any, config: Any) -> Any:
    """Add the page to those of the site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """All commands, their arguments and options, as Markdown."""
    lines = [
        "# Commands",
        "",
        "Every command explains itself with `--help`; this page has the same text. Exit codes: 0 done, 1 a bug "
        "in accuacl or in a file of yours that it loaded (also one that `accuacl check` finds, or that ended a run of "
        "a sweep), 2 wrong input (one sentence says what to fix), 75 waiting for people's labels, 130 Ctrl-C.",
        "",
        "| command | does |",
        "|---|---|",
        *(f"| [`accuacl {name}`](#accuacl-{name}) | {line} |" for name, (_, line) in COMMANDS.items()),
    ]
    for name, (module, line) in COMMANDS.items():
        if name == "project":
            lines += ["", "## accuacl project", "", line, ""]
            for sub, (sub_module, _) in PROJECT_COMMANDS.items():
                lines += ["", *described(f"accuacl project {sub}", load(sub_module, sub), "###")]
        else:
            lines += ["", *described(f"accuacl {name}", load(module, name), "##")]
    return "\n".join(lines) + "\n"


def described(name: str, command: Any, level: str) -> Iterator[str]:
    """A command's section."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    shown = " ".join(_metavar(each) if each.required else f"[{_metavar(each)}]" for each in arguments)
    yield from (
        f"{level} {name}",
        "",
        f"    {name} {shown}{' ' if shown else ''}[OPTIONS]",
        "",
        _plain(command.help),
        "",
    )
    if arguments:
        yield from ("| argument | |", "|---|---|")
        yield from (f"| `{_metavar(each)}` | {_cell(each.help)} |" for each in arguments)
        yield ""
    if options:
        yield from ("| option | |", "|---|---|")
        yield from (f"| {_flags(each)} | {_cell(each.help)}{_default(each)} |" for each in options)


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _flags(option: Any) -> str:
    flags = ", ".join(f"`{flag}`" for flag in [*option.opts, *option.secondary_opts])
    return f"{flags} {option.metavar}".rstrip()


def _default(option: Any) -> str:
    if option.required:
        return " **Must be given.**"
    value = option.default
    return "" if value in (None, False, "", (), []) else f" Default: `{value}`."


def _cell(text: str | None) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str | None) -> str:
    """Help without its marks for the terminal, its options as code, as one paragraph for each of its own."""
    text = re.sub(r"\\(?=\[)", "", (text or "").replace("\f", ""))
    text = re.sub(r"`[^`]*`|(?<![\w-])--[a-z][a-z-]*\b", lambda found: f"`{found[0].strip('`')}`", text)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))
    return "\n\n".join(paragraphs)

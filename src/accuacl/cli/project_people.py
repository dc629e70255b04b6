"""`accuacl project serve` and `person`: the page, and who may use it."""

from __future__ import annotations

import functools
import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from accuacl.base.errors import InputError, install
from accuacl.base.machine import one_heap
from accuacl.cli.options import TrustCode
from accuacl.cli.project import Directory, open_project
from accuacl.labeling import project as projects

ACTIONS = ("add", "link", "revoke", "lead", "annotator")


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
        str, typer.Option(metavar="URL", help="The address that people open, if this server is behind a proxy.")
    ] = "",
    overlap: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of each new round that two people label. Unset: as in `project new`."),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A folder on this machine from which leads may add data on the page. May be repeated."),
    ] = None,
    proxy_user_header: Annotated[
        str,
        typer.Option(metavar="NAME", help="Request header in which an authenticating proxy names the user."),
    ] = "",
    proxy_address: Annotated[
        list[str] | None,
        typer.Option(help="The proxy's address or network; the header is trusted only from there. May be repeated."),
    ] = None,
    proxy_groups_header: Annotated[
        str,
        typer.Option(metavar="NAME", help="Request header in which it names their groups, separated by commas."),
    ] = "",
    proxy_lead: Annotated[
        list[str] | None,
        typer.Option(
            help="A person or group of the proxy that leads. May be repeated. Default: the roles on the People page."
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    trust_code: TrustCode = False,
) -> None:
    """Serve the page on which people label, and train whenever a round is complete.

    DIR may also be a folder of projects, or an empty one: then all of them are served, each below /p/NAME, and leads
    make new ones on the page.
    """
    if not directory.is_dir():
        open_project(directory, trust_code)  # says what is wrong, before anything slow is loaded
    try:
        from accuacl.labeling import web
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs the extra `label` ({error}); {install('label')}.") from None
    proxy = web.proxy_login(proxy_user_header, proxy_address or (), proxy_groups_header, proxy_lead or ())
    run = functools.partial(
        web.serve,
        host=host,
        port=port,
        people=person or (),
        allow_host=allow_host or (),
        cert=cert,
        key=key,
        public_url=public_url,
        places=web.Places(data or ()),
        proxy=proxy,
        open_browser=webbrowser.open if open_page and _has_browser() else None,
    )
    if web.holds_projects(directory):
        if overlap is not None:
            raise InputError("--overlap is for one project; change it on each project's page.")
        one_heap()  # before there are threads
        run(directory)
        return
    with open_project(directory, trust_code) as project:
        if overlap is not None:
            project.overlap = overlap
        projects.check_trusted(project.settings)  # now, not when the first round is complete
        run(project)


def person(
    directory: Directory,
    action: Annotated[str, typer.Argument(metavar="|".join(ACTIONS), help="What to do.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")],
) -> None:
    """Let someone label, or end their access.

    `add` and `link` print a token to log in with, which works once, within a week: `add` for someone new, `link` for
    someone who has access. `revoke` ends their access; their labels stay. `lead` and `annotator` set their role: leads
    may also change classes, add data and invite people. The first person of a project is a lead.
    """
    if action not in ACTIONS:
        raise InputError(f"{action!r} is not an action; give one of {', '.join(ACTIONS)}.")
    with projects.Project.open(directory) as project:
        store = project.store
        if action in ("add", "link"):
            print(store.add_person(name) if action == "add" else store.invite(name), flush=True)
            where = f"the page that `accuacl project serve {shlex.quote(str(directory))}` prints the address of"
            print(f"{name} can log in with this token once, within a week, on {where}.", file=sys.stderr)
        elif action == "revoke":
            store.revoke(name)
            print(f"{name} no longer has access; their labels stay.")
            if not any(person.lead and not person.revoked for person in store.people()):
                print("nobody leads the project now; make somebody a lead with `lead NAME`, or `add` someone.")
        else:
            store.set_role(name, lead=action == "lead")
            print(f"{name} is {'a lead' if action == 'lead' else 'an annotator'} now.")


def _has_browser() -> bool:
    """Whether somebody sits before this machine; elsewhere a browser in the terminal might open."""
    windows = sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return sys.stdout.isatty() and windows

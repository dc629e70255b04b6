"""`accuacl project serve`: who may come in, where it listens, and the server itself."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project
from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.guard import Hosts, is_loopback
from accuacl.labeling.web.trainer import Trainer

LOUD = """\
WARNING: listening on {host}, not only on this machine. Everyone who can reach {host}:{port} can try to log in{plain}.
Leave out --host to keep it to this machine."""
PLAIN = ", and\nwithout --cert and --key everything, tokens too, crosses the network unencrypted"


def serve(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    people: Sequence[str] = (),
    allow_host: Sequence[str] = (),
    cert: Path | None = None,
    key: Path | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the page until interrupted.

    Each of `people` who is not there yet gets a login link, printed once: only the hash of its token is kept. Someone
    who is there already gets a new one, and the old one ends. With nobody known and nobody named it is the user.
    """
    if (cert is None) != (key is None):
        raise InputError("--cert and --key go together; give both or neither.")
    listener = _listen(host, port)
    try:
        port = listener.getsockname()[1]
        if not is_loopback(host):
            say(LOUD.format(host=host, port=port, plain="" if cert else PLAIN))
        where = f"{'https' if cert else 'http'}://{_in_url(_reachable(host))}:{port}"
        invited = _invite(project, people)
        for name, token in invited:
            say(f"{name}: {where}/login#token={token}")
        if not invited:
            known = [person.name for person in project.store.people() if not person.revoked]
            say(f"known here: {', '.join(known)}. Whoever has lost their link gets a new one by --person NAME.")
        say(f"{where} (stop with Ctrl+C)")
        trainer = Trainer(project)
        app = make_app(project, Hosts(host, [*allow_host, _reachable(host)]), trainer)
        with contextlib.suppress(KeyboardInterrupt):
            _run(app, listener, cert, key)
        if not trainer.stop(0):
            os._exit(0)  # in the middle of a long step, which is done again: what counts is on the disk already
    finally:
        listener.close()


def _run(app: FastAPI, listener: socket.socket, cert: Path | None, key: Path | None) -> None:
    """Until interrupted. No access log and no headers of proxies: neither is needed, and both could be abused."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=5,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _invite(project: Project, people: Sequence[str]) -> list[tuple[str, str]]:
    """Names and tokens to print."""
    known = {person.name for person in project.store.people() if not person.revoked}
    wanted = list(dict.fromkeys(people)) or ([] if known else [_user()])
    invited = []
    for name in wanted:
        if name in known:
            project.store.revoke(name)
        invited.append((name, project.store.add_person(name)))
    return invited


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return "me"


def _listen(host: str, port: int) -> socket.socket:
    """Bound before anything is printed, so that what is printed is true."""
    with contextlib.ExitStack() as stack:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            raise InputError(
                f"cannot listen on {host}, port {port} ({error}); give another --host or --port."
            ) from error
        stack.pop_all()  # it is the caller's to close
    return listener


def _reachable(host: str) -> str:
    """An address to open, where it listens on all of them."""
    return socket.gethostname() if host in ("0.0.0.0", "::") else host


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host

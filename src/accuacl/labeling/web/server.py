"""`accuacl project serve`: where it listens, who gets a login link, and the server itself."""

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
from accuacl.base.files import reason
from accuacl.labeling.project import Project
from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.guard import Hosts, is_loopback
from accuacl.labeling.web.trainer import Trainer

WARNING = """\
WARNING: listening on {host}, not only on this machine. Everyone who can reach {host}:{port} can try to log in{plain}.
Leave out --host to keep it to this machine."""
PLAIN = ", and\nwithout --cert and --key everything, tokens too, crosses the network unencrypted"
Say = Callable[[str], None]


def serve(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    people: Sequence[str] = (),
    allow_host: Sequence[str] = (),
    cert: Path | None = None,
    key: Path | None = None,
    say: Say = lambda line: print(line, flush=True),  # at once, also into a pipe
) -> None:
    """Serve the page until interrupted.

    Once it answers requests, each of `people` gets a login link, printed once: only the hash of its token is kept. For
    someone who has one already, the old one ends. If nobody has access and nobody is named, the user gets one.
    """
    if (cert is None) != (key is None):
        raise InputError("--cert and --key go together; give both or neither.")
    listener = _listen(host, port)
    try:
        trainer = Trainer(project)
        app = make_app(project, Hosts(host, [*allow_host, _reachable(host)]), trainer)
        url = f"{'https' if cert else 'http'}://{_in_url(_reachable(host))}:{listener.getsockname()[1]}"

        def announce() -> None:
            if not is_loopback(host):
                say(WARNING.format(host=host, port=listener.getsockname()[1], plain="" if cert else PLAIN))
            _invite(project, people, url, say)
            say(f"{url} (stop with Ctrl+C)")

        with contextlib.suppress(KeyboardInterrupt):
            _run(app, listener, cert, key, announce)
        if not trainer.stop(0):
            os._exit(0)  # in the middle of a long step, which is repeated at the next start; labels are on the disk
    finally:
        listener.close()


class _Server(uvicorn.Server):
    """Calls a function as soon as it answers requests."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()


def _run(
    app: FastAPI, listener: socket.socket, cert: Path | None, key: Path | None, on_start: Callable[[], None]
) -> None:
    """Serve until interrupted. No access log and no headers of proxies: neither is needed, and both can be abused."""
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
    try:
        config.load()
    except OSError as error:  # SSLError is one
        raise InputError(
            f"--cert {cert} and --key {key} cannot be used: {reason(error)}; give a certificate and its key as PEM."
        ) from error
    _Server(config, on_start).run(sockets=[listener])


def _invite(project: Project, people: Sequence[str], url: str, say: Say) -> None:
    """Print a login link for each of the people, or say who has one."""
    known = [person.name for person in project.store.people() if not person.revoked]
    wanted = list(dict.fromkeys(people)) or ([] if known else [_user()])
    for name in wanted:
        if name in known:
            project.store.revoke(name)
        say(f"{name}: {url}/login#token={project.store.add_person(name)}")
    if not wanted:
        say(f"{', '.join(known)} can log in with the links they have; --person NAME prints a new one.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return "me"


def _listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; they wait until the server answers."""
    with contextlib.ExitStack() as stack:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
        except OSError as error:
            raise InputError(
                f"cannot listen on {host}, port {port}: {reason(error)}; give another --host or --port."
            ) from error
        stack.pop_all()  # the caller closes it
    return listener


def _reachable(host: str) -> str:
    """The host to open in a browser: this machine's name if the server listens on all addresses."""
    return socket.gethostname() if host in ("0.0.0.0", "::") else host


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host

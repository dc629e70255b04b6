"""`accuacl project serve`: where it listens, who gets a login link, and the server itself."""

from __future__ import annotations

import contextlib
import gc
import getpass
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.base.machine import end_as_if_interrupted, raise_file_limit
from accuacl.labeling.project import Project
from accuacl.labeling.store import Store
from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.connections import BoundedProtocol, RateLimitFilter, ServerConfig
from accuacl.labeling.web.guard import Hosts, check_public_url, host_name, is_loopback
from accuacl.labeling.web.incoming import Places
from accuacl.labeling.web.session import ProxyLogin
from accuacl.labeling.web.several import ProjectIndex, invitation, make_index
from accuacl.labeling.web.trainer import Trainer

WARNING = """\
WARNING: listening on {host}, not only on this machine. Everyone who can reach {host}:{port} can try to log in{plain}.
Leave out --host to keep it to this machine."""
PLAIN = ", and\nwithout --cert and --key everything, tokens too, crosses the network unencrypted"
FILES = 8192  # open files that the process may have
Say = Callable[[str], None]


def serve(
    served: Project | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    people: Sequence[str] = (),
    allow_host: Sequence[str] = (),
    cert: Path | None = None,
    key: Path | None = None,
    public_url: str = "",
    places: Places | None = None,
    proxy: ProxyLogin | None = None,
    open_browser: Callable[[str], object] | None = None,
    say: Say = lambda line: print(line, flush=True),  # at once, also into a pipe
) -> None:
    """Serve the page of a project until interrupted; of a folder: all its projects, below an index.

    Once it answers requests, a link is printed for each of `people`, with which they can log in once; links of theirs
    that have not been used end. If nobody is named and nobody is logged in, the user gets one; if they are new or the
    project has no lead, they lead it. Links to an index make people leads of every project.
    public_url: the address that people open, if a proxy stands before the server. places: folders that leads may add
    data from. proxy: one that says who is asking. open_browser: called with the user's link, or the page's address.
    """
    public_url = check_public_url(public_url)
    if (cert is None) != (key is None):
        raise InputError("--cert and --key go together; give both or neither.")
    listener = _listen(host, port)
    try:
        hosts = Hosts(host, [*allow_host, _reachable(host)], public_url)
        app: Any
        if isinstance(served, Project):
            trainer, store = Trainer(served), served.store
            app, stop = make_app(served, hosts, trainer, places, "", proxy), trainer.stop
        else:
            index = ProjectIndex(served, hosts, places, proxy)
            app, stop, store = make_index(index), index.stop, index.store
        own_url = f"{'https' if cert else 'http'}://{_in_url(_reachable(host))}:{listener.getsockname()[1]}"
        url = public_url or own_url

        def announce() -> None:
            if not is_loopback(host):
                say(WARNING.format(host=host, port=listener.getsockname()[1], plain="" if cert else PLAIN))
            links = _invite(store, people, url, say, leads=not isinstance(served, Project))
            say(f"{url} (stop with Ctrl+C)")
            if open_browser is not None:
                threading.Thread(target=open_browser, args=(links[0] if links else url,), daemon=True).start()

        with contextlib.suppress(KeyboardInterrupt):
            _run(app, listener, cert, key, announce)
        store.checkpoint()
        if not stop(0):
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


def _run(app: Any, listener: socket.socket, cert: Path | None, key: Path | None, on_start: Callable[[], None]) -> None:
    """Serve until interrupted."""
    config = config_of(app, cert, key)
    try:
        config.load()
    except OSError as error:
        why = "they do not fit" if isinstance(error, ssl.SSLError) else reason(error)
        raise InputError(
            f"--cert {cert} and --key {key} cannot be used: {why}; give a certificate and its key as PEM."
        ) from error
    raise_file_limit(FILES)
    gc.freeze()  # what is loaded stays: going through it would stop all threads
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(RateLimitFilter())
    if threading.current_thread() is threading.main_thread():
        end_as_if_interrupted()
    _Server(config, on_start).run(sockets=[listener])


def config_of(app: Any, cert: Path | None = None, key: Path | None = None, **more: Any) -> ServerConfig:
    """How uvicorn serves. No access log and no headers of proxies: neither is needed, and both can be abused."""
    return ServerConfig(
        app,
        **{"http": BoundedProtocol} | more,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=5,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )


def _invite(store: Store, people: Sequence[str], url: str, say: Say, leads: bool) -> list[str]:
    """Print a login link for each of the people, or for the user if nobody is logged in, or say who is; the links."""
    inside = [person.name for person in store.logged_in()]
    tokens = {name: invitation(store, name, leads or None) for name in dict.fromkeys(people)}
    if not people and not inside:
        tokens = {_user(): _own_invitation(store, leads)}
    links = []
    for name, token in tokens.items():
        links.append(f"{url}/login#token={token}")
        say(f"{name}: {links[-1]}")
    if links:
        where = ", on this computer only" if is_loopback(host_name(url.partition("://")[2])) else ""
        say(f"Each link works once, within a week{where}; the person who used it stays logged in.")
    else:
        say(f"{', '.join(inside)} can go on where they are logged in; --person NAME prints a new link.")
    return links


def _own_invitation(store: Store, leads: bool) -> str:
    """For the user, who leads if they are new or nobody else does."""
    living = [person for person in store.people() if not person.revoked]
    new = _user() not in [person.name for person in living]
    return invitation(store, _user(), True if leads or new or not any(person.lead for person in living) else None)


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

"""Small projects and their servers, for tests of the page."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import shutil
import socket
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest
import uvicorn
from fastapi.routing import APIRoute
from PIL import Image, ImageDraw

from accuacl.base.progress import Progress, ignore
from accuacl.labeling.project import Project, make, read_images
from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.guard import Hosts
from accuacl.labeling.web.incoming import Places
from accuacl.labeling.web.server import config_of
from accuacl.labeling.web.session import ProxyLogin
from accuacl.labeling.web.several import ProjectIndex, make_index
from accuacl.labeling.web.site import Limit
from accuacl.labeling.web.trainer import Trainer
from effort import PATIENCE, wait_until

STRANGE = "<img src=x onerror=alert(1)>.png"  # a file's name


@contextlib.contextmanager
def image_project(folder: Path, per_round: int = 4, rounds: int = 2, epochs: int = 3) -> Iterator[Project]:
    """Cats are red and dogs are blue, more or less; a small net learns them from scratch."""
    images = folder / "images"
    images.mkdir(parents=True)
    for i in range(40):
        name = STRANGE if i == 1 else f"{i:03}.png"
        picture(i).save(images / name)
    sizes = {"image_size": 32, "per_round": per_round, "rounds": rounds, "epochs": epochs}
    settings = make({"kind": "images", "model": "conv4", "strategy": "accuacl"} | sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it learns from scratch
        project = Project.create(folder / "project", settings, ["cat", "dog"])
    with project:
        project.add(read_images(images, ignore))
        yield project


def picture(seed: int) -> Image.Image:
    """A disc on a background, in colours that tell the class, with noise."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (96, 64), tuple(rng.integers(150, 240, 3).tolist()))
    red, blue = (200, 40) if seed % 2 == 0 else (40, 200)
    x, y = rng.integers(5, 50), rng.integers(2, 20)
    ImageDraw.Draw(image).ellipse((x, y, x + 40, y + 40), fill=(red, int(rng.integers(30, 90)), blue))
    return image


class TestTrainer(Trainer):
    """Checks often, and can be held: before a training that may still be undone, and while it trains."""

    __test__ = False

    def __init__(self, project: Project) -> None:
        super().__init__(project, every=0.1, grace=0.0)
        self.may_start, self.may_go_on = threading.Event(), threading.Event()
        self.may_start.set()
        self.may_go_on.set()
        self.checks = 0

    def stop(self, wait: float = PATIENCE) -> bool:
        self._stopping.set()
        self.may_start.set()
        self.may_go_on.set()
        return super().stop(wait)

    def has_chosen(self) -> bool:
        """Whether all of the round is chosen."""
        return not self.project.state().ready

    def _wait_for_undo(self) -> bool:
        self.may_start.wait(PATIENCE)
        return super()._wait_for_undo()

    def _check(self) -> None:
        super()._check()
        self.checks += 1

    def _report(self, progress: Progress) -> None:
        super()._report(progress)
        self.may_go_on.wait(PATIENCE)


def browse(address: str) -> httpx.Client:
    """Someone who is not logged in."""
    return httpx.Client(base_url=address, timeout=PATIENCE)


def log_in(client: httpx.Client, project: Project, name: str = "", lead: bool | None = None) -> str:
    """As a new person, whose name is given back; lead None: if there is no other."""
    name = name or f"person {len(project.store.people())}"
    assert client.post("/api/login", json={"token": project.store.add_person(name, lead)}).status_code == 200
    return name


class Raw(NamedTuple):
    status: int
    body: bytes


def raw(address: str, method: str, path: str, headers: dict[str, str]) -> Raw:
    """A request as it is, with nothing in it made proper."""
    scheme, _, host = address.partition("://")
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    line = kind(host, timeout=PATIENCE)
    try:
        line.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            line.putheader(name, value)
        line.endheaders()
        answer = line.getresponse()
        return Raw(answer.status, answer.read())
    finally:
        line.close()


def certificate(folder: Path) -> dict[str, Path]:
    """A certificate that 127.0.0.1 has signed itself, and its key, as `running` takes them."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl command to make a certificate with")
    files = {"cert": folder / "cert.pem", "key": folder / "key.pem"}
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files["cert"]), "-keyout", str(files["key"])]
    subprocess.run(command, check=True, capture_output=True)
    return files


class StoppingServer(uvicorn.Server):
    """On a busy machine requests may still be on their way when the time to finish them is over: their connections are
    closed, and not left to the garbage collector, which would complain in a later test."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.drop()
        await asyncio.sleep(0)  # the loop reports that they are lost


@contextlib.contextmanager
def running(
    project: Project,
    port: int = 0,
    trainer: Trainer | None = None,
    public_url: str = "",
    places: Places | None = None,
    proxy: ProxyLogin | None = None,
    **more,
) -> Iterator[str]:
    """A real server on the loopback interface; its address."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        hosts = Hosts("127.0.0.1", public_url=public_url)
        app = make_app(project, hosts, trainer or TestTrainer(project), places, "", proxy)
        config = config_of(app, **more)
        config.timeout_graceful_shutdown = 2
        server = StoppingServer(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started and project.store.status())  # there is something to label
            if trainer is None:
                wait_until(lambda: not project.state().ready)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


@contextlib.contextmanager
def serving(
    folder: Path, proxy: ProxyLogin | None = None, places: Places | None = None
) -> Iterator[tuple[str, ProjectIndex]]:
    """A real server of a folder of projects; its address and its index."""
    index = ProjectIndex(folder, Hosts("127.0.0.1"), places or Places(), proxy)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = StoppingServer(config_of(make_index(index)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", index
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            for app in index.apps.values():
                app.state.site.project.close()
            index.store.close()


def routes(project: Project) -> list[APIRoute]:
    """All that people and scripts can ask for; recent versions of FastAPI keep those of included routers to these."""
    every = make_app(project).routes
    every = [inner for route in every for inner in getattr(getattr(route, "original_router", None), "routes", [route])]
    found = [route for route in every if isinstance(route, APIRoute)]
    assert {"/", "/login", "/api/label", "/item/{item}/image", "/people"} <= {route.path for route in found}
    return found


def no_time_passes(monkeypatch: pytest.MonkeyPatch, burst: int | None = None) -> None:
    """What people may do at once does not grow while a test runs, however long its requests take; it may be less."""
    now, wait = time.monotonic(), Limit.wait

    def wait_now(limit: Limit, *given: int) -> float:
        limit._clock = lambda: now
        if burst is not None:
            monkeypatch.setattr(limit, "burst", burst)
        return wait(limit, *given)

    monkeypatch.setattr(Limit, "wait", wait_now)


def link(address: str, project: Project, name: str) -> str:
    """What a new person is given to open."""
    return f"{address}/login#token={project.store.add_person(name)}"

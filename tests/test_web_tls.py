"""HTTPS: answers arrive whole, the cookie is for HTTPS alone, and half-done handshakes lock nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import ssl
import subprocess
import sys

import httpx
import numpy as np
import pytest
from PIL import Image

from accuacl.labeling.web.connections import BoundedProtocol
from effort import wait_until
from web_browser import browser
from web_project import PATIENCE, certificate, image_project, link, log_in, running

CLI = "from accuacl.cli import main; main()"
SMALL = 4096  # bytes that a kernel keeps for a connection, about
LARGE = 1_000_000  # bytes that it does not
HELLO = b"\x16\x03\x01\x02\x00\x01"  # how the first message of a handshake begins


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with image_project(tmp_path_factory.mktemp("tls")) as project:
        noise = np.random.default_rng(0).integers(0, 255, (600, 600, 3), np.uint8)
        Image.fromarray(noise).save(project.item(0).path)
        yield project


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("certificate"))


@contextlib.contextmanager
def serving(project, pair, **limits):
    """A server with these limits: its address, and all connections that it ever had."""
    made = []

    class Watched(BoundedProtocol):
        def connection_made(self, transport):
            if self not in made:
                made.append(self)
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
            super().connection_made(transport)

    for name, limit in limits.items():
        setattr(Watched, name, limit)
    with running(project, http=Watched, **pair) as address:
        yield address.replace("http://", "https://"), made


def trust(pair):
    return ssl.create_default_context(cafile=pair["cert"])


def browse(address, pair):
    return httpx.Client(base_url=address, timeout=PATIENCE, verify=trust(pair))


def connect(address):
    """Without a handshake. The kernel keeps little that is not read."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    line.settimeout(PATIENCE)
    line.connect(("127.0.0.1", int(address.rpartition(":")[2])))
    return line


def ask(address, pair, path, cookies=None, more=()):
    """A request whose answer nobody has read yet."""
    cookie = "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", f"Cookie: {cookie}", *more, "", ""]
    line = trust(pair).wrap_socket(connect(address), server_hostname="127.0.0.1")
    line.sendall("\r\n".join(lines).encode())
    return line


def is_closed(line):
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


def test_answers_arrive_whole_on_a_connection_that_is_kept(project, pair):
    with serving(project, pair) as (address, made), browse(address, pair) as client:
        assert client.get("/login").text.rstrip().endswith("</html>")
        log_in(client, project)
        for _ in range(2):
            image = client.get("/item/0/full")
            assert len(image.content) == int(image.headers["content-length"]) > LARGE
        pick = client.post("/api/next", json={}).json()["pick"]
        said = {"item": pick["item"], "class_id": 0, "request": "over-tls"}
        assert client.post("/api/label", json=said).status_code == 200
        assert pick["item"] in project.store.labels()
        assert len(made) == 1


def test_the_cookie_is_sent_over_https_alone(project, pair):
    with serving(project, pair) as (address, _), browse(address, pair) as client:
        answer = client.post("/api/login", json={"token": project.store.add_person("Cy")})
        assert re.match(r"__Host-.*; Secure", answer.headers["set-cookie"])
        assert "strict-transport-security" in answer.headers


def test_the_command_serves_https(project, pair):
    files = ["--cert", str(pair["cert"]), "--key", str(pair["key"])]
    command = [sys.executable, "-c", CLI, "project", "serve", str(project.directory), "--port", "0", "--person", "Eve"]
    process = subprocess.Popen(command + files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = re.fullmatch(r"Eve: (https://127\.0\.0\.1:\d+)/login#\S+\n", process.stdout.readline()).group(1)
        with browse(address, pair) as client:
            assert client.get("/login").text.rstrip().endswith("</html>")
        with connect(address) as line:  # which does not keep the server from ending
            line.sendall(HELLO)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")


def test_somebody_labels_in_a_browser(project, pair):
    before = len(project.store.labels())
    with browser() as chromium, serving(project, pair) as (address, _):
        page = chromium.new_context(ignore_https_errors=True).new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(link(address, project, "Di"))
        page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
        with page.expect_response("**/api/label") as answer:
            page.keyboard.press("1")
        assert answer.value.ok
        assert len(project.store.labels()) == before + 1
        page.context.close()


def test_half_handshakes_lock_nobody_out(project, pair):
    with serving(project, pair, most=8) as (address, made), contextlib.ExitStack() as stack:
        lines = [stack.enter_context(connect(address)) for _ in range(40)]
        for line in lines[::2]:  # the others say nothing at all
            with contextlib.suppress(ConnectionError):
                line.sendall(HELLO)
        with browse(address, pair) as client:
            assert [client.get("/login").status_code for _ in range(3)] == [200] * 3
            assert all(is_closed(line) for line in lines[:30])  # those that have waited longest
            assert len(made[-1].connections) == 8
            assert made[-1] in made[-1].connections


@pytest.mark.parametrize("said", [b"", HELLO])
def test_a_handshake_must_be_done_in_time(project, pair, said):
    with serving(project, pair, read=0.2) as (address, made):
        with connect(address) as line:
            line.sendall(said)
            assert is_closed(line)
        wait_until(lambda: not made[0].connections)


def test_what_is_no_handshake_is_closed_and_forgotten(project, pair):
    with serving(project, pair) as (address, made):
        with connect(address) as line:
            line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            while line.recv(SMALL):  # an alert may come first
                pass
        wait_until(lambda: made and not made[0].connections)
        with connect(address) as line:
            line.sendall(HELLO)
        wait_until(lambda: len(made) == 2 and not made[1].connections)


def test_a_request_must_arrive_in_time_after_the_handshake(project, pair):
    with (
        serving(project, pair, read=0.2) as (address, _),
        trust(pair).wrap_socket(connect(address), server_hostname="127.0.0.1") as line,
    ):
        with contextlib.suppress(ConnectionError):
            line.sendall(b"GET /login HTTP/1.1\r\nHost: ")
        assert is_closed(line)


@pytest.mark.parametrize("path", ["/item/0/full", "/static/gallery.js"])  # in many pieces, or in one
@pytest.mark.parametrize("more", [[], ["Connection: close"]])
def test_an_answer_must_be_read_in_time(project, pair, path, more):
    with serving(project, pair, write=0.05) as (address, made):
        with browse(address, pair) as client:
            log_in(client, project)
            cookies = dict(client.cookies)
        with ask(address, pair, path, cookies, more):
            wait_until(lambda: len(made) == 2 and not made[1].connections)


def test_whoever_reads_slowly_gets_all_of_it(project, pair, monkeypatch):
    """asyncio once closed connections that had not been read to their end 30 seconds after the answer."""
    monkeypatch.setattr(asyncio.constants, "SSL_SHUTDOWN_TIMEOUT", 0.01)
    with serving(project, pair) as (address, made):
        with browse(address, pair) as client:
            log_in(client, project)
            cookies = dict(client.cookies)
        with ask(address, pair, "/item/0/full", cookies, ["Connection: close"]) as line:
            wait_until(lambda: len(made) == 2 and made[1].transport is not None and made[1].transport.is_closing())
            loop, later = made[1].loop, []
            loop.call_soon_threadsafe(loop.call_later, 0.05, later.append, True)
            wait_until(lambda: later)
            got = 0
            while data := line.recv(2**16):
                got += len(data)
        assert got > LARGE


def test_who_does_not_say_goodbye_is_dropped(project, pair):
    """The answer has been taken, but the peer neither closes the connection nor answers that the server does."""
    with serving(project, pair, read=0.2) as (address, made), ask(address, pair, "/login", more=["Connection: close"]):
        wait_until(lambda: made and not made[0].connections)

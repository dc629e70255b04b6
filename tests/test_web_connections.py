"""Strangers lock nobody out: half requests, answers that nobody reads, requests without end."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import time

import numpy as np
import pytest
from PIL import Image

from accuacl.labeling.web.connections import BoundedProtocol, RateLimitFilter
from effort import wait_until
from web_project import PATIENCE, browse, image_project, log_in, running

SMALL = 4096  # bytes that a kernel keeps for a connection, about
LARGE = 1_000_000  # bytes that it does not
ASK = b"GET /static/gallery.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with image_project(tmp_path_factory.mktemp("connections")) as project:
        noise = np.random.default_rng(0).integers(0, 255, (600, 600, 3), np.uint8)
        Image.fromarray(noise).save(project.item(0).path)
        yield project


def half_a_request(server):
    line = socket.create_connection(server.removeprefix("http://").split(":"), timeout=PATIENCE)
    line.sendall(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
    return line


def is_closed(line):
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


class Few(BoundedProtocol):
    most = 8


class Hasty(BoundedProtocol):
    read, rate = 0.2, 1000.0


def test_half_requests_lock_nobody_out(project):
    with running(project, http=Few) as server, contextlib.ExitStack() as stack:
        lines = [stack.enter_context(half_a_request(server)) for _ in range(40)]
        with browse(server) as client:
            assert [client.get("/login").status_code for _ in range(3)] == [200] * 3
            assert all(is_closed(line) for line in lines[:30])  # those that have waited longest


def test_a_request_must_arrive_in_time(project):
    with running(project, http=Hasty) as server, browse(server) as client:
        with half_a_request(server) as line:
            assert is_closed(line)
        with socket.create_connection(server.removeprefix("http://").split(":"), timeout=PATIENCE) as line:
            assert is_closed(line)  # nor may it be kept open without one
        with half_a_request(server) as line:
            for _ in range(200):  # a byte now and then does not help
                time.sleep(0.02)
                with contextlib.suppress(ConnectionError):
                    line.sendall(b"x")
                if select.select([line], [], [], 0)[0]:
                    break
            assert is_closed(line)
        with socket.create_connection(server.removeprefix("http://").split(":"), timeout=PATIENCE) as line:
            line.sendall(b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n")
            line.sendall(b"Content-Length: 9000\r\n\r\n{")
            assert is_closed(line)
        assert client.get("/login").status_code == 200


def test_the_same_warning_is_logged_once_in_a_while():
    records = [logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "Invalid HTTP request", (), None)] * 100
    seldom = RateLimitFilter()
    assert sum(seldom.filter(record) for record in records) == 1
    other = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "something else", (), None)
    assert seldom.filter(other)
    bug = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "Exception", (), (ValueError, ValueError(), None))
    assert seldom.filter(bug)
    assert seldom.filter(bug)


def watched(**limits):
    """A protocol with these limits, whose connections are all remembered. The kernel takes little of an answer that is
    not read, the rest stays with the server.
    """
    made = []

    class Watched(BoundedProtocol):
        def connection_made(self, transport):
            made.append(self)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
            super().connection_made(transport)

    for name, limit in limits.items():
        setattr(Watched, name, limit)
    return Watched, made


def ask_and_never_read(server, requests=ASK):
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    line.settimeout(PATIENCE)
    line.connect(("127.0.0.1", int(server.rpartition(":")[2])))
    line.sendall(requests)
    return line


def ask_for_large_image(server, project, more=()):
    """Somebody who is logged in can ask for more than a kernel takes."""
    with browse(server) as client:
        log_in(client, project)
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items()).encode()
    lines = [b"GET /item/0/full HTTP/1.1", b"Host: 127.0.0.1", b"Cookie: " + cookie, *more, b"", b""]
    return ask_and_never_read(server, b"\r\n".join(lines))


def test_unread_answers_lock_nobody_out(project):
    """A newcomer was once reset as long as 400 strangers did not read their answers."""
    protocol, made = watched(most=8)
    with running(project, http=protocol) as server, contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(ask_and_never_read(server, 20 * ASK))
        wait_until(lambda: len(made) == 8 and all(one.flow.write_paused for one in made))
        with browse(server) as client:
            assert [client.get("/login").status_code for _ in range(3)] == [200] * 3
        assert sum(one.transport.is_closing() for one in made[:8]) == 1


def test_who_has_not_read_for_longest_gives_way(project):
    protocol, made = watched()
    with running(project, http=protocol) as server, contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(ask_for_large_image(server, project))
            wait_until(lambda: made[-1].flow.write_paused)
        unread = [one for one in made if one.flow.write_paused]
        wait_until(lambda: unread[0].connections == set(unread))  # those that have logged in are gone
        protocol.most = 3
        with browse(server) as client:
            assert client.get("/login").status_code == 200
        assert [one.transport.is_closing() for one in unread] == [True, False, False]


def test_a_newcomer_is_let_in_even_if_all_others_are_being_served(project, monkeypatch):
    protocol, made = watched(most=8)
    monkeypatch.setattr(protocol, "serving", True)
    with running(project, http=protocol) as server, contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(ask_and_never_read(server))
        wait_until(lambda: len(made) == 8)
        with browse(server) as client:
            assert client.get("/login").status_code == 200


@pytest.mark.parametrize("more", [[], [b"Connection: close"]])  # the server has closed its end of the second one
def test_an_answer_must_be_read_in_time(project, more):
    protocol, made = watched(write=0.05)
    with running(project, http=protocol) as server, ask_for_large_image(server, project, more):
        wait_until(lambda: len(made) == 2 and not made[1].connections)
        with browse(server) as client:
            assert client.get("/login").status_code == 200


def test_whoever_reads_slowly_gets_all_of_it(project):
    """Each time that the limit is checked, the peer has taken a little more."""
    protocol, made = watched(write=1000.0)
    with (
        running(project, http=protocol) as server,
        ask_for_large_image(server, project, [b"Connection: close"]) as line,
    ):
        wait_until(lambda: len(made) == 2 and made[1].flow.write_paused)
        slow, got = made[1], 0
        for _ in range(3):
            left = slow.transport.get_write_buffer_size()
            while slow.transport.get_write_buffer_size() == left:
                got += len(line.recv(2**16))
            unread = slow._unread
            slow.loop.call_soon_threadsafe(slow._check)
            wait_until(lambda unread=unread: slow._unread < unread)
        while data := line.recv(2**16):
            got += len(data)
        assert got > LARGE


def test_few_requests_may_be_sent_ahead(project):
    protocol, _ = watched(ahead=3)
    with running(project, http=protocol) as server, ask_and_never_read(server, 50 * ASK) as line:
        answers = b""
        while data := line.recv(2**16):
            answers += data
        assert answers.count(b"HTTP/1.1 200 OK") == 1 + 3
        assert answers.count(b"connection: close") == 1


def test_half_a_request_sent_ahead_must_arrive_in_time_too(project):
    protocol, _ = watched(read=0.5)
    with running(project, http=protocol) as server, ask_and_never_read(server, ASK + ASK[:20]) as line:
        answer = line.recv(2**16)
        while not answer.endswith(b"load().then(watch);\n"):
            answer += line.recv(2**16) or pytest.fail("the answer is not complete")
        with contextlib.suppress(ConnectionError):
            line.sendall(ASK[20:30])  # this ends uvicorn's own limit
        assert is_closed(line)

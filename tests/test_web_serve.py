"""`accuacl project serve`: where it listens, what it says, whom it lets in."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from accuacl.base.errors import InputError
from accuacl.labeling.client import Client
from accuacl.labeling.store import Store
from accuacl.labeling.web import serve, server as module
from web_project import PATIENCE

pytestmark = pytest.mark.posix

CLI = "from accuacl.cli import main; main()"


@pytest.fixture
def said(monkeypatch):
    """What would have been printed; nothing is served."""
    monkeypatch.setattr(module, "_run", lambda app, listener, cert, key, on_start: on_start())
    monkeypatch.setattr(module.Trainer, "stop", lambda self, wait=0: True)
    return []


@pytest.mark.parametrize("several", [False, True], ids=["a project", "a folder for projects"])
def test_the_command_serves_this_machine_alone(project, tmp_path, several):
    place = tmp_path / "projects" if several else project.directory
    place.mkdir(exist_ok=True)
    command = [sys.executable, "-c", CLI, "project", "serve", str(place), "--port", "0", "--person", "Ada"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered)
    try:
        link, once, where = (process.stdout.readline() for _ in range(3))
        address, token = re.fullmatch(r"Ada: (http://127\.0\.0\.1:\d+)/login#token=(\S+)\n", link).groups()
        assert once.startswith("Each link works once")
        assert where.startswith(address)
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            assert client.get("/").status_code == 401
            assert client.post("/api/login", json={"token": token}).status_code == 200
            assert client.get("/").status_code == 200
        assert listening(int(address.rpartition(":")[2])) == {"0100007F"}  # 127.0.0.1
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert token not in errors
    assert errors == ""


def test_what_was_labelled_is_in_the_file_itself_when_the_server_has_stopped(project, tmp_path):
    """Also if somebody else keeps the write-ahead log, as this process does."""
    command = [sys.executable, "-c", CLI, "project", "serve", str(project.directory), "--port", "0", "--person", "Ada"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with Client(process.stdout.readline().partition(": ")[2].strip()) as ada:
            example = ada.wait(PATIENCE)
            ada.label(example, "dog")
        file = project.directory / "labels.sqlite"
        log = file.with_name(f"{file.name}-wal")
        assert log.stat().st_size > 0
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert log.stat().st_size == 0
    (tmp_path / "alone.sqlite").write_bytes(file.read_bytes())
    with Store(tmp_path / "alone.sqlite") as store:
        assert store.labels() == {example.item: 1}


def listening(port):
    """On which addresses, as Linux writes them."""
    rows = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
    return {row.partition(":")[0] for row in rows if int(row.partition(":")[2], 16) == port}


def test_nothing_is_printed_and_nobody_invited_before_it_answers(project, monkeypatch):
    said = []

    def run(app, listener, cert, key, on_start):
        assert said == []
        assert project.store.people() == []
        socket.create_connection(listener.getsockname(), timeout=PATIENCE).close()
        on_start()

    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module.Trainer, "stop", lambda self, wait=0: True)
    serve(project, port=0, people=["Ada"], say=said.append)
    assert "/login#token=" in said[0]


def test_a_server_that_cannot_start_invites_nobody(project, tmp_path):
    (tmp_path / "cert.pem").write_text("no certificate")
    said = []
    with pytest.raises(InputError, match=r"--cert .*cert\.pem and --key .*nowhere\.pem cannot be used"):
        serve(project, port=0, cert=tmp_path / "cert.pem", key=tmp_path / "nowhere.pem", say=said.append)
    assert said == []
    assert project.store.people() == []


def test_other_machines_are_said_loudly(project, said, monkeypatch):
    listen = module._listen
    monkeypatch.setattr(module, "_listen", lambda host, port: listen("127.0.0.1", port))  # tests stay on loopback
    serve(project, host="0.0.0.0", port=0, say=said.append)
    assert said[0].startswith("WARNING: listening on 0.0.0.0, not only on this machine.")
    assert "unencrypted" in said[0]
    said.clear()
    serve(project, port=0, say=said.append)
    assert not any("WARNING" in line for line in said)


def test_the_user_is_let_in_when_nobody_is_known(project, said):
    serve(project, port=0, say=said.append)
    assert len(project.store.people()) == 1
    assert "/login#token=" in said[0]
    assert project.store.enter(said[0].partition("token=")[2]) is not None
    said.clear()
    serve(project, port=0, say=said.append)  # known now, by a cookie
    assert not any("token=" in line for line in said)
    assert said[0].endswith("can go on where they are logged in; --person NAME prints a new link.")


def test_a_link_that_was_never_used_is_printed_anew(project, said):
    for _ in range(2):
        serve(project, port=0, say=said.append)
    first, again = (line.partition("token=")[2] for line in said if "token=" in line)
    assert project.store.enter(first) is None
    session = project.store.enter(again)
    assert [(person.name, person.lead) for person in project.store.people()] == [(module._user(), True)]
    project.store.leave(session)
    said.clear()
    serve(project, port=0, say=said.append)  # nobody is logged in any more
    assert "token=" in said[0]


@pytest.mark.parametrize("by", ["imported", "me"])
def test_people_whose_labels_came_in_a_file_cannot_log_in(project, said, monkeypatch, by):
    monkeypatch.setattr(module, "_user", lambda: "me")
    project.store.person_named(by)
    serve(project, port=0, say=said.append)
    assert said[0].startswith("me: http")
    assert {person.name: person.lead for person in project.store.people()} == {by: False} | {"me": True}
    assert project.store.enter(said[0].partition("token=")[2])
    said.clear()
    serve(project, port=0, say=said.append)
    assert said[0].startswith("me can go on")


def test_the_browser_opens_at_the_users_link(project, said):
    opened = queue.Queue()
    serve(project, port=0, say=said.append, open_browser=opened.put)
    link = opened.get(timeout=PATIENCE)
    assert f": {link}" in said[0]
    assert project.store.enter(link.partition("token=")[2]) is not None
    serve(project, port=0, say=said.append, open_browser=opened.put)
    assert opened.get(timeout=PATIENCE) == said[-1].removesuffix(" (stop with Ctrl+C)")  # logged in already


def test_links_lead_to_the_public_address(project, said):
    serve(project, port=0, people=["Ada"], public_url="https://Label.example.org/", say=said.append)
    assert said[0].startswith("Ada: https://label.example.org/login#token=")


def test_a_new_link_ends_the_old_one(project, said):
    tokens = []
    for _ in range(2):
        serve(project, port=0, people=["Ada", "Bob", "Ada"], say=said.append)
        tokens.append(said[0].partition("token=")[2])
        said.clear()
    assert project.store.person_of(tokens[0]) is None
    assert project.store.person_of(tokens[1]).name == "Ada"


def test_wrong_places_are_told(project, said, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match=r"cannot listen on 127\.0\.0\.1, port"):
            serve(project, port=taken.getsockname()[1], say=said.append)
    with pytest.raises(InputError, match=r"cannot listen on no\.such\.host\.invalid"):
        serve(project, host="no.such.host.invalid", say=said.append)
    with pytest.raises(InputError, match="--cert and --key go together"):
        serve(project, cert=tmp_path / "cert.pem", say=said.append)
    assert said == []

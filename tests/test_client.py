"""The client for programs: it waits, labels, skips and logs out, over HTTP and HTTPS, and says what is wrong."""

from __future__ import annotations

import http.server
import threading

import pytest

from accuacl import InputError
from accuacl.labeling import client as module
from accuacl.labeling.client import Client, Refused, ServerUnreachable
from web_project import TestTrainer, certificate, running


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    from web_project import image_project

    with image_project(tmp_path_factory.mktemp("client")) as project, running(project) as address:
        yield project, address


def test_a_link_does_and_everything_that_is_answered_is_kept(server):
    project, address = server
    with Client(f"{address}/login#token={project.store.add_person('link')}") as client:
        example = client.wait(0)
        assert example.kind == "image"
        assert client.image(example).startswith(b"\x89PNG")
        assert client.wait() is example  # until it is answered
        client.skip(example)
        assert (client.phase, client.classes) == ("labelling", ["cat", "dog"])
        second = client.wait()
        client.label(second, "dog")
        with pytest.raises(InputError, match="there is no class 'cow'; a lead can add it, and the classes are 'cat'"):
            client.label(client.wait(), "cow")
    assert project.store.history(example.item)[-1].kind == "skip"
    assert project.store.labels()[second.item] == 1
    assert "link" not in [person.name for person in project.store.logged_in()]


def test_an_item_that_is_not_held_is_refused_with_the_servers_sentence(server):
    project, address = server
    with Client(address, project.store.add_person("late")) as client:
        example = client.wait(0)
        client._post("/api/release", {"item": example.item})
        others = Client(address, project.store.add_person("early"))
        taken = others.wait(0)
        others.label(taken, "cat")
        with pytest.raises(Refused) as refused:
            client.label(taken, "dog")
        assert refused.value.status == 409
        others.finish()


def test_it_waits_in_vain_for_so_many_seconds_and_no_longer(project):
    trainer = TestTrainer(project)
    with running(project, trainer=trainer) as address, Client(address, project.store.add_person("robot")) as client:
        trainer.may_start.clear()  # so that nothing is learned
        while client._state.get("labelled", 0) + client._state.get("skipped", 0) < project.settings.per_round:
            client.label(client.wait(), "cat")
        with pytest.raises(TimeoutError, match=r"nothing to label within 0.1 seconds \(waiting\)"):
            client.wait(0.1)
        trainer.may_start.set()
        assert client.wait() is not None


def test_over_https_with_the_file_that_signed_the_certificate(project, tmp_path):
    pair = certificate(tmp_path)
    with running(project, **pair) as address:
        address, token = address.replace("http://", "https://"), project.store.add_person("robot")
        with pytest.raises(InputError, match=r"is not trusted .* as `ca`"):
            Client(address, token)
        with Client(address, token, ca=pair["cert"]) as client:
            client.label(client.wait(), "cat")
    assert len(project.store.labels()) == 1


@pytest.mark.parametrize(
    ("url", "token", "more", "text"),
    [
        ("127.0.0.1:8765", "x", {}, "not the address of a server"),
        ("http://user:secret@127.0.0.1", "x", {}, "not the address of a server"),
        ("http://127.0.0.1:99999", "x", {}, "not the address of a server"),
        ("http://127.0.0.1:8765", "", {}, "no token was given"),
        ("http://127.0.0.1:8765", "x", {"ca": "a.pem"}, "leave it out"),
        ("https://127.0.0.1:8765", "x", {"ca": "missing.pem"}, "missing.pem cannot be used: no such file"),
    ],
)
def test_what_is_given_wrongly(url, token, more, text):
    with pytest.raises(InputError, match=text):
        Client(url, token, **more)


def test_a_token_that_is_not_valid_and_a_server_that_is_not_there(server, tmp_path):
    _, address = server
    with pytest.raises(Refused, match="This link is not valid") as refused:
        Client(address, "no such token")
    assert refused.value.status == 401
    with pytest.raises(ServerUnreachable, match=r"no server answers at http://127\.0\.0\.1:1 "):
        Client("http://127.0.0.1:1", "x", patience=0)


class Strange(http.server.BaseHTTPRequestHandler):
    """Fails once, is too busy once, then answers with something else."""

    answers = (503, 429, 200)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.answers[min(self.server.asked, 2)]
        self.server.asked += 1
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


def test_a_busy_server_is_asked_again_and_one_that_is_not_ours_is_named(monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    with http.server.HTTPServer(("127.0.0.1", 0), Strange) as server:
        server.asked = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(InputError, match="answers, but not as accuacl does"):
            Client(f"http://127.0.0.1:{server.server_port}", "x")
        assert server.asked == 3
        server.shutdown()

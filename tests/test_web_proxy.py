"""Log-in by a proxy: its header counts, in its own requests alone, and roles follow what it says."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import threading

import pytest
from fastapi.testclient import TestClient

from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.guard import Hosts
from accuacl.labeling.web.session import proxy_login
from web_project import TestTrainer, browse, running

PROXY, OTHER = "127.0.0.2", "127.0.0.1"
BY_GROUPS = ("Remote-User", [PROXY], "Remote-Groups", ["editors"])


PEOPLE = {"Basic ada": ("ada", "staff,editors"), "Basic bob": ("bob", "staff")}


class Forward(http.server.BaseHTTPRequestHandler):
    """A small proxy: it knows who has which password, drops the headers that browsers send, and writes its own."""

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = http.client.HTTPConnection(self.server.behind, timeout=60, source_address=(PROXY, 0))
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("remote-")}
        known = PEOPLE.get(self.headers.get("Authorization", ""))
        if known:
            headers |= {"Remote-User": known[0], "Remote-Groups": known[1]}
        line.request(self.command, self.path, body, headers)
        answer = line.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "content-length", "transfer-encoding", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        line.close()

    do_GET = do_POST = forward

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def proxy_before(address):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forward) as proxy:
        proxy.behind = address.removeprefix("http://")
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}"
        finally:
            proxy.shutdown()


def test_people_come_in_by_the_proxy_with_its_roles_and_by_no_other_way(project):
    login = proxy_login(*BY_GROUPS)
    with running(project, trainer=TestTrainer(project), proxy=login) as address, proxy_before(address) as front:
        with browse(front) as client:
            assert client.get("/").status_code == 401  # the proxy says nobody
            for name in ("Remote-User", "remote-user"):
                assert client.get("/api/state", headers={name: "ada"}).status_code == 401  # and drops the browser's
            ada, bob = {"Authorization": "Basic ada"}, {"Authorization": "Basic bob"}
            assert client.get("/people", headers=ada).status_code == 200
            assert client.get("/people", headers=bob).status_code == 403
            assert client.get("/api/state", headers=bob).status_code == 200
            assert [(p.name, p.lead) for p in project.store.people()] == [("ada", True), ("bob", False)]
            project.store.set_role("bob", lead=True)  # the proxy's groups are what counts
            assert client.get("/people", headers=bob).status_code == 403
            assert not project.store.people()[1].lead
            cross = {"Origin": "http://evil.example"}
            assert client.post("/api/next", json={}, headers=ada | cross).status_code == 403
            project.store.revoke("bob")
            answer = client.get("/api/state", headers=bob)
            assert (answer.status_code, answer.json()["detail"]) == (
                403,
                "Your access to this project has ended; ask its lead.",
            )
        with browse(address) as direct:  # from another address than the proxy's
            assert direct.get("/api/state", headers={"Remote-User": "ada"}).status_code == 401
            assert direct.post("/api/login", json={"token": project.store.invite("ada")}).status_code == 200
            assert direct.get("/api/state", headers={"Remote-User": "eve"}).status_code == 200  # still ada
    assert [p.name for p in project.store.people()] == ["ada", "bob"]


@pytest.fixture
def ask(project):
    """Ask from an address, with headers: the status."""

    def asking(login, address, *headers):
        app = make_app(project, Hosts("127.0.0.1"), TestTrainer(project), proxy=login)
        client = TestClient(app, base_url="http://127.0.0.1", client=(address, 1))
        return client.get("/api/state", headers=list(headers)).status_code

    return asking


def test_who_counts_as_the_proxy(ask):
    login = proxy_login("X-Forwarded-User", ["10.1.0.0/16", "::1"])
    user = ("x-forwarded-user", "Ada")
    assert [ask(login, each, user) for each in ("10.1.2.3", "::1", "::ffff:10.1.2.3")] == [200] * 3
    for other in ("10.2.0.1", "127.0.0.1", "::2", "testclient", ""):
        assert ask(login, other, user) == 401, other
    assert ask(login, "::1") == 401
    assert ask(login, "::1", user, ("x-forwarded-user", "Eve")) == 401  # which of the two is the proxy's?
    assert ask(login, "::1", ("x-forwarded-user", " ")) == 401
    assert ask(login, "::1", ("x-forwarded-user", "a\u0001b")) == 401
    assert ask(None, "::1", user) == 401  # off unless it is asked for


def test_without_leads_of_the_proxy_the_page_says_who_leads(project, ask):
    login = proxy_login("Remote-User", ["::1"])
    assert ask(login, "::1", ("remote-user", "Ada")) == 200
    assert [(p.name, p.lead) for p in project.store.people()] == [("Ada", False)]
    project.store.set_role("Ada", lead=True)
    assert ask(login, "::1", ("remote-user", "Ada")) == 200
    assert project.store.people()[0].lead
    other = proxy_login("Remote-User", ["::1"], leads=["Grace"])
    assert ask(other, "::1", ("remote-user", "Ada")) == 200
    assert project.store.people()[0].lead  # the only one, until Grace comes
    assert ask(other, "::1", ("remote-user", "Grace")) == 200
    assert ask(other, "::1", ("remote-user", "Ada")) == 200
    assert [(p.name, p.lead) for p in project.store.people()] == [("Ada", False), ("Grace", True)]

"""Nobody in: without a token, with a wrong or revoked one, from another site, under another host's name."""

from __future__ import annotations

import hmac
import html
import json
import logging

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from accuacl.base.errors import InputError
from accuacl.labeling.web import session
from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.guard import Hosts, check_public_url
from web_project import browse, image_project, log_in, raw, running

PRIVATE = [
    "/",
    "/review",
    "/item/0/full",
    "/dashboard",
    "/classes",
    "/item/0",
    "/item/0/image",
    "/item/0/thumb",
    "/api/state",
    "/api/guess/0",
]
POSTS = [
    "next",
    "label",
    "skip",
    "undo",
    "correct",
    "renew",
    "release",
    "classes",
    "classes/0/rename",
    "classes/0/merge",
    "relabel",
    "comment",
]
BODY = {"items": [0], "text": "x", "item": 0, "class_id": 0, "request": "0123456789", "name": "x", "into": 1}
JSON = {"Content-Type": "application/json"}
DAY = 24 * 3600


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with image_project(tmp_path_factory.mktemp("entry")) as project:
        yield project


@pytest.fixture(scope="module")
def server(project):
    with running(project) as address:
        yield address


@pytest.fixture
def client(server):
    """Someone who is not logged in."""
    with browse(server) as client:
        yield client


@pytest.mark.parametrize("path", PRIVATE)
def test_without_a_token_nothing_is_shown(client, path):
    assert client.get(path).status_code == 401


def test_browsers_are_led_to_the_login(client):
    answer = client.get("/dashboard", headers={"Accept": "text/html"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=/dashboard"
    assert client.get("/", headers={"Accept": "text/html"}).headers["location"] == "/login"
    shown = client.get("/login").text.replace("the project's lead", "")
    assert "project" not in shown  # not even its name, which is `project` here, is told


def test_the_wanted_page_comes_after_the_login(client, project):
    wanted = "/review?label=3&show=labelled&person=1"
    answer = client.get(wanted, headers={"Accept": "text/html"}, follow_redirects=True)
    assert next_of(answer) == wanted
    log_in(client, project, "Ada & Co")
    answer = client.get(answer.url)
    assert "Ada &amp; Co" in answer.text
    assert "You are not logged in" not in answer.text
    assert f'href="{wanted.replace("&", "&amp;")}"' in answer.text


def next_of(answer):
    return html.unescape(answer.text.partition('data-post="/api/login" data-next="')[2].partition('"')[0])


@pytest.mark.parametrize(
    "evil",
    [
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "\t//evil.example",
        "/\n/evil.example",
        " //evil.example",
        "https://evil.example",
        "https:evil.example",
        "HTTPS:/evil.example",
        "javascript:alert(1)",
        "evil.example",
        "/\x00/evil.example",
        "/\u2028/evil.example",
        "/review\r\nLocation: //evil.example",
        "/" + "a" * 3000,
        "/login?next=/login",
        "/api/logout",
        "",
    ],
)
def test_the_login_leads_to_no_other_site(client, project, evil):
    assert next_of(client.get("/login", params={"next": evil})) == "/"
    log_in(client, project)
    assert next_of(client.get("/login", params={"next": evil})) == "/"


@pytest.mark.parametrize("path", POSTS)
def test_without_a_token_nothing_is_done(client, project, path):
    before = project.store.status(), project.store.classes()
    assert client.post(f"/api/{path}", json=BODY).status_code == 401
    assert (project.store.status(), project.store.classes()) == before


@pytest.mark.parametrize("token", ["x", "é", "\ud800", "a" * 200, "a" * 201, "0' OR '1'='1", "\0", ""])
def test_a_wrong_token_opens_nothing(client, token):
    answer = client.post("/api/login", content=json.dumps({"token": token}), headers=JSON)
    assert answer.status_code in (401, 422)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("cookie", ["", "x", '"', "a" * 5000, "%00", "\xff"])
def test_a_wrong_cookie_opens_nothing(server, project, cookie):
    name = session.cookie_name(project.directory)
    assert raw(server, "GET", "/api/state", {"Cookie": f"{name}={cookie}"}).status in (400, 401)


def test_the_cookie_is_kept_from_scripts_and_other_sites(client, project):
    answer = client.post("/api/login", json={"token": project.store.add_person("Cleo")})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_over_tls_the_cookie_stays_there(project, scheme):
    scope = {"type": "http", "scheme": scheme, "path": "/", "headers": [], "app": make_app(project)}
    response = Response()
    session.login(session.LoginRequest(token=project.store.add_person(scheme)), Request(scope), response)
    cookie = response.headers["set-cookie"]
    assert ("secure" in cookie.lower()) == cookie.startswith("__Host-") == (scheme == "https")


def test_tokens_are_compared_in_constant_time(project, monkeypatch):
    """Every hash is compared, with hmac.compare_digest, whichever is right."""
    tokens = [project.store.add_person(f"timed {i}") for i in range(3)]
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    counts = set()
    for token in (*tokens, "wrong"):
        compared.clear()
        assert (project.store.person_of(token) is None) == (token == "wrong")
        counts.add(len(compared))
    assert len(counts) == 1
    assert counts.pop() >= len(tokens)


def test_a_revoked_token_is_out_at_the_next_request(client, project):
    name = log_in(client, project)
    assert client.post("/api/next", json={}).status_code == 200
    project.store.revoke(name)
    assert client.post("/api/next", json={}).status_code == 401
    assert client.get("/item/0/image").status_code == 401
    assert client.get("/").status_code == 401


@pytest.mark.parametrize("path", ["/", "/item/0/thumb", "/api/state", "/item/999999"])
def test_the_cookie_lasts_from_the_last_visit(client, project, path, monkeypatch):
    """It once ended two weeks after the log-in, however often people came."""
    log_in(client, project)
    (kept,) = client.cookies.values()
    assert "set-cookie" not in client.get(path).headers
    now = project.store._db._clock
    monkeypatch.setattr(project.store._db, "_clock", lambda: now() + 13 * DAY)
    answers = [client.get(path) for _ in range(2)]
    cookie = answers[0].headers["set-cookie"]
    assert f"={kept};" in cookie
    assert f"max-age={14 * DAY}" in cookie.lower()
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert "set-cookie" not in answers[1].headers  # once a day


def test_after_logging_out_the_session_is_over_wherever_its_cookie_is(client, project):
    log_in(client, project)
    kept = dict(client.cookies)
    assert client.get("/api/state").status_code == 200
    client.post("/api/logout", json={})
    assert client.get("/api/state").status_code == 401
    assert not client.cookies
    client.cookies.update(kept)
    assert client.get("/api/state").status_code == 401


def test_the_cookie_is_not_the_token_and_the_link_works_once(client, project):
    token = project.store.add_person("Fay")
    assert client.post("/api/login", json={"token": token}).status_code == 200
    ((name, value),) = client.cookies.items()
    assert name == session.cookie_name(project.directory)
    assert token not in value
    client.cookies.clear()
    answer = client.post("/api/login", json={"token": token})
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith("This link is not valid. It may have been used already")
    client.cookies.set(name, token)  # what another server on this machine could have kept
    assert client.get("/api/state").status_code == 401


def test_behind_a_proxy_the_public_address_counts(project):
    public = {"Host": "label.example.org", "Origin": "https://label.example.org"}
    with running(project, public_url="https://label.example.org") as server, browse(server) as client:
        for headers in (public, {"Origin": "https://label.example.org"}):  # whether or not the proxy keeps the host
            token = {"token": project.store.add_person(f"person {len(project.store.people())}")}
            answer = client.post("/api/login", json=token, headers=headers)
            assert answer.status_code == 200
            assert "secure" in answer.headers["set-cookie"].lower()
            assert answer.headers["strict-transport-security"].startswith("max-age=")
        assert client.post("/api/logout", json={}, headers={"Origin": "http://label.example.org"}).status_code == 403
    with running(project) as server:
        assert raw(server, "GET", "/login", {"Host": "label.example.org"}).status == 421
        with browse(server) as client:
            assert "strict-transport-security" not in client.get("/login").headers


@pytest.mark.parametrize("url", ["label.example.org", "https://a.example/path", "ftp://a.example", "https://", "x"])
def test_a_public_address_is_checked(url):
    with pytest.raises(InputError, match="--public-url is"):
        check_public_url(url)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:9"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_posts_from_other_sites_are_refused(client, project, headers):
    log_in(client, project)
    for path in (*POSTS, "login", "logout"):
        assert status(client, f"/api/{path}", json=BODY, headers=headers) == 403
    assert client.get("/api/state").status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_elsewhere_can_send_is_refused(client, project, kind):
    log_in(client, project)
    assert status(client, "/api/label", content=json.dumps(BODY), headers={"Content-Type": kind}) == 415


def status(client, path, **more):
    """Of a post that is refused unread: the connection may be closed before the answer has been seen; then again."""
    for _ in range(20):
        try:
            return client.post(path, **more).status_code
        except httpx.TransportError:
            continue
    return None


def test_our_own_posts_pass(client, project, server):
    log_in(client, project)
    headers = {"Origin": server, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/next", json={}, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "192.0.2.7", "[::2]", "", "[::"]
)
@pytest.mark.parametrize("path", ["/", "/login", "/static/page.css", "/api/state"])
def test_other_hosts_are_refused(server, host, path):
    """A page whose name is made to point at this machine must not read anything."""
    assert raw(server, "GET", path, {"Host": host}).status in (400, 421)


def test_hosts_that_are_ours():
    assert all(Hosts("127.0.0.1").admit(host) for host in ("127.0.0.1:8765", "localhost:8765", "[::1]:1", "LOCALHOST"))
    assert Hosts("0.0.0.0").admit("192.0.2.7:80")  # an address cannot be rebound
    assert not Hosts("0.0.0.0").admit("evil.example")
    assert Hosts("0.0.0.0", ["Box.example"]).admit("box.example:443")
    assert Hosts("box.example").admit("box.example")


def test_tokens_are_not_in_logs(client, project, caplog, capfd):
    caplog.set_level(logging.DEBUG, logger="uvicorn")
    token = project.store.add_person("Dora")
    client.post("/api/login", json={"token": token})
    client.get("/")
    client.post("/api/login", json={"token": token, "more": [token]}, headers={"Origin": "http://evil.example"})
    out, err = capfd.readouterr()
    assert token not in caplog.text + out + err


def test_errors_repeat_nothing_that_was_sent(client):
    answer = client.post("/api/login", json={"token": ["s3cret"]})
    assert answer.status_code == 422
    assert "s3cret" not in answer.text


def test_the_store_keeps_no_token(project):
    token = project.store.add_person("Emil")
    for path in project.directory.glob("labels.sqlite*"):
        assert token.encode() not in path.read_bytes()

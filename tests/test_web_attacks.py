"""Whoever is in gets no further: paths, links, bombs, huge and malformed bodies, script in names."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import anyio
import httpx
import numpy as np
import pytest
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.labeling.web import images as decoder, session
from accuacl.labeling.web.guard import LIMIT, Guard, Hosts
from accuacl.labeling.web.images import SIDE, THUMB, picture
from web_project import PATIENCE, browse, certificate, image_project, log_in, no_time_passes, raw, routes, running

SCRIPT = "<script>alert(1)</script>"
BODY = {"item": 0, "class_id": 0, "request": "0123456789"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module", params=["http", "https"])
def scheme(request):
    return request.param


@pytest.fixture(scope="module")
def project(tmp_path_factory, scheme):
    with image_project(tmp_path_factory.mktemp("attacks"), per_round=20) as project:
        yield project


@pytest.fixture(scope="module")
def server(project, scheme, tmp_path_factory):
    if scheme == "http":
        with running(project) as address:
            yield address
        return
    pair = certificate(tmp_path_factory.mktemp("certificate"))
    with pytest.MonkeyPatch.context() as patch, running(project, **pair) as address:
        patch.setenv("SSL_CERT_FILE", str(pair["cert"]))  # whom clients trust
        yield address.replace("http://", "https://")


@pytest.fixture
def client(server, project):
    """Someone who is logged in."""
    with browse(server) as client:
        log_in(client, project, lead=True)
        yield client


@pytest.fixture
def wreck(project):
    """Puts other bytes in the place of an item's image, for the time of the test."""
    path = project.item(0).path
    whole = path.read_bytes()
    yield path.write_bytes
    path.unlink(missing_ok=True)
    path.write_bytes(whole)


@pytest.mark.parametrize(
    "path",
    [
        "/item/../../etc/passwd",
        "/item/..%2f..%2f..%2fetc%2fpasswd/image",
        "/item/%2e%2e/image",
        "/item//etc/passwd/image",
        "/item/%2Fetc%2Fpasswd/image",
        "/item/-1/image",
        "/item/0.5/image",
        "/item/0%00/image",
        "/item/999999/image",
        "/item/99999999999999999999999999/image",
        "/item/999999",
        "/item/999999/thumb",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/page.css%00.js",
        "/static/",
    ],
)
def test_nothing_is_had_by_path(client, server, path):
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    answer = raw(server, "GET", path, {"Cookie": cookie})
    assert answer.status in (404, 422)
    assert b"root:" not in answer.body
    assert b"FastAPI" not in answer.body


@pytest.mark.posix
def test_a_link_out_of_the_data_is_not_followed(client, project, wreck, tmp_path):
    assert client.get("/item/0/image").status_code == 200
    Image.new("RGB", (4, 4), "red").save(tmp_path / "secret.png")
    project.item(0).path.unlink()
    project.item(0).path.symlink_to(tmp_path / "secret.png")
    assert client.get("/item/0/image").status_code == 404
    assert client.get("/item/0").status_code == 200
    project.item(0).path.unlink()
    project.item(0).path.symlink_to("/dev/zero")
    assert client.get("/item/0/image").status_code == 404


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", f"<html>{SCRIPT}</html>".encode(), b"<svg onload='alert(1)'/>"]
)
def test_what_is_no_image_is_not_sent(client, wreck, data):
    wreck(data)
    for path in ("/item/0/image", "/item/0/thumb"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json() == {"detail": "There is no such image, or it cannot be shown."}


def test_half_an_image_is_not_sent_and_a_vanished_one_is_said_to_be(client, project, wreck):
    path = project.item(0).path
    wreck(path.read_bytes()[: path.stat().st_size // 2])
    assert client.get("/item/0/image").status_code == 404
    path.unlink()
    assert client.get("/item/0/image").status_code == 404


def test_an_image_is_made_once(monkeypatch):
    made, images = [], decoder.Decoder(lambda item: b"an image")
    monkeypatch.setattr(decoder, "picture", lambda data, side: made.append(side) or (data, "image/png"))

    async def get_each_twice():
        return [await images.get(1, side) for side in (THUMB, SIDE, THUMB, SIDE)]

    assert anyio.run(get_each_twice) == [(b"an image", "image/png")] * 4
    assert made == [THUMB, SIDE]


def test_few_images_are_decoded_at_once_and_one_large_one(monkeypatch):
    """Twelve requests for a PNG of 80 megapixels once took 2.6 GB."""
    now, most, turn = Counter(), Counter(), threading.Lock()
    two = threading.Event()

    def slow(data, side):
        with turn:
            now[data] += 1
            most[data] = max(most[data], now[data])
            most["all"] = max(most["all"], now.total())
            if now.total() > 1:
                two.set()
        two.wait(PATIENCE)
        time.sleep(0.01)  # for a third, or a second large one, to come if it can
        with turn:
            now[data] -= 1
        return data, "image/png"

    async def many(images):
        async with anyio.create_task_group() as group:
            for item in range(12):
                group.start_soon(images.get, item, SIDE)

    monkeypatch.setattr(decoder, "picture", slow)
    monkeypatch.setattr(decoder, "pixels", lambda data: 80_000_000 if data == b"large" else 1)
    anyio.run(many, decoder.Decoder(lambda item: b"large" if item % 2 else b"small"))
    assert (most[b"large"], most["all"]) == (1, 2)


def test_kept_images_are_bounded(monkeypatch):
    monkeypatch.setattr(decoder, "picture", lambda data, side: (data, "image/png"))
    reads = []
    images = decoder.Decoder(lambda item: reads.append(item) or bytes(40), lambda item: None, kept=100)
    for item in (0, 1, 0, 2, 0, 1):
        assert anyio.run(images.get, item, SIDE) == (bytes(40), "image/png")
        images._threads = None  # each of these runs has a loop of its own
    assert reads == [0, 1, 2, 1]  # the one used last stays


def test_requests_that_wait_for_images_hold_up_nobody(client, project, server, monkeypatch):
    may_go_on = threading.Event()
    monkeypatch.setattr(decoder, "picture", lambda data, side: may_go_on.wait(PATIENCE) and (data, "image/png"))

    def look(item):
        with httpx.Client(base_url=server, cookies=client.cookies, timeout=PATIENCE) as other:
            return other.get(f"/item/{item}/full").status_code

    with ThreadPoolExecutor(60) as pool:
        looks = [pool.submit(look, item % 40) for item in range(60)]  # more than the server has threads
        try:
            assert client.post("/api/next", json={}).status_code == 200
        finally:
            may_go_on.set()
        assert {one.result() for one in looks} == {200}


def test_sixteen_bits_are_shown_from_black_to_white(client, wreck):
    dim = np.full((20, 30), 100, np.uint16)
    dim[5:9] = 900
    Image.fromarray(dim).save(out := io.BytesIO(), "PNG")
    wreck(out.getvalue())
    answer = client.get("/item/0/full")
    shown = np.asarray(Image.open(io.BytesIO(answer.content)).convert("L"))
    assert (shown.min(), shown.max()) == (0, 255)


def test_a_large_image_is_in_memory_once(monkeypatch):
    """Turning an image the right way up once copied it, even if there was nothing to turn."""
    Image.new("RGB", (3000, 10)).save(out := io.BytesIO(), "PNG")
    monkeypatch.setattr(Image.Image, "copy", lambda self: pytest.fail("a copy of it was made"))
    assert Image.open(io.BytesIO(picture(out.getvalue())[0])).width == SIDE


def test_nobody_adds_classes_without_end(client, project, monkeypatch):
    """338 classes in four seconds once. Here no time passes, however long the requests take."""
    no_time_passes(monkeypatch)
    before = len(project.store.classes())
    answers = [client.post("/api/classes", json={"name": f"flood {i}"}) for i in range(40)]
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert "too much at once" in answers[-1].json()["detail"]
    assert len(project.store.classes()) - before == 20
    assert client.post("/api/next", json={}).status_code == 200  # labelling goes on


def test_nobody_fills_the_disk_or_review_with_comments(client, project, monkeypatch):
    """33 MB in a second once. A comment to several examples counts for each, by its bytes; Review shows few of them."""
    no_time_passes(monkeypatch)
    picks = [pick.item for pick in project.store.picks(0, 0)][:4]

    def write(number, text="\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 1000):
        return client.post("/api/comment", json={"items": picks, "text": text, "request": f"comment-{number:04}"})

    answers = [write(i).status_code for i in range(30)]
    assert answers == [200] * 25 + [429] * 5  # 25 of 8,000 bytes each
    assert client.post("/api/next", json={}).status_code == 200  # labelling goes on
    page = client.get("/review").text
    assert len(page) < 60_000
    assert page.count("22 earlier comments in the history") == 4


PAGES = ["/", "/dashboard", "/item/0", "/review", "/gallery", "/classes", "/people", "/project", "/docs"]
CALLS = ["/api/state", "/api/guess/0", "/api/guidelines", "/api/changes", "/api/map", "/openapi.json"]


@pytest.mark.parametrize("path", [*PAGES, *CALLS])
def test_nobody_asks_for_pages_without_end(client, path, monkeypatch):
    """720 dashboards in six seconds once."""
    no_time_passes(monkeypatch, burst=3)
    answers = [client.get(path) for _ in range(4)]
    assert [answer.status_code == 429 for answer in answers] == [False, False, False, True]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert client.get("/item/0/thumb").status_code == 200  # images are counted for themselves


@pytest.mark.parametrize("what", ["thumb", "image", "full"])
def test_nobody_asks_for_images_without_end(client, what, monkeypatch):
    no_time_passes(monkeypatch, burst=3)
    assert [client.get(f"/item/0/{what}").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert client.post("/api/next", json={}).status_code == 200


def test_pages_with_hundreds_of_images_are_loaded_whole(client, monkeypatch):
    no_time_passes(monkeypatch)
    assert {client.get(f"/item/{i % 40}/thumb").status_code for i in range(300)} == {200}


def test_every_route_has_a_limit(project):
    """Only what strangers may ask for has none for each person."""

    def limited(dependant):
        own = dependant.call in (session._limited, session._viewer)
        return own or any(limited(needed) for needed in dependant.dependencies)

    free = {route.path for route in routes(project) if not limited(route.dependant)}
    assert free == {"/login", "/api/login", "/api/logout"}


def test_paths_of_the_server_are_not_shown(client, project, monkeypatch):
    folder = project.directory.parent

    def fail(*_: object) -> None:
        raise InputError(f"the folder {folder / 'images'} is missing, and so is /etc/some where/x; bring them back.")

    with monkeypatch.context() as patched:
        patched.setattr(project.store, "turn", fail)
        answer = client.post("/api/next", json={})
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("The folder images is missing, and so is some")
    assert str(folder) not in answer.text
    for path in ("/", "/dashboard", "/classes", "/item/0"):
        assert str(folder) not in client.get(path).text


def test_a_thumbnail_is_small_whatever_it_is_of():
    frames = [Image.fromarray(np.random.default_rng(i).integers(0, 255, (200, 200, 3), np.uint8)) for i in range(9)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    assert len(buffer.getvalue()) > 250_000
    assert picture(buffer.getvalue())[0] == buffer.getvalue()  # it moves on the page
    assert len(picture(buffer.getvalue(), THUMB)[0]) < 200_000


@pytest.mark.parametrize("side", [65_000, 11_000])  # beyond Pillow's own limit, and below it
def test_a_decompression_bomb_is_not_decoded(client, wreck, side):
    wreck(bomb(side))
    assert client.get("/item/0/image").status_code == 404
    assert client.get("/item/0/thumb").status_code == 404


def bomb(side: int) -> bytes:
    """A PNG of side x side pixels in a few kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([1, 0, 0, 0, 0])
    rows = zlib.compress(bytes(side * (side // 8 + 1)), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_images_are_sent_as_what_they_are(client, wreck):
    Image.new("RGB", (40, 30)).save(out := io.BytesIO(), "GIF")
    wreck(out.getvalue())  # its name ends in .png
    answer = client.get("/item/0/image")
    assert answer.headers["content-type"] == "image/gif"
    assert answer.headers["cache-control"].startswith("private")
    Image.new("RGB", (3000, 10)).save(out := io.BytesIO(), "TIFF")  # which browsers do not show
    wreck(out.getvalue())
    answer = client.get("/item/0/image")
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).width == SIDE


def test_huge_bodies_are_refused(client, server):
    huge = b'{"name": "' + b"x" * LIMIT + b'"}'
    assert client.post("/api/classes", content=huge, headers=JSON).status_code == 413
    pieces = (b"x" * 1000 for _ in range(LIMIT // 1000 + 2))  # in chunks, their sum untold
    assert client.post("/api/classes", content=pieces, headers=JSON).status_code == 413
    assert client.get("/api/state").status_code == 200


def test_a_refused_body_is_read_before_the_answer_within_limits():
    """A client that is still sending loses the answer: the closed connection is reset under it."""

    def refused(pieces, **headers):
        told, left = [], [b"x" * 1000] * pieces

        async def receive():
            told.append("read")
            return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}  # never again after the last

        async def send(message):
            told.append(message.get("status", "sent"))

        headers = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
        scope = {"type": "http", "method": "POST", "scheme": "http", "headers": headers}
        asyncio.run(Guard(None, Hosts("127.0.0.1"))(scope, receive, send))
        return told

    assert refused(70, **{"content-length": "70000"}) == ["read"] * 70 + [413, "sent"]
    assert refused(70, **{"content-type": "application/json"}) == ["read"] * 70 + [413, "sent"]
    assert refused(3, origin="http://elsewhere") == ["read"] * 3 + [403, "sent"]
    assert len(refused(10_000, **{"content-length": "10000000"})) < 1100


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 60_000,
        b'{"item": ' + b"1" * 5000 + b"}",
        b"\xff",
        b'{"item": 1e400}',
        b'{"item": -1}',
    ],
    ids=range(9),
)
def test_malformed_bodies_are_refused(client, body):
    for path in ("label", "skip", "renew"):
        assert client.post(f"/api/{path}", content=body, headers=JSON).status_code in (400, 422)


@pytest.mark.parametrize("request_id", ["", "short", "x" * 101, "with space", "a;drop table", "<script>"])
def test_malformed_request_ids_are_refused(client, request_id):
    assert client.post("/api/undo", json={"request": request_id}).status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("undo", b'{"request": "s3cret"}', "request is text of 6 characters, and should have at least 8 characters"),
        ("undo", b'{"request": "s3cret s3cret"}', "request is text of 13 characters, and should match pattern"),
        ("undo", b'{"request": null}', "request is null, and should be a valid string"),
        ("undo", b"{}", "request is missing"),
        ("undo", b"", "it has no body; send JSON"),
        ("undo", b'{"request": s3cret', "invalid JSON at character 12"),
        ("undo", b"[3, 4]", "the body is a list of 2, and should be "),
        ("undo", b"5", "the body is a whole number, and should be "),
        ("login", b'{"token": ["s3cret"]}', "token is a list of 1, and should be a valid string"),
        ("renew", b'{"item": -1}', "item is a whole number, and should be greater than or equal to 0"),
        ("renew", b'{"item": 1.5}', "item is a number with a fraction, and should be a valid integer"),
        ("renew", b'{"item": "s3cret"}', "item is text of 6 characters, and should be a valid integer"),
        ("renew", b'{"item": {"s3cret": true}}', "item is an object, and should be"),
        ("label", b"{}", "item is missing; class_id is missing; request is missing."),
        ("gallery/label", b'{"labels": [{}, {}], "request": "long-enough"}', "labels/0/item is missing; "),
        ("gallery/label", b'{"labels": [{}, {}, {}], "request": "long-enough"}', "; and 3 more."),
    ],
)
def test_a_malformed_request_is_told_what_is_wanted(client, path, body, says):
    answer = client.post(f"/api/{path}", content=body, headers=JSON)
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert detail.startswith("The request is not valid: ")
    assert says in detail
    assert "s3cret" not in detail


def test_items_and_classes_that_are_not_there_are_refused(client):
    for item in (10**9, 2**62):
        for path in ("label", "skip", "renew", "correct"):
            assert client.post(f"/api/{path}", json={**BODY, "item": item}).status_code == 409
    pick = client.post("/api/next", json={}).json()["pick"]
    said = {"item": pick["item"], "class_id": 10**6, "request": "unknown-class"}
    assert client.post("/api/label", json=said).status_code == 409
    assert client.get(f"/api/guess/{10**9}").status_code == 409


def test_another_persons_item_cannot_be_labelled(client, server, project):
    item = client.post("/api/next", json={}).json()["pick"]["item"]
    with browse(server) as other:
        log_in(other, project)
        for path in ("label", "skip", "renew"):
            said = {"item": item, "class_id": 0, "request": f"stolen-{path}"}
            assert other.post(f"/api/{path}", json=said).status_code == 409
        other.post("/api/release", json={"item": item})
        assert other.post("/api/next", json={}).json()["pick"]["item"] != item


def test_script_in_names_is_shown_as_text(client, project):
    log_in(client, project, SCRIPT, lead=True)
    added = client.post("/api/classes", json={"name": SCRIPT}).json()["added"]
    pick = client.post("/api/next", json={}).json()["pick"]
    client.post("/api/label", json={"item": pick["item"], "class_id": added, "request": "script-in-names"})
    strange = next(i for i in range(40) if "<" in project.item(i).name)  # a file name
    for path in ("/", "/dashboard", "/classes", f"/item/{pick['item']}", f"/item/{strange}"):
        page = client.get(path)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "<script>alert" not in page.text
        assert "&lt;" in page.text
    assert client.get("/api/state").headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\0b", "a\x1b[31m", "\u202egnp.exe"])
def test_names_that_deceive_are_refused(client, name):
    assert client.post("/api/classes", content=json.dumps({"name": name}), headers=JSON).status_code in (409, 422)


@pytest.mark.parametrize(
    "path", ["/", "/login", "/dashboard", "/item/0/image", "/static/label.js", "/api/state", "/nowhere"]
)
def test_every_answer_is_guarded(client, path):
    headers = client.get(path).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["img-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert "public" not in headers["cache-control"]
    assert "server" not in headers


@pytest.mark.parametrize("path", ["/", "/login", "/dashboard", "/classes", "/item/0"])
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(client, path):
    text = client.get(path).text
    assert "<style" not in text
    assert " style=" not in text
    assert " onclick=" not in text
    assert "://" not in text
    modules = text.count('<script type="module" src="/static/')
    assert text.count("<script") == modules + text.count('<script src="/static/early.js"></script>')

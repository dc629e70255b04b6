"""What projects label: images, vectors, texts; bad, vanished and hostile files."""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.labeling.project import (
    NewItems,
    Project,
    Tasks,
    encoders,
    make,
    read_images,
    read_like,
    read_texts,
    read_vectors,
    task_inputs as inputs,
)
from accuacl.labeling.project.erasing import erase
from accuacl.labeling.project.images import check_image, image_type, read_inside
from accuacl.labeling.project.loader import count_words, word_vectors
from accuacl.labeling.project.task_inputs import TaskInputs, fit_scale, scaled
from commands import accuacl
from scripted import answer, finish, records

pytestmark = pytest.mark.filterwarnings("ignore:the model learns from scratch")
IMAGES = {"kind": "images", "model": "conv4", "image_size": 16, "per_round": 4, "rounds": 2, "epochs": 1, "batch": 4}


def quiet(progress):
    pass


def folder_of(place: Path, count: int = 12, first: int = 0) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for i in range(first, first + count):
        Image.new("RGB", (20, 24), (20 * i % 256, 90, 200 if i % 2 else 10)).save(place / f"{i:03}.png")
    return place


def bomb(width: int = 30_000, height: int = 30_000) -> bytes:
    """A PNG of a few bytes that claims to be enormous."""
    data = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(data)) + b"IHDR" + data + struct.pack(">I", zlib.crc32(b"IHDR" + data))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))


@pytest.fixture
def photos(tmp_path):
    return folder_of(tmp_path / "photos")


@pytest.fixture
def project(tmp_path, photos):
    with Project.create(tmp_path / "p", make(IMAGES)) as project:
        project.store.add_person("Ada")
        project.add(read_images(photos, quiet))
        yield project


def colour(project, item):
    return "blue" if int(project.item(item).name[:3]) % 2 else "green"


@pytest.mark.posix
def test_bad_images_are_named_and_left_out(photos):
    (photos / "empty.png").write_bytes(b"")
    (photos / "text.jpg").write_bytes(b"not an image at all")
    whole = (photos / "000.png").read_bytes()
    (photos / "half.png").write_bytes(whole[: len(whole) // 2])
    (photos / "bomb.png").write_bytes(bomb())
    (photos / "deep").mkdir()
    (photos / "deep" / "fine.PNG").write_bytes(whole)
    (photos / ".hidden.png").write_bytes(whole)
    (photos / "notes.txt").write_text("no image")
    os.symlink("/etc/passwd", photos / "link.png")
    os.symlink(photos / "000.png", photos / "inside.png")
    os.mkfifo(photos / "pipe.png")
    (photos / "folder.png").mkdir()
    source = read_images(photos, quiet)
    assert source.names == [f"{i:03}.png" for i in range(12)] + ["deep/fine.PNG", "inside.png"]
    assert set(source.bad) == {"empty.png", "text.jpg", "half.png", "bomb.png", "link.png", "pipe.png"}
    assert "more than the" in source.bad["bomb.png"] or "exceeds limit" in source.bad["bomb.png"]
    assert "is not inside" in source.bad["link.png"]
    assert "is not a file" in source.bad["pipe.png"]


def test_a_folder_without_images_or_none_at_all(tmp_path, photos, project):
    with pytest.raises(InputError, match="does not exist"):
        read_images(tmp_path / "nowhere", quiet)
    with pytest.raises(InputError, match="is not a folder"):
        read_images(photos / "000.png", quiet)
    (tmp_path / "void").mkdir()
    with pytest.raises(InputError, match="void has no images; give a folder"):
        project.add(read_images(tmp_path / "void", quiet))
    assert len(project.tasks.all()) == 1


def test_known_images_are_not_added_twice(project, photos):
    with pytest.raises(InputError, match="has nothing new to label"):
        project.add(read_images(photos, quiet))
    folder_of(photos, 3, first=12)
    task = project.add(read_images(photos, quiet))
    assert (task.index, task.first, task.count) == (1, 12, 3)
    assert project.item(12).name == "012.png"


@pytest.mark.posix
@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", "a/../../secret.png", "..", "", "link/secret.png"])
def test_nothing_outside_the_folder_is_read(tmp_path, photos, name):
    (tmp_path / "secret.png").write_bytes((photos / "000.png").read_bytes())
    os.symlink(tmp_path, photos / "link")
    with pytest.raises(InputError):
        read_inside(photos, name)


@pytest.mark.posix
def test_an_image_that_cannot_be_opened_is_left_out_and_named(photos):
    os.symlink("loop.png", photos / "loop.png")
    os.symlink("nowhere.png", photos / "broken.png")
    items = read_images(photos, quiet)
    assert len(items.names) == 12
    assert items.bad == {
        "broken.png": "'broken.png' cannot be read: no such file or directory",
        "loop.png": "'loop.png' cannot be read: too many levels of symbolic links",
    }


@pytest.mark.posix
def test_image_bytes_come_with_their_true_type(project, photos):
    data, kind = project.image_bytes(0)
    assert (data, kind) == ((photos / "000.png").read_bytes(), "image/png")
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "JPEG")
    (photos / "001.png").write_bytes(buffer.getvalue())
    assert project.image_bytes(1)[1] == "image/jpeg"
    (photos / "002.png").write_bytes(bomb())
    (photos / "003.png").write_bytes(b"<script>alert(1)</script>")
    (photos / "004.png").unlink()
    (photos / "005.png").unlink()
    os.symlink("/etc/passwd", photos / "005.png")
    for item in (2, 3, 5, 99, -1):
        with pytest.raises(InputError):
            project.image_bytes(item)
    with pytest.raises(InputError, match=r"'004\.png' cannot be read: no such file"):
        project.image_bytes(4)


def test_pixels_and_types(photos):
    data = (photos / "000.png").read_bytes()
    assert check_image(data, 16).shape == (16, 16, 3)
    assert image_type(data) == "image/png"
    for wrong in (b"", b"GIF89a", bomb(), bomb(9000, 9000)):
        with pytest.raises(InputError, match=r"not a readable image|pixels are more"):
            check_image(wrong)


def test_images_that_vanish_before_they_are_embedded_are_left_out(project, photos):
    (photos / "003.png").unlink()
    (photos / "004.png").write_bytes(b"spoiled")
    while not project.advance().finished:
        answer(project, name=colour)
    assert records(project, "000/data")["000/data"]["bad"] == [3, 4]
    picked = {item for result in records(project, "*/query").values() for item in result["ids"]}
    assert not picked & {3, 4}
    assert len(project.store.labels()) == 8


def test_images_that_vanish_later_do_not_stop_the_training(project, photos):
    project.advance()
    for path in photos.iterdir():
        path.unlink()
    while not project.advance().finished:
        answer(project, name=colour)
    assert project.estimates().accuracy is not None


def test_a_folder_that_is_not_there_now_is_waited_for(project, photos):
    photos.rename(photos.with_name("elsewhere"))
    with pytest.raises(InputError, match="is missing; bring it back"):
        project.advance()
    photos.with_name("elsewhere").rename(photos)
    assert project.advance().waiting == "labels"


def test_embedding_goes_on_where_it_was_killed(project, monkeypatch):
    monkeypatch.setattr(inputs, "PART", 4)
    monkeypatch.setattr(inputs, "cores", lambda: 1)
    seen = []

    def killed(data, size):
        seen.append(size)
        if len(seen) == 7:
            raise KeyboardInterrupt
        return check_image(data, size)

    with monkeypatch.context() as then:
        then.setattr(inputs, "check_image", killed)
        with pytest.raises(KeyboardInterrupt):
            project.advance()
    seen.clear()
    with monkeypatch.context() as then:
        then.setattr(inputs, "check_image", lambda data, size: seen.append(size) or check_image(data, size))
        project.advance()
    assert len(seen) == 8  # the first part of four was kept
    place = project.tasks.folder_of(0)
    assert np.load(place / "inputs.npy").shape == (12, 16, 16, 3)
    assert not (place / inputs.PARTS).exists()


def test_unfinished_embeddings_of_the_first_release_are_made_again(project):
    place = project.tasks.folder_of(0)
    (place / "parts").mkdir()
    for path in (place / "parts" / "000000000.safetensors", place / "first.safetensors"):
        path.write_bytes(b"")
    project.advance()
    assert np.load(place / "inputs.npy").shape == (12, 16, 16, 3)
    assert not (place / "parts").exists()
    assert not (place / "first.safetensors").exists()


def test_what_is_erased_while_others_are_still_embedded_leaves_nothing(project, monkeypatch):
    def killed(progress):
        if progress.done == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(inputs, "PART", 4)
    with pytest.raises(KeyboardInterrupt):
        project.advance(killed)
    project.store.close()
    with Project.open(project.directory) as again:
        erase(again.tasks, again.tasks.all()[0], [1])
        again.advance()
        rows = np.load(again.tasks.folder_of(0) / "inputs.npy")
    assert not rows[1].any()
    assert rows[2].any()


def test_a_record_that_was_lost_costs_no_second_embedding(project, monkeypatch):
    done = inputs.prepare(project.tasks, project.tasks.all()[0], project.settings, quiet)
    (project.tasks.folder_of(0) / "parts").mkdir()
    monkeypatch.setattr(inputs, "check_image", None)
    assert inputs.prepare(project.tasks, project.tasks.all()[0], project.settings, quiet) == done


def test_damaged_files_are_named(project):
    project.advance()
    place = project.tasks.folder_of(0)
    np.save(place / "inputs.npy", np.zeros((3, 16, 16, 3), np.uint8))
    answer(project, name=colour)
    with pytest.raises(InputError, match=r"inputs\.npy is damaged: its content is not what was written"):
        project.advance()
    (place / "items.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"items\.parquet is damaged"), Project.open(project.directory) as opened:
        opened.item(0)


WRONG_COUNT = b'{"index": 0, "kind": "images", "place": "", "first": 0, "count": "x", "bad": {}, "sha256": ""}'


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"index": 0}', b'{"colour": 1}', b"\xff", WRONG_COUNT])
def test_a_damaged_task_is_one_sentence(project, content):
    path = project.tasks.folder_of(0) / "task.json"
    path.write_bytes(content)
    damaged = pytest.raises(InputError, match=r"000/task\.json is damaged \(.*\); restore it from a copy\.$")
    with damaged as raised, Project.open(project.directory) as opened:
        opened.state()
    assert "\n" not in str(raised.value)


def test_adding_is_whole_or_not_at_all(project, tmp_path, monkeypatch):
    source = read_images(folder_of(tmp_path / "more", 3), quiet)
    real = os.rename

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as then:
        then.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            project.add(source)
    left = project.tasks.folder / ".adding-dead"  # as a kill would leave it
    left.mkdir()
    (left / "items.parquet").write_bytes(b"half")
    assert len(project.tasks.all()) == 1
    assert os.rename is real
    assert project.add(source).index == 1
    assert not left.exists()
    assert [task.count for task in Tasks(project.directory).all()] == [12, 3]


def test_vectors_from_parquet(tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "embedding": [[1.0, 2.0], [3.0, 4.0]], "note": ["x", "y"]}), path)
    source = read_vectors(path)
    assert source.names == ["a", "b"]
    assert source.vectors.tolist() == [[1, 2], [3, 4]]
    assert source.shown == [{"note": "x"}, {"note": "y"}]
    pq.write_table(
        pa.table({"size": [1, 2], "protocol": ["tcp", "udp"], "rate": [0.5, 1.5], "ok": [True, False]}), path
    )
    source = read_vectors(path)
    assert source.vectors.tolist() == [[1, 0.5, 1], [2, 1.5, 0]]
    with Project.create(tmp_path / "p", make({"kind": "vectors"})) as project:
        project.add(source)
        item = project.item(1)
        assert (item.kind, item.name, item.path, item.text) == ("vector", "1", None, None)
        assert dict(item.fields) == {"id": "1", "size": 2, "protocol": "udp", "rate": 1.5, "ok": False}
        with pytest.raises(InputError, match="is a vector, not an image"):
            project.image_bytes(1)


@pytest.mark.parametrize("name", ["embedding", "embeddings", "features", "vector"])
def test_lists_are_taken_by_the_names_that_runs_know(tmp_path, name):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"label": [0, 1], name: [[1.0, 2.0], [3.0, 4.0]]}), path)
    source = read_vectors(path)
    assert source.vectors.tolist() == [[1, 2], [3, 4]]
    assert (source.columns, source.describe_columns()) == (None, f"the column {name}, with 2 numbers a row")
    assert source.shown == [{"label": 0}, {"label": 1}]


def test_lists_beside_the_columns_that_a_project_has(tmp_path):
    """An earlier version took `label` and `key` of such a file; later tasks must have these."""
    path = tmp_path / "v.parquet"
    with Project.create(tmp_path / "p", make({"kind": "vectors"})) as project:
        project.add(NewItems("vectors", "v", ["a"], vectors=np.ones((1, 2), np.float32), columns=["label", "key"]))
        for name in ("embeddings", "emb"):
            pq.write_table(pa.table({"key": [1, 2], "label": [3, 4], name: [[1.0], [2.0]]}), path)
            project.add(read_like(project.tasks, "vectors", path, ""))
            assert np.load(project.tasks.folder_of(1) / "vectors.npy").tolist() == [[3, 1], [4, 2]]
        pq.write_table(pa.table({"key": [1], "vector": [[1.0]]}), path)
        with pytest.raises(InputError, match="has the lists in `vector`, the first task the columns label, key"):
            read_like(project.tasks, "vectors", path, "")


def test_a_folder_without_images_says_which_are_looked_for(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.heic").write_bytes(b"x")
    new = ("project", "new", tmp_path / "p", "--images", tmp_path / "photos")
    says = "photos has no images; give a folder with files that end in .jpg, .jpeg, "
    assert says in accuacl(*new, width=500).stderr
    (tmp_path / "photos" / "a.png").write_bytes(b"x")
    assert "photos has nothing to label, since 1 file could not be read; " in accuacl(*new, width=500).stderr


def test_what_vectors_are_made_of_is_printed(tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"id": range(9), "features": [[1.0, 2.0, 3.0]] * 9}), path)
    said = accuacl("project", "new", tmp_path / "p", "--vectors", path).stdout
    assert "task 1: 9 vectors\ntaken: the column features, with 3 numbers a row\n" in said
    pq.write_table(pa.table({f"x{i}": range(9) for i in range(23)}), path)
    said = accuacl("project", "new", tmp_path / "q", "--vectors", path).stdout
    assert "\ntaken: 23 columns of numbers: x0, x1, " in said
    assert ", x19 and 3 more\n" in said


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"a": ["x"]}, "neither a column `embedding` nor columns of numbers"),
        ({"embedding": [[1.0], [1.0, 2.0]]}, "different lengths"),
        ({"embedding": [[1.0], None]}, "different lengths"),
        ({"a": [1.0, float("nan")]}, "row 1 has a number that is missing or not finite"),
        ({"id": ["a", "a"], "a": [1, 2]}, "'a' occurs more than once"),
        ({"a": pa.array([], pa.int64())}, "has no rows"),
        ({"embedding": pa.array([], pa.list_(pa.float32()))}, "has no rows"),
        ({"embedding": [1.0, 2.0]}, "holds double; give lists of numbers"),
        ({"embedding": ["one"]}, "holds string; give lists of numbers"),
        ({"embedding": [["one"]]}, "give lists of numbers"),
        ({"embedding": [[1.0], [None]]}, "some missing; give lists of numbers"),
        ({"emb": [[1.0], [2.0]], "label": [0, 1]}, "column `emb` has lists of numbers, .*; call it `embedding`, or"),
        ({"id": ["a", None], "a": [1, 2]}, "row 1 has no id"),
    ],
)
def test_wrong_vectors_are_one_sentence(tmp_path, columns, says):
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    with pytest.raises(InputError, match=says):
        read_vectors(tmp_path / "v.parquet")
    (tmp_path / "v.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match="is not a readable Parquet file"):
        read_vectors(tmp_path / "v.parquet")


def test_texts_from_csv_and_json_lines(tmp_path):
    (tmp_path / "t.csv").write_text('id,text\n7,"Where is, my card?"\n8,Hëllo\n', encoding="utf-8")
    source = read_texts(tmp_path / "t.csv", "text")
    assert (source.names, source.texts) == (["7", "8"], ["Where is, my card?", "Hëllo"])
    lines = [json.dumps({"utterance": "one\ntwo"}), "", json.dumps({"utterance": "three"})]
    (tmp_path / "t.jsonl").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    source = read_texts(tmp_path / "t.jsonl", "utterance")
    assert (source.names, source.texts) == (["0", "1"], ["one\ntwo", "three"])


def test_texts_by_the_line(tmp_path):
    (tmp_path / "t.txt").write_bytes('\ufeffone, "two\r\n\r\n{three}\u2028four\n'.encode())
    source = read_texts(tmp_path / "t.txt", "text")
    assert (source.names, source.texts) == (["0", "2"], ['one, "two', "{three}\u2028four"])
    assert source.bad == {"1": f"{tmp_path / 't.txt'}: line 2 has a blank text"}
    (tmp_path / "t.txt").write_text('{"text": "one"}\n')  # JSON lines, as before there were texts by the line
    assert read_texts(tmp_path / "t.txt", "text").texts == ["one"]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.txt", "", "has no texts"),
        ("t.txt", "\n \n", "has no texts"),
        ("t.csv", "a,b\n1,2\n", "has the columns a, b"),
        ("t.csv", "text\n \n", "has no texts"),
        ("t.csv", "text\n", "has no texts"),
        ("t.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("t.jsonl", '{"text": 5}\n', "line 1 has no text"),
        ("t.jsonl", "[" * 100_000 + "\n", "line 1 is not JSON"),
        ("t.jsonl", "no json\n", "line 1 is not JSON .*; write one object a line, or name the file .csv"),
        ("t.csv", b"text\n\xff\xfe\n", "not text in UTF-8"),
        ("t.csv", "id,text\n1,a\n1,b\n", "'1' occurs more than once"),
        ("t.csv", "text,id\na,1\nb,\n", "row 1 has no id"),
        ("t.csv", "id,text\n1,a\n2\n", "line 3 has 1 fields and the header 2"),
        ("t.csv", 'id,text\n1,a\n2,"b\n3,c\n', "a quotation mark in the row that begins in line 3 is misplaced"),
        ("t.csv", 'id,text\n1,"a" b\n2,c\n', "a quotation mark in the row that begins in line 2 is misplaced"),
        ("t.jsonl", '{"text": "a\\ud800"}\n', "text cannot be a column .*surrogates"),
        ("t.jsonl", '{"text": "a", "id": "\\udfff"}\n', "id cannot be a column .*surrogates"),
    ],
)
def test_wrong_texts_are_one_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=says):
        read_texts(tmp_path / name, "text")


def test_blank_texts_are_named_and_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("id,text\na,one\nb,\nc, \nd,two\n")
    items = read_texts(tmp_path / "t.csv", "text")
    assert (items.names, items.texts) == (["a", "d"], ["one", "two"])
    assert {name: why.partition(": ")[2] for name, why in items.bad.items()} == {
        "b": "line 3 has a blank text",
        "c": "line 4 has a blank text",
    }


def test_a_quotation_mark_inside_a_text_merges_nothing_and_texts_of_several_lines_are_said(tmp_path):
    (tmp_path / "t.tsv").write_text('text\nid\n5" pipe\t1\na 3" one\t2\n'.replace("text\nid", "text\tid"))
    assert read_texts(tmp_path / "t.tsv", "text").texts == ['5" pipe', 'a 3" one']
    (tmp_path / "t.csv").write_text('text,id\n"one\ntwo",1\nthree,2\n')
    with pytest.warns(UserWarning, match="1 of 2 rows run over several lines, first lines 2 to 3"):
        assert read_texts(tmp_path / "t.csv", "text").texts == ["one\ntwo", "three"]


def test_the_same_texts_again_make_no_second_task(tmp_path):
    (tmp_path / "t.csv").write_text("text\none\ntwo\n")
    with Project.create(tmp_path / "p", make({"kind": "texts", "model": "none"})) as project:
        project.add(read_texts(tmp_path / "t.csv", "text"))
        with pytest.raises(InputError, match="has nothing new to label"):
            project.add(read_texts(tmp_path / "t.csv", "text"))
        (tmp_path / "t.csv").write_text("text\none\ntwo\nthree\n")  # the file has grown
        assert project.add(read_texts(tmp_path / "t.csv", "text")).count == 1
        assert project.item(2).text == "three"


def test_words_are_scikit_learns_tf_idf_over_hashes(tmp_path):
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    texts = ["where is my card", "where is it?", "card card card", "?!"]
    encoders.fit_words(texts, 64, tmp_path / "words.json")
    counts = HashingVectorizer(n_features=64, alternate_sign=False, norm=None, token_pattern=r"(?u)\b\w+\b").transform(
        texts
    )
    expected = TfidfTransformer(sublinear_tf=True).fit(counts).transform(counts).toarray()
    assert np.allclose(word_vectors(texts, encoders.word_weights(tmp_path / "words.json")), expected, atol=1e-5)
    assert word_vectors(["a word never seen"], encoders.word_weights(tmp_path / "words.json")).any()


def test_a_project_of_texts(tmp_path):
    rows = [
        f"please {verb} the {noun} {i}" for i in range(6) for verb in ("open", "close") for noun in ("door", "shop")
    ]
    (tmp_path / "t.csv").write_text("text\n" + "\n".join(rows) + "\n")
    settings = make({"kind": "texts", "per_round": 6, "rounds": 2, "epochs": 20, "text_features": 128})
    with Project.create(tmp_path / "p", settings) as project:
        project.store.add_person("Ada")
        project.add(read_texts(tmp_path / "t.csv", "text"))
        while not project.advance().finished:
            answer(project, name=lambda project, item: project.item(item).text.split()[1])
        assert project.item(0).text == rows[0]
        assert {one.name for one in project.store.classes()} == {"open", "close"}
        assert len(json.loads((project.tasks.folder_of(0) / "words.json").read_text())["idf"]) == 128


def test_vectors_are_brought_to_one_size_by_the_first_task():
    rng = np.random.default_rng(0)
    first = (rng.normal(size=(500, 8)) * 10.0 ** np.arange(8) + 5).astype(np.float32)
    first[:, 3] = 7.0  # constant
    scale = fit_scale(first, [], centred=True)
    x = scaled(first, scale)
    assert x.dtype == np.float32
    assert np.sqrt((x**2).sum(axis=1).mean()) == pytest.approx(inputs.NORM * np.sqrt(7 / 8), rel=0.01)
    far = scaled(first[:1] + 1e12, scale)
    assert np.abs(far).max() == pytest.approx(10 * inputs.NORM / np.sqrt(8), rel=1e-5)
    spoiled = first.copy()
    spoiled[3] = 1e20
    assert np.allclose(fit_scale(spoiled, [3], True)["mean"], np.delete(first, 3, axis=0).mean(axis=0), rtol=1e-4)
    both = TaskInputs([first, first[:5] * 0], scale)
    assert both.shape == (505, 8)
    assert np.array_equal(both[np.array([502, 1, 0])], scaled(np.stack([first[0] * 0, first[1], first[0]]), scale))


def test_words_keep_their_zeros():
    rows = np.eye(4, 6, dtype=np.float32)
    x = scaled(rows, fit_scale(rows, [], centred=False))
    assert np.array_equal(x, rows * np.float32(inputs.NORM))


OWN = """
from torch import nn
def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 5), nn.ReLU(), nn.Linear(5, 2))
def empty():
    return nn.ReLU()
def number():
    return 5
def fails():
    raise RuntimeError("no")
"""


@pytest.mark.parametrize("finetune", [False, True])
def test_a_model_of_ones_own(tmp_path, photos, finetune):
    import safetensors.torch
    import torch

    (tmp_path / "own.py").write_text(OWN)
    weights = {"1.weight": torch.ones(5, 192) / 192, "1.bias": torch.zeros(5)}
    weights |= {"3.weight": torch.zeros(2, 5), "3.bias": torch.zeros(2)}
    safetensors.torch.save_file(weights, tmp_path / "own.safetensors")
    given = IMAGES | {"model": f"{tmp_path}/own.py:build", "weights": str(tmp_path / "own.safetensors")}
    given |= {"image_size": 8, "finetune": finetune, "mean": (0.0,) * 3, "std": (1.0,) * 3}
    with Project.create(tmp_path / "p", make(given)) as project:
        project.store.add_person("Ada")
        project.add(read_images(photos, quiet))
        while not project.advance().finished:
            answer(project, name=colour)
        made = np.load(project.tasks.folder_of(0) / "inputs.npy")
        assert made.shape == ((12, 8, 8, 3) if finetune else (12, 5))
        if not finetune:
            pixels = check_image((photos / "002.png").read_bytes(), 8) / 255
            assert np.allclose(made[2], pixels.mean(), atol=1e-5)
        project.add(read_images(folder_of(tmp_path / "more", 6), quiet))
        (tmp_path / "own.py").write_text(OWN + "# changed\n")
        with pytest.raises(InputError, match="has changed since this project began"):
            finish(project)


@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        ("empty", InputError, "has no nn.Linear"),
        ("number", InputError, "returned int"),
        ("missing", InputError, "has no function missing"),
        ("fails", RuntimeError, "no"),  # the author's own, with its traceback
    ],
)
def test_a_model_that_cannot_be_made_is_refused_before_anything_is_written(tmp_path, function, kind, says):
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(kind, match=says):
        Project.create(tmp_path / "p", make(IMAGES | {"model": f"{tmp_path}/own.py:{function}"}))
    assert not (tmp_path / "p").exists()


def test_learning_from_scratch_is_warned_of(tmp_path):
    with pytest.warns(UserWarning, match="the model learns from scratch"):
        Project.create(tmp_path / "p", make(IMAGES)).close()


def test_the_vector_of_a_text_never_changes(tmp_path):
    """As it was computed by hand before scikit-learn's transformer did it: projects on disk rely on every bit."""
    texts = ["a b b", "", "b " * 1000, *(f"word{i % 7} {'again ' * i}" for i in range(40))]
    encoders.fit_words(texts, 64, tmp_path / "words.json")
    idf = np.array(json.loads((tmp_path / "words.json").read_text())["idf"])
    counts = count_words(texts, 64).toarray()
    rows = np.where(counts > 0, (1 + np.log(np.maximum(counts, 1))) * idf, 0.0)
    expected = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float32)
    assert np.array_equal(word_vectors(texts, encoders.word_weights(tmp_path / "words.json")), expected)

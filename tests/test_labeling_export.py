"""What leaves a project, and the commands."""

from __future__ import annotations

import csv
import json
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.cli import app
from accuacl.experiments import Journal, checkpoints, models
from accuacl.labeling.project import Project, Tasks, export, make, read_images, read_texts, read_vectors
from accuacl.labeling.project.loader import load
from accuacl.labeling.project.people_steps import PeopleSteps
from accuacl.labeling.store import Store
from commands import accuacl
from effort import has_pretrained
from processes import run_alone
from scripted import SMALL, answer, blobs, finish, new_project, records, texts_project

pytestmark = pytest.mark.filterwarnings("ignore:the model learns from scratch")
STAND_ALONE = "import sys, json; sys.path.insert(0, sys.argv[1]); import model\n"


def quiet(progress):
    pass


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def own_probabilities(project, ids):
    """What the project itself computes for its items, columns by class name."""
    with Journal(project.directory, project.settings, {}) as journal:
        steps = PeopleSteps(project, journal)
        for task in steps.tasks:
            steps.pool_of(task)
        trained = records(project, "*/train")
        handle = trained[max(trained)]
        assert checkpoints.load_tensors(steps.folder, handle)
        return steps.networks.features(
            steps.networks.model(handle), np.array(ids), np.array(handle["seen"])
        ).probabilities


def test_labels_are_exported_with_source_class_person_and_time(tmp_path):
    with new_project(tmp_path / "p", 2) as project:
        finish(project)
        bob = project.store.person_of(project.store.add_person("Bob"))
        item = min(project.store.labels())
        project.store.correct(bob, item, project.store.add_class('=odd, "name"').id, uuid.uuid4().hex)
        written = export(project, tmp_path / "e", None, "text", quiet)
        assert [path.name for path in written] == [
            *("labels.csv", "labels.parquet", "skipped.csv", "answers.csv", "comments.csv"),
            *("model.safetensors", "model.json", "model.py", "MODEL_CARD.md", "unlabelled.csv"),
        ]
        rows = table(tmp_path / "e" / "labels.csv")
        assert len(rows) == 32
        assert rows[0]["class"] == '\'=odd, "name"'  # which no spreadsheet reckons with
        assert pq.read_table(tmp_path / "e" / "labels.parquet")["class"][0].as_py() == '=odd, "name"'
        assert rows[0]["person"] == "Bob"
        assert rows[0]["name"] == project.item(item).name
        assert rows[0]["source"] == "blobs 0"
        assert {row["task"] for row in rows} == {"1", "2"}
        assert sum(row["held_out"] == "True" for row in rows) == 4
        assert pq.read_table(tmp_path / "e" / "labels.parquet").num_rows == 32
        with pytest.raises(InputError, match="is not empty"):
            export(project, tmp_path / "e", None, "text", quiet)
        with pytest.raises(InputError, match=r"labels\.csv is a file; give a new folder"):
            export(project, tmp_path / "e" / "labels.csv", None, "text", quiet)


def test_before_anything_is_learned_only_labels_leave(tmp_path):
    with new_project(tmp_path / "p") as project:
        project.advance()
        answer(project, 3)
        assert [path.name for path in export(project, tmp_path / "e", None, "text", quiet)] == [
            "labels.csv",
            "labels.parquet",
            "skipped.csv",
            "answers.csv",
            "comments.csv",
        ]
        with pytest.raises(InputError, match="nothing has been learned yet"):
            export(project, tmp_path / "f", tmp_path / "v.parquet", "text", quiet)


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_the_model_alone_says_the_same(tmp_path, head):
    with new_project(tmp_path / "p", 2, head=head) as project:
        finish(project)
        export(project, tmp_path / "e", None, "text", quiet)
        vectors = [blobs(t)[0].vectors[i] for t in range(2) for i in range(10)]
        expected = own_probabilities(project, [*range(10), *range(60, 70)])
        model = load(tmp_path / "e")
        assert model.classes == [one.name for one in project.store.classes()]
        assert np.allclose(model.probabilities(vectors, batch=7), expected, atol=1e-5)
        assert model.probabilities([]).shape == (0, 4)
        project.store.merge_class(1, 0)
        project.store.rename_class(0, "both")
        export(project, tmp_path / "f", None, "text", quiet)
        merged = load(tmp_path / "f")
        assert merged.classes == ["both", *model.classes[2:]]
        assert np.allclose(merged.probabilities(vectors)[:, 0], expected[:, :2].sum(axis=1), atol=1e-5)


def test_the_exported_file_needs_nothing_of_accuacl(tmp_path):
    with new_project(tmp_path / "p") as project:
        finish(project)
        export(project, tmp_path / "e", None, "text", quiet)
        expected = own_probabilities(project, range(5)).argmax(axis=1)
    np.save(tmp_path / "x.npy", blobs(0)[0].vectors[:5])
    code = STAND_ALONE + (
        "import numpy as np; names, p = model.load(sys.argv[1]).predict(np.load(sys.argv[2]))\nprint(json.dumps(names))"
    )
    done = run_alone(code, tmp_path / "e", tmp_path / "x.npy")
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)
    with Project.open(tmp_path / "p") as project:
        assert names == [project.store.classes()[c].name for c in expected]


def pictures(place, count=10):
    place.mkdir()
    for i in range(count):
        noise = np.random.default_rng(i).integers(0, 60, (40, 52, 3)) + (190 if i % 2 else 0)
        grey = (257 * noise[:, :, 0]).astype(np.uint16)  # of 16 bits: the first two
        Image.fromarray(noise.astype(np.uint8) if i > 1 else grey).save(place / f"{i}.png")
    return place


def bright(project, item):
    return "bright" if int(project.item(item).name[0]) % 2 else "dark"


MODELS = [
    {"model": "conv4", "image_size": 32},
    pytest.param(
        {"model": "efficientnet-lite2", "image_size": 64, "runtime": "onnxruntime"},  # bfloat16 is not that exact
        marks=pytest.mark.skipif(not has_pretrained(), reason="the extra `label` is not installed"),
    ),
    pytest.param(
        {"model": "efficientnet-lite0", "image_size": 64, "finetune": True},
        marks=pytest.mark.skipif(not has_pretrained(), reason="the extra `label` is not installed"),
    ),
    {"model": "own", "image_size": 16},
    {"model": "own", "image_size": 16, "finetune": True},
]


@pytest.mark.parametrize("given", MODELS, ids=lambda given: f"{given['model']}-{given.get('finetune', False)}")
def test_models_of_images_say_the_same_alone(tmp_path, given):
    if given["model"] == "own":
        (tmp_path / "own.py").write_text(
            "from torch import nn\n"
            "def build(): return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), "
            "nn.Flatten(), nn.Linear(4, 7))\n"
        )
        given = given | {"model": f"{tmp_path / 'own.py'}:build"}
    photos = pictures(tmp_path / "photos")
    small = {"kind": "images", "per_round": 4, "rounds": 1, "epochs": 2, "holdout": 0.25}
    with Project.create(tmp_path / "p", make(small | given)) as project:
        project.store.add_person("Ada")
        project.add(read_images(photos, quiet))
        while not project.advance().finished:
            answer(project, name=bright)
        written = export(project, tmp_path / "e", photos, "text", quiet)
        assert written[-1].name == "predictions.csv"
        paths = [photos / f"{i}.png" for i in range(10)]
        expected = own_probabilities(project, range(10))
        assert np.allclose(load(tmp_path / "e").probabilities(paths), expected, atol=2e-3)
        names = [one.name for one in project.store.classes()]
        said = np.array([names.index(row["class"]) for row in table(written[-1])])
        assert (expected[np.arange(10), said] >= expected.max(axis=1) - 4e-3).all()  # the largest, or as good as it


@pytest.mark.parametrize("finetune", [False, True])
def test_ones_own_model_of_vectors_says_the_same_alone(tmp_path, finetune):
    (tmp_path / "own.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom torch import nn\n"
        "@dataclass\nclass Width:\n    hidden: int = 5\n"  # which looks its module up
        "def build():\n    return nn.Sequential(nn.Linear(6, Width().hidden), nn.Tanh(), nn.Linear(5, 2))\n"
    )
    own = {"model": f"{tmp_path / 'own.py'}:build", "finetune": finetune}
    with new_project(tmp_path / "p", 2, **own) as project:
        finish(project)
        export(project, tmp_path / "e", None, "text", quiet)
        expected = own_probabilities(project, range(20))
        found = load(tmp_path / "e").probabilities(list(blobs(0)[0].vectors[:20]))
        assert np.allclose(found, expected, atol=1e-5)


def test_a_model_of_texts_says_the_same_alone(tmp_path):
    with texts_project(tmp_path) as project:
        export(project, tmp_path / "e", tmp_path / "t.csv", "text", quiet)
        expected = own_probabilities(project, range(20))
        assert np.allclose(
            load(tmp_path / "e").probabilities([project.item(i).text for i in range(20)]), expected, atol=1e-5
        )
        names = [one.name for one in project.store.classes()]
        said = [names.index(row["class"]) for row in table(tmp_path / "e" / "predictions.csv")]
        assert said == expected.argmax(axis=1).tolist()


def test_ones_own_model_of_texts_says_the_same_alone(tmp_path):
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def build(): return lambda texts: np.array([[t.count(c) for c in 'opencls'] for t in texts], np.float32)\n"
    )
    (tmp_path / "t.csv").write_text("text\n" + "".join(f"{('open', 'close')[i % 2]} it {i}\n" for i in range(20)))
    settings = make({"kind": "texts", "model": f"{tmp_path / 'own.py'}:build", "per_round": 8, "rounds": 1})
    with Project.create(tmp_path / "p", settings) as project:
        project.store.add_person("Ada")
        project.add(read_texts(tmp_path / "t.csv", "text"))
        while not project.advance().finished:
            answer(project, name=lambda project, item: project.item(item).text.split()[0])
        export(project, tmp_path / "e", None, "text", quiet)
        (tmp_path / "own.py").unlink()  # the export has its own
        found = load(tmp_path / "e").probabilities([project.item(i).text for i in range(20)])
        assert np.allclose(found, own_probabilities(project, range(20)), atol=1e-5)


@pytest.mark.skipif(not has_pretrained(), reason="the extra `label` is not installed")
def test_the_pretrained_network_sees_and_leaves_the_generator_alone():
    import torch

    from accuacl.labeling.project.encoders import load_backbone

    torch.manual_seed(5)
    before = torch.get_rng_state()
    backbone = load_backbone(make({"kind": "images"}))
    assert torch.equal(torch.get_rng_state(), before)
    assert backbone.width == 1280
    x = backbone.transform.plain(torch.tensor([0, 127, 255], dtype=torch.uint8).view(1, 1, 3, 1).expand(1, 1, 3, 3))
    assert x[0, 0, 0].tolist() == pytest.approx([-127 / 128, 0, 1], abs=1e-6)
    frozen = models.Frozen(backbone.embed, backbone.transform.plain)
    images = torch.zeros(2, 64, 64, 3, dtype=torch.uint8)
    images[1] = 255
    h = frozen.embed_all(images)
    assert h.shape == (2, 1280)
    assert h.isfinite().all()
    assert not torch.allclose(h[0], h[1])


def cli(*arguments):
    return accuacl("project", *arguments, width=160)


def write_blobs(path, task):
    source, _ = blobs(task)
    pq.write_table(pa.table({"id": source.names, "embedding": source.vectors.tolist()}), path)
    return path


def test_the_commands_from_new_to_export(tmp_path):
    one, two = (write_blobs(tmp_path / f"{t}.parquet", t) for t in range(2))
    folder = tmp_path / "p"
    options = ["--per-round=6", "--rounds=1", "--epochs=3", "--classes=class 0, class 1", "--strategy=uniform"]
    code, text, error = cli("new", folder, "--vectors", one, *options)
    assert code == 0, error
    assert "task 1: 60 vectors" in text
    code, token, note = cli("person", folder, "add", "Ada")
    assert (code, len(token.split())) == (0, 1)
    assert note.startswith(
        "Ada can log in with this token once, within a week, on the page that `accuacl project serve"
    )
    assert f"ready to train and to choose. Next: accuacl project train {folder}\n" in cli("status", folder)[1]
    code, text, error = cli("train", folder)
    assert (code, len(error.splitlines())) == (75, 1)
    assert "6 of 6" in error
    assert text == f"task 1, round 1: 6 are chosen to be labelled: accuacl project serve {folder}\n"
    assert cli("train", folder)[:2] == (75, "")  # nothing to do
    assert f"6 of 6 to be labelled. Next: accuacl project serve {folder}\n" in cli("status", folder)[1]
    code, text, _ = cli("export", folder, "--out", tmp_path / "early")
    assert "note: nothing has been learned yet, so there is no model; label a round first.\n" in text
    code, text, _ = cli("add", folder, "--vectors", two)
    assert text == "task 2: 60 vectors\nit begins when the earlier tasks are done\n"
    with Project.open(folder) as project:
        assert project.store.person_of(token.strip()).name == "Ada"
        assert [c.name for c in project.store.classes()] == ["class 0", "class 1"]
        assert project.settings.strategy == "uniform"
        answer(project)
    code, text, _ = cli("train", folder)
    assert code == 75
    learned, chosen = text.splitlines()
    assert learned == "task 1, round 1: learned from 4 labels; 2 more are held out to test it"
    assert chosen == f"task 2, round 1: 6 are chosen to be labelled: accuacl project serve {folder}"
    with Project.open(folder) as project:
        answer(project)
    code, text, _ = cli("train", folder)
    assert (code, "everything is labelled and learned" in text) == (0, True)
    assert text.startswith("task 2, round 1: learned from ")
    code, text, _ = cli("status", folder)
    assert code == 0
    for part in ("Estimates", "class 0", "Ada 12", "labels of task 2: 6 of 6"):
        assert part in text
    code, text, error = cli("export", folder, "--out", tmp_path / "e", "--predict", two)
    assert code == 0, error
    assert len((tmp_path / "e" / "predictions.csv").read_text().splitlines()) == 61
    assert "no model" not in text
    assert cli("add", folder, "--vectors", write_blobs(tmp_path / "2.parquet", 2))[1].endswith(
        f"next: accuacl project serve {folder}\n"
    )
    cli("person", folder, "add", "Bob")
    assert cli("person", folder, "lead", "Bob")[1] == "Bob is a lead now.\n"
    assert cli("person", folder, "annotator", "Bob")[1] == "Bob is an annotator now.\n"
    said, warned = cli("person", folder, "revoke", "Ada")[1].splitlines()
    assert said == "Ada no longer has access; their labels stay."
    assert warned.startswith("nobody leads the project now; ")
    with Project.open(folder) as project:
        assert project.store.person_of(token.strip()) is None


def test_commands_that_are_named_can_be_pasted(tmp_path):
    folder = tmp_path / "my [red] project"
    _, text, _ = cli("new", folder, "--vectors", write_blobs(tmp_path / "0.parquet", 0), "--classes=a,b")
    assert text.endswith(f"next: accuacl project serve '{folder}'\n")
    assert f"Next: accuacl project train '{folder}'\n" in cli("status", folder)[1]


def test_a_folder_that_cannot_be_made_and_a_file_that_cannot_be_read_are_sentences(tmp_path):
    (tmp_path / "file").write_text("")
    with new_project(tmp_path / "p") as project:
        finish(project)
        with pytest.raises(InputError, match=r"file/e cannot be (made|read): not a directory"):
            export(project, tmp_path / "file" / "e", None, "text", quiet)
        with pytest.raises(InputError, match=r"file/p cannot be (made|read): not a directory|file cannot be made"):
            Project.begin(tmp_path / "file" / "p", make(SMALL), ["a"], blobs(0)[0])
        (project.tasks.folder_of(0) / "scale.safetensors").unlink()
        (project.tasks.folder_of(0) / "scale.safetensors").mkdir()
        with pytest.raises(InputError, match="cannot be read: is a directory"):
            export(project, tmp_path / "e", None, "text", quiet)


@pytest.mark.parametrize(("place", "what"), [(Tasks, "add"), (Store, "add_class")])
def test_a_project_that_cannot_be_made_leaves_nothing(tmp_path, monkeypatch, place, what):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(place, what, full)
    path = write_blobs(tmp_path / "v.parquet", 0)
    (tmp_path / "p").mkdir()  # the user's own
    with pytest.raises(OSError, match="No space"):
        app(["project", "new", str(tmp_path / "p"), "--vectors", str(path), "--classes=a"], standalone_mode=False)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["p", "v.parquet"]
    assert not list((tmp_path / "p").iterdir())


def test_of_two_who_make_the_same_project_one_does(tmp_path, monkeypatch):
    add = Tasks.add

    def slowly(self, source):
        monkeypatch.setattr(Tasks, "add", add)
        Project.begin(tmp_path / "p", make(SMALL), ["first"], source)  # meanwhile, by another process
        return add(self, source)

    monkeypatch.setattr(Tasks, "add", slowly)
    with pytest.raises(InputError, match="p is already a project"):
        Project.begin(tmp_path / "p", make(SMALL), ["second"], blobs(0)[0])
    assert [one.name for one in tmp_path.iterdir()] == ["p"]
    with Project.open(tmp_path / "p") as project:
        assert [one.name for one in project.store.classes()] == ["first"]
        assert len(project.tasks.all()) == 1


def test_columns_of_numbers_are_known_by_their_names(tmp_path):
    """In later tasks and in what is predicted, whatever their order there."""
    source, _ = blobs(0)
    columns = {f"x{i}": source.vectors[:, i] for i in range(6)}
    turned = dict(reversed(columns.items())) | {"more": np.ones(60)}
    pq.write_table(pa.table({"id": source.names, **columns}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [f"again {name}" for name in source.names], **turned}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"y": np.ones(3)}), tmp_path / "c.parquet")
    Project.begin(tmp_path / "p", make(SMALL | {"rounds": 1}), [], read_vectors(tmp_path / "a.parquet"))
    with Project.open(tmp_path / "p") as project:
        project.store.add_person("Ada")
        project.advance()
        answer(project)
        project.advance()
        project.add(read_vectors(tmp_path / "b.parquet"))
        stored = [np.load(project.tasks.folder_of(t) / "vectors.npy") for t in range(2)]
        np.testing.assert_array_equal(*stored)
        for wrong, says in (("c.parquet", "has no column of numbers x0, x1"), ("d.parquet", "`embedding`")):
            write_blobs(tmp_path / "d.parquet", 0)
            with pytest.raises(InputError, match=says):
                project.add(read_vectors(tmp_path / wrong))
        said = []
        for name in ("a", "b"):
            export(project, tmp_path / name, tmp_path / f"{name}.parquet", "text", quiet)
            said.append([row["class"] for row in table(tmp_path / name / "predictions.csv")])
        assert said[0] == said[1]
        with pytest.raises(InputError, match="x0"):
            export(project, tmp_path / "c", tmp_path / "c.parquet", "text", quiet)
        assert not (tmp_path / "c").exists()  # so that the right command can be given next


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["new", "P"], "give one of --images"),
        (["new", "P", "--vectors", "V", "--texts", "V"], "give one of --images"),
        (["new", "P", "--vectors", "nowhere.parquet"], "nowhere.parquet does not exist"),
        (["new", "P", "--vectors", "V", "--learner", "magic"], "there is no learner 'magic'"),
        (["new", "P", "--vectors", "V", "--mean", "x"], "--mean is 'x'"),
        (["new", "P", "--vectors", "V", "--classes", "a,a"], "not all different"),
        (["status", "P"], "is not a project"),
        (["train", "P"], "is not a project"),
    ],
)
def test_wrong_commands_are_one_sentence(tmp_path, arguments, says):
    paths = {"P": tmp_path / "p", "V": write_blobs(tmp_path / "v.parquet", 0)}
    code, _, error = cli(*(paths.get(one, one) for one in arguments))
    assert (code, len(error.splitlines())) == (2, 1)
    assert says in error
    assert not (tmp_path / "p").exists()

"""A round trip through a real Label Studio: pushed, labelled as a person would, pulled, trained, and again.

`make test-label-studio` runs it where nothing but this machine can be reached. With LABEL_STUDIO_URL and
LABEL_STUDIO_API_KEY set it uses the server that is there instead of starting one.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from accuacl.labeling.project import Project

BIN = Path(sys.executable).parent
CLASSES = ["zero", "one", "two", "three", "four"]
PER_ROUND = 12
PATIENCE = 600  # seconds for the first start, which makes a database


@contextlib.contextmanager
def server(folder: Path, port: int = 8091) -> Iterator[tuple[str, str]]:
    """A Label Studio of our own, which tells nobody anything: its address and a token."""
    if os.environ.get("LABEL_STUDIO_URL"):
        yield os.environ["LABEL_STUDIO_URL"], os.environ["LABEL_STUDIO_API_KEY"]
        return
    url, token = f"http://127.0.0.1:{port}", secrets.token_hex(20)
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_USERNAME": "ada@example.org",
        "LABEL_STUDIO_PASSWORD": secrets.token_hex(16),
        "LABEL_STUDIO_USER_TOKEN": token,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }
    command = [BIN / "label-studio", "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, env=os.environ | settings, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        until = time.monotonic() + PATIENCE
        while not healthy(url):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"Label Studio did not start:\n{(folder / 'server.log').read_text()[-3000:]}")
            time.sleep(1)
        yield url, token
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)  # the session that was started above, and nothing else
        process.wait(30)


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def accuacl(*words: object, token: str = "", code: int = 0) -> str:
    """What the command says, which never has the token in it."""
    given = {"LABEL_STUDIO_API_KEY": token, "COLUMNS": "200"}
    ran = subprocess.run(
        [BIN / "accuacl", "project", *map(str, words)], env=os.environ | given, capture_output=True, text=True
    )
    said = ran.stdout + ran.stderr
    print(f"$ accuacl project {' '.join(map(str, words))}\n{said.rstrip()}", flush=True)
    assert ran.returncode == code, ran.returncode
    assert not token or token not in said
    return said


def digits(folder: Path, count: int = 120) -> dict[str, str]:
    """Images of handwritten digits below five, and the class of each."""
    from sklearn.datasets import load_digits

    folder.mkdir()
    images, numbers = load_digits(return_X_y=True)
    truth = {}
    for i in np.flatnonzero(numbers < len(CLASSES))[:count]:
        pixels = (images[i].reshape(8, 8) * 15.9).astype(np.uint8)
        Image.fromarray(pixels).resize((64, 64)).save(folder / f"{i}.png")
        truth[f"{i}.png"] = CLASSES[numbers[i]]
    return truth


class Person:
    """Someone who labels in Label Studio, through its API as its page does."""

    def __init__(self, url: str, token: str, project: Project, truth: dict[str, str]) -> None:
        from label_studio_sdk import LabelStudio

        self.client, self.project, self.truth = LabelStudio(base_url=url, api_key=token), project, truth

    def tasks(self, place: int, round: int) -> list:
        """The round's tasks as they stand there."""
        found = self.client.tasks.list(project=place, fields="all")
        return sorted((task for task in found if task.meta["round"] == round), key=lambda task: task.id)

    def answer(self, task: object, choice: str = "", skip: bool = False) -> int:
        choice = choice or self.truth[self.project.item(task.meta["item"]).name]
        said = {"from_name": "class", "to_name": "item", "type": "choices", "value": {"choices": [choice]}}
        made = self.client.annotations.create(id=task.id, result=[] if skip else [said], was_cancelled=skip)
        return int(made.id)

    def change(self, annotation: int, choice: str) -> None:
        said = {"from_name": "class", "to_name": "item", "type": "choices", "value": {"choices": [choice]}}
        self.client.annotations.update(id=annotation, result=[said])


def round_trip(folder: Path, url: str, token: str) -> None:
    truth = digits(folder / "images")
    home, at = folder / "digits", ("--label-studio", url)
    shape = ("--per-round", PER_ROUND, "--rounds", 2, "--model", "conv4", "--image-size", 16, "--epochs", 3)
    accuacl("new", home, "--images", folder / "images", "--classes", ",".join(CLASSES), *shape)
    assert "ready to train" in accuacl("push", home, *at, token=token, code=2)
    accuacl("train", home, code=75)

    assert "set LABEL_STUDIO_API_KEY" in accuacl("push", home, *at, code=2)
    nowhere = "http://127.0.0.1:1"
    assert f"no Label Studio server answers at {nowhere} " in accuacl(
        "push", home, "--label-studio", nowhere, token=token, code=2
    )
    assert "does not accept the token" in accuacl("push", home, *at, token="0" * 40, code=2)

    said = accuacl("push", home, *at, token=token)
    place = int(re.search(r"/projects/(\d+): 12 tasks added, 0 were there", said)[1])
    assert "0 tasks added, 12 were there" in accuacl("push", home, *at, token=token)

    with Project.open(home) as project:
        person = Person(url, token, project, truth)
        first = person.tasks(place, 1)
        assert [task.meta["item"] for task in first] == [pick.item for pick in project.store.picks(0, 0)]
        for rank, task in enumerate(first):
            (ranked,) = task.predictions
            ranked = ranked if isinstance(ranked, dict) else ranked.dict()
            assert (ranked["model_version"], ranked["result"]) == ("task 1 round 1", [])  # there is no model yet
            assert abs(ranked["score"] - (1 - rank / len(first))) < 1e-6
            shown = Image.open(io.BytesIO(base64.b64decode(task.data["images"].split(",")[1])))
            assert shown.size == (64, 64)
        made = [person.answer(task) for task in first[:5]]
        person.answer(first[5], skip=True)
        person.answer(first[6], choice="seven")
        said = accuacl("pull", home, *at, token=token, code=2)
        assert "5 labelled, 1 skipped, 0 corrected" in said
        assert f"task {first[6].id} in Label Studio: the choice 'seven' is not a class" in said
        assert "0 labelled, 0 skipped, 0 corrected" in accuacl("pull", home, *at, token=token, code=2)
        ours = person.tasks(place, 1)[6].annotations[0]["id"]
        person.change(ours, truth[project.item(first[6].meta["item"]).name])
        person.change(made[0], "four")
        assert "1 labelled, 0 skipped, 1 corrected" in accuacl("pull", home, *at, token=token)
        for task in first[7:]:
            person.answer(task)
        said = accuacl("pull", home, *at, token=token)
        assert "5 labelled, 0 skipped, 0 corrected" in said
        assert "Next: accuacl project train" in said
        assert project.state().used == PER_ROUND - 1
        accuacl("train", home, code=75)
        project.store.add_class("<&>")
        assert f"{PER_ROUND + 1} tasks added" in accuacl("push", home, *at, token=token)  # one for the one skipped

        assert '<Choice value="&lt;&amp;&gt;"' in person.client.projects.get(id=place).label_config
        second = person.tasks(place, 2)
        assert [task.meta["item"] for task in second] == [pick.item for pick in project.store.picks(0, 1)]
        for rank, task in enumerate(second):
            (guess,) = task.predictions
            guess = guess if isinstance(guess, dict) else guess.dict()
            assert guess["model_version"] == "task 1 round 2"
            assert abs(guess["score"] - (1 - rank / len(second))) < 1e-6
            assert guess["result"][0]["value"]["choices"][0] in CLASSES
        for task in second:
            person.answer(task)
        person.change(made[0], truth[project.item(first[0].meta["item"]).name])  # in a round that is closed
        said = accuacl("pull", home, *at, "--watch", "--train", token=token)
        assert f"{PER_ROUND + 1} labelled, 0 skipped, 1 corrected" in said
        assert "everything is labelled and learned" in said
        assert "0 labelled, 0 skipped, 0 corrected" in accuacl("pull", home, *at, token=token)

        names = {one.id: one.name for one in project.store.classes()}
        labels = project.store.labels()
        assert len(labels) == 2 * PER_ROUND
        assert all(names[id] == truth[project.item(item).name] for item, id in labels.items())
        for task in first + second:
            kinds = [event.kind for event in project.store.history(task.meta["item"])]
            assert kinds.count("label") + kinds.count("skip") == 1  # nothing double
        assert len({one.name for one in project.store.people()}) == 1
        print("labelled by", *(one.name for one in project.store.people()))
        person.client.projects.delete(id=place)
    assert "no longer has project" in accuacl("pull", home, *at, token=token, code=2)


def others(folder: Path, url: str, token: str) -> None:
    """Texts and tables are taken by the server too, and come back."""
    (folder / "words.csv").write_text("text\n<b>good</b> & cheap\nbad\nfine\n")
    columns = {"id": ["a", "b", "c"], "width": [1.0, 2.5, 3.0], "height": [0.5, 0.1, 0.2]}
    pq.write_table(pa.table(columns), folder / "table.parquet")
    for kind, source in (("texts", "words.csv"), ("vectors", "table.parquet")):
        home, at = folder / kind, ("--label-studio", url)
        shape = ("--per-round", 3, "--rounds", 1, "--epochs", 2)
        accuacl("new", home, f"--{kind}", folder / source, "--classes", "yes,no", *shape)
        accuacl("train", home, code=75)
        place = int(re.search(r"/projects/(\d+): 3 tasks", accuacl("push", home, *at, token=token))[1])
        with Project.open(home) as project:
            person = Person(url, token, project, {})
            for task, choice in zip(person.tasks(place, 1), ("yes", "no", "yes"), strict=True):
                item = project.item(task.meta["item"])
                assert task.data[kind] == (item.text or {name: str(value) for name, value in item.fields})
                person.answer(task, choice)
            assert "3 labelled" in accuacl("pull", home, *at, "--train", token=token)
            assert project.state().finished


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "server").mkdir()
        with server(Path(name) / "server") as (url, token):
            round_trip(Path(name), url, token)
            others(Path(name), url, token)
    print("the round trip is complete")

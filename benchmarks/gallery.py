"""How many actions 100 labels take in the gallery and one by one, by how many of the model's guesses are right.

A scripted annotator who makes no mistakes labels rounds of 100 through the page's own requests. One by one it presses
the key of a class for each example. In the gallery it goes to each wrong one (by arrow keys, or by a click, which
strikes it out), gives it its class by a number key, and confirms each group with Enter. Every key press and click is
one action. Run: python benchmarks/gallery.py
"""

from __future__ import annotations

import argparse
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from accuacl.labeling.project import NewItems, Project, make
from accuacl.labeling.store import Pick
from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.trainer import Trainer

ROUND = 100
COLUMNS = 9  # examples side by side in a window of 1280 pixels
SHARES = (0.5, 0.7, 0.9)


class Idle(Trainer):
    """Trains nothing: the rounds are made here."""

    def _check(self) -> None:
        pass


class Annotator:
    """Knows the truth, and counts what it does."""

    def __init__(self, client: TestClient, truth: dict[int, int], mouse: bool) -> None:
        self.client, self.truth, self.mouse, self.actions = client, truth, mouse, 0

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = self.client.post(path, json=body)
        answer.raise_for_status()
        return dict(answer.json())

    def one_by_one(self) -> None:
        """A key for each example."""
        pick = self.post("/api/next")["pick"]
        while pick:
            self.actions += 1
            said = {"item": pick["item"], "class_id": self.truth[pick["item"]], "request": uuid.uuid4().hex}
            pick = self.post("/api/label", **said)["pick"]

    def gallery(self) -> None:
        """Group after group, until there is none."""
        while groups := self.post("/api/gallery")["groups"]:
            for group in groups:
                self.confirm(group["class_id"], [one["item"] for one in group["items"]])

    def confirm(self, class_id: int, items: list[int]) -> None:
        """Give the wrong ones of a group their classes, and confirm it."""
        wrong = [i for i, item in enumerate(items) if self.truth[item] != class_id]
        ways = len(wrong) if self.mouse else sum(steps(wrong))
        self.actions += ways + len(wrong) + 1  # to each, its number key, and Enter
        labels = [{"item": item, "class_id": self.truth[item]} for item in items]
        self.post("/api/gallery/label", labels=labels, request=uuid.uuid4().hex)


def steps(cells: list[int]) -> Iterator[int]:
    """Arrow keys from the first cell to each of these in turn."""
    here = 0
    for cell in cells:
        yield abs(cell // COLUMNS - here // COLUMNS) + abs(cell % COLUMNS - here % COLUMNS)
        here = cell


def measure(folder: Path, share: float, classes: int, rounds: int, way: str) -> float:
    """Actions for 100 labels."""
    rng = np.random.default_rng(0)
    truth = dict(enumerate(rng.integers(classes, size=rounds * ROUND).tolist()))
    settings = make({"kind": "vectors", "per_round": ROUND, "rounds": rounds})
    vectors = np.zeros((len(truth), 2), np.float32)
    with Project.create(folder / way / f"{share}", settings, [f"class {i}" for i in range(classes)]) as project:
        project.add(NewItems("vectors", "made up", [str(i) for i in truth], vectors=vectors))
        app = make_app(project, trainer=Idle(project))
        app.state.site.requests.burst = 10**9  # the limit is for people
        with TestClient(app, base_url="http://127.0.0.1") as client:
            client.post("/api/login", json={"token": project.store.add_person("Ada")}).raise_for_status()
            annotator = Annotator(client, truth, mouse=way == "mouse")
            for round in range(rounds):
                project.store.open_round(0, round, offered(truth, round, share, classes, rng))
                annotator.one_by_one() if way == "one by one" else annotator.gallery()
                project.store.close_round(0, round)
            assert project.store.labels() == truth
    return annotator.actions / rounds


def offered(truth: dict[int, int], round: int, share: float, classes: int, rng: np.random.Generator) -> list[Pick]:
    """A round of which exactly this share of guesses is right."""
    items = list(truth)[round * ROUND : (round + 1) * ROUND]
    right = set(rng.permutation(items)[: int(share * ROUND + 0.5)].tolist())
    guesses = [truth[i] if i in right else int((truth[i] + rng.integers(1, classes)) % classes) for i in items]
    sure = rng.random(len(items))
    return [Pick(item, rank, {}, guesses[rank], float(sure[rank])) for rank, item in enumerate(items)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=10, choices=range(2, 11), help="each has a number key")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"actions for 100 labels, {options.classes} classes, mean of {options.rounds} rounds")
    print("| guesses that are right | one by one | gallery, mouse and keys | gallery, keyboard alone |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for share in SHARES:
            ways = ("one by one", "mouse", "keyboard")
            counts = [measure(Path(folder), share, options.classes, options.rounds, way) for way in ways]
            print(f"| {100 * share:.0f} % | " + " | ".join(f"{count:.0f}" for count in counts) + " |")


if __name__ == "__main__":
    main()

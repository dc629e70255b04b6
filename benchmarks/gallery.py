"""How many actions 100 labels take in the gallery and one by one, by how many of the model's guesses are right.

A scripted annotator who makes no mistakes labels rounds of 100 through the page's own requests. One by one it presses
the key of a class for each example. In the gallery it strikes out the wrong ones (or inverts a group of which most are
wrong), confirms each group with Enter, and labels what was struck out one by one. Every key press and click is one
action. Run: python benchmarks/gallery.py
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
        """Group after group; what was struck out is labelled one by one at the end."""
        struck: set[int] = set()
        while True:
            groups = self.post("/api/gallery")["groups"]
            left = {group["class_id"]: [one["item"] for one in group["items"]] for group in groups}
            left = {id: [item for item in items if item not in struck] for id, items in left.items()}
            if not any(left.values()):
                break
            for class_id, items in left.items():
                if items:
                    struck |= self.confirm(class_id, items)
        if struck:
            self.actions += 1  # Enter, on the link to the other page
            self.one_by_one()

    def confirm(self, class_id: int, items: list[int]) -> set[int]:
        """Strike out the wrong ones of a group and confirm the others; those struck out."""
        right = [i for i, item in enumerate(items) if self.truth[item] == class_id]
        wrong = [i for i, item in enumerate(items) if self.truth[item] != class_id]
        invert = len(wrong) > 1 + len(right)
        chosen = right if invert else wrong
        self.actions += invert + len(chosen) + 1  # strikes, and Enter
        if not self.mouse:
            self.actions += sum(steps(chosen))
        if right:
            labels = [{"item": items[i], "class_id": class_id} for i in right]
            self.post("/api/gallery/label", labels=labels, request=uuid.uuid4().hex)
        return {items[i] for i in wrong}


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
        app.state.requests.burst = 10**9  # the limit is for people
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
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"actions for 100 labels, {options.classes} classes, mean of {options.rounds} rounds")
    print("| guesses that are right | one by one | gallery, mouse and Enter | gallery, keyboard alone |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for share in SHARES:
            ways = ("one by one", "mouse", "keyboard")
            counts = [measure(Path(folder), share, options.classes, options.rounds, way) for way in ways]
            print(f"| {100 * share:.0f} % | " + " | ".join(f"{count:.0f}" for count in counts) + " |")


if __name__ == "__main__":
    main()

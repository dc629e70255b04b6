"""Whether anything that people do can be lost, doubled or invented when the server is killed at any instant.

Annotators label, skip, correct, undo, confirm groups of the gallery, and add and merge classes over HTTP, while the
server is killed with SIGKILL at random instants and started anew; every third time while it trains, every tenth while
classes are merged. Then the store is gone through. Run: python benchmarks/faults.py, or with --https
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import random
import secrets
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import Any

from labels import CLASSES, Server, make_project, post

from accuacl.labeling.project import Project
from accuacl.labeling.store import counts_as

EPOCHS = 200  # so that a training takes about a second
MOST_CLASSES = 60  # that are added and merged
Fact = tuple[str, int | None, int | None]  # kind, item, class


@dataclass
class Worker:
    """One person: what they have sent, by request, and what of it was acknowledged."""

    name: str
    cookie: str
    server: Server
    rng: random.Random
    lead: bool = False
    sent: dict[str, Fact] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    classes: list[tuple[str, bool]] = field(default_factory=list)  # added, and whether it was merged, acknowledged
    again: int = 0  # requests that were sent more than once
    doing: str = ""  # the last part of the path of the request that is on its way

    def work(self, stop: threading.Event) -> None:
        self.line = self.server.connection()
        mine: list[int] = []
        with contextlib.closing(self.line):
            while not stop.is_set():
                view = self.post("/api/next", {}, stop)
                pick = view and view.get("pick")
                chance = self.rng.random()
                if self.lead and chance < 0.1 and len(self.classes) < MOST_CLASSES:
                    self.merge(stop)
                elif mine and chance < 0.15:
                    self.act("correct", "/api/correct", stop, self.rng.choice(mine), self.rng.randrange(CLASSES))
                elif not pick:  # and nothing is undone: a round is to be closed and learned now and then
                    stop.wait(0.05)
                elif mine and chance < 0.25:
                    self.act("undo", "/api/undo", stop)
                elif chance < 0.35:
                    self.gallery(stop)
                elif chance < 0.42:
                    self.act("skip", "/api/skip", stop, pick["item"])
                elif self.act("label", "/api/label", stop, pick["item"], self.rng.randrange(CLASSES)):
                    mine.append(pick["item"])

    def act(
        self, kind: str, path: str, stop: threading.Event, item: int | None = None, class_id: int | None = None
    ) -> bool:
        """Send it until it is acknowledged or refused; whether it was acknowledged."""
        request = secrets.token_hex(16)
        self.sent[request] = (kind, item, class_id)
        body = {"request": request, "item": item, "class_id": class_id}
        done = self.post(path, {name: value for name, value in body.items() if value is not None}, stop)
        if done is not None:
            self.acknowledged.add(request)
        return done is not None

    def gallery(self, stop: threading.Event) -> None:
        """Confirm a group, if there are guesses."""
        view = self.post("/api/gallery", {}, stop)
        for group in (view or {}).get("groups", ())[:1]:
            request, items = secrets.token_hex(16), [one["item"] for one in group["items"]][:5]
            for i, item in enumerate(items):
                self.sent[f"{request}/{i}"] = ("label", item, group["class_id"])
            labels = [{"item": item, "class_id": group["class_id"]} for item in items]
            done = self.post("/api/gallery/label", {"labels": labels, "request": request}, stop)
            saved = set((done or {}).get("saved", ()))
            self.acknowledged |= {f"{request}/{i}" for i, item in enumerate(items) if item in saved}

    def merge(self, stop: threading.Event) -> None:
        """Add a class, and merge it into the first; a merge that is refused after it was sent twice had been made."""
        name = f"extra {len(self.classes)}"
        added = self.post("/api/classes", {"name": name}, stop)
        if added is not None and "added" in added:
            before = self.again
            merged = self.post(f"/api/classes/{added['added']}/merge", {"into": 0}, stop)
            self.classes.append((name, merged is not None or self.again > before))

    def post(self, path: str, body: dict[str, Any], stop: threading.Event) -> dict[str, Any] | None:
        """The answer; None if it was refused, or never came."""
        self.doing = path.rpartition("/")[2]
        status, data, tries = post(self.line, self.cookie, path, body, stop)
        self.doing = ""
        self.again += tries > 1
        return data if status == 200 else None


def is_training(server: Server, cookie: str) -> bool:
    """Whether the server says so."""
    with contextlib.closing(server.connection(timeout=5)) as line:
        try:
            line.request("GET", "/api/state", headers={"Cookie": cookie})
            return bool(json.loads(line.getresponse().read())["state"]["phase"] == "training")
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return False


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Or for so long."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)


def aim(number: int, server: Server, workers: Sequence[Worker], rng: random.Random) -> set[str]:
    """Wait for the instant of a kill; what it hits: a training, and the requests that are on their way."""
    if number % 3:  # a training that is never let finish would leave nothing to label
        wait_until(lambda: not is_training(server, workers[0].cookie), 20)
    if number % 3 == 0:
        wait_until(lambda: is_training(server, workers[0].cookie), 20)
        time.sleep(rng.uniform(0.0, 0.5))
        wait_until(lambda: is_training(server, workers[0].cookie), 20)  # the next one, if this one is over by now
    elif number % 10 == 1:
        wait_until(lambda: workers[0].doing == "merge", 20)
        time.sleep(rng.uniform(0.0, 0.01))
    else:
        time.sleep(rng.uniform(0.0, 0.8))
    training = {"training"} if is_training(server, workers[0].cookie) else set()
    return training | {worker.doing for worker in workers} - {"", "next"}


def run(
    directory: Path, people: int, kills: int, seed: int = 0, seconds: float = math.inf, https: bool = False
) -> tuple[list[Worker], Counter[str], int]:
    """Let them work while the server is killed so often, or for so long; what the kills hit, and how many they were."""
    hit: Counter[str] = Counter()
    rng, server, workers = random.Random(seed), Server(directory, https), []
    with Project.open(directory) as project:
        for i in range(people):
            session = project.store.enter(project.store.add_person(f"person {i}"))
            cookie = f"{server.cookie}={session}"
            workers.append(Worker(f"person {i}", cookie, server, random.Random(f"{seed}/{i}"), lead=i == 0))
    server.start()
    stop = threading.Event()
    threads = [threading.Thread(target=worker.work, args=(stop,)) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        end, done = time.monotonic() + seconds, 0
        while done < kills and time.monotonic() < end:
            seen = sum(len(worker.acknowledged) for worker in workers)
            while sum(len(worker.acknowledged) for worker in workers) == seen and server.process.poll() is None:
                time.sleep(0.01)  # something has come through since the last kill
            hit.update(aim(done, server, workers, rng))
            server.kill()
            server.start()
            done += 1
        time.sleep(1.0)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        server.kill(SIGTERM)
    return workers, hit, done


def audit(directory: Path, workers: Sequence[Worker]) -> dict[str, int]:
    """Go through the store; what is wrong is counted, so all of these must be 0."""
    with contextlib.closing(sqlite3.connect(f"file:{directory / 'labels.sqlite'}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT id, kind, person, item, class, undoes, request FROM events ORDER BY id").fetchall()
        ids = {name: id for id, name in db.execute("SELECT id, name FROM people")}
        state = dict(db.execute("SELECT item, answer FROM state").fetchall())
        tally = db.execute("SELECT SUM(total), SUM(answered) FROM tally").fetchone()
    kept: dict[str, list[tuple[str, int, int | None, int | None]]] = {}
    for _, kind, person, item, class_id, _, request in rows:
        if request is not None:
            kept.setdefault(request, []).append((kind, person, item, class_id))
    sent = {request: (ids[worker.name], fact) for worker in workers for request, fact in worker.sent.items()}
    acknowledged = {request for worker in workers for request in worker.acknowledged}
    standing: dict[int, list[int]] = {}
    for id, kind, _, item, _, undoes, _ in rows:
        if kind in ("label", "skip", "correct"):
            standing.setdefault(item, []).append(id)
        elif kind == "undo":
            standing[item].remove(undoes)
    answers = {item: answer for item, answer in state.items() if answer is not None}
    first = Counter(row[3] for row in rows if row[1] in ("label", "skip"))
    first.subtract(row[3] for row in rows if row[1] == "undo")
    with Project.open(directory) as project:
        names = {c.name: c for c in project.store.classes()}
        final = counts_as(names.values())
        snapshots = sum(label not in (-1, *final) for label in project.store.labels().values())
    classes = [one for worker in workers for one in worker.classes]
    return {
        "acknowledged but not kept exactly once": sum(
            len(kept.get(request, ())) != 1 or not same(kept[request][0], *sent[request]) for request in acknowledged
        ),
        "kept but never sent so": sum(
            request not in sent or len(found) != 1 or not same(found[0], *sent[request])
            for request, found in kept.items()
        ),
        "items labelled by two at once": sum(count > 1 for count in first.values()),
        "answers that do not follow from the events": sum(
            answers.get(item) != (events[-1] if events else None) for item, events in standing.items()
        )
        + len(answers.keys() - standing.keys()),
        "rounds whose tally is wrong": int(tally != (len(state), len(answers))),
        "classes added or merged but not kept": sum(
            name not in names or (merged and names[name].merged_into is None) for name, merged in classes
        ),
        "labels of unknown classes": snapshots,
    }


def same(event: tuple[str, int, int | None, int | None], person: int, fact: Fact) -> bool:
    """Whether the event is what the person has sent; an undo does not say of what."""
    kind, item, class_id = fact
    return event[:2] == (kind, person) and (kind == "undo" or event[2:] == (item, class_id))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=15)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf, help="end it after so long, with fewer kills")
    parser.add_argument("--https", action="store_true", help="encrypted, with a certificate of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "project"
        make_project(directory, 20_000, 100, EPOCHS).close()
        workers, hit, kills = run(
            directory, options.people, options.kills, seconds=60 * options.minutes, https=options.https
        )
        wrong = audit(directory, workers)
        with Project.open(directory) as project:
            status = project.store.status()
    kinds = Counter(worker.sent[request][0] for worker in workers for request in worker.acknowledged)
    print(f"{kills} times SIGKILL; acknowledged to {options.people} people:")
    print(", ".join(f"{count} {kind}s" for kind, count in kinds.most_common()))
    hits = ", ".join(f"{what} {count}" for what, count in hit.most_common())
    print(f"kills that hit a training or a request on its way: {hits}")
    print(f"{sum(len(worker.classes) for worker in workers)} classes added and merged")
    print(f"sent again after a kill: {sum(worker.again for worker in workers)}")
    print(f"now in task {status.task + 1}, round {status.round + 1}" if status else "no round")
    for what, count in wrong.items():
        print(f"{what}: {count}")
    sys.exit(any(wrong.values()))


if __name__ == "__main__":
    main()

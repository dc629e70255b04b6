"""Whether a label that was acknowledged can be lost, and how many a second the page takes.

Annotators label over HTTP as fast as they can while the server is killed with SIGKILL again and again and started
anew. Then the store is gone through: every acknowledged label must be there exactly once, and no item may have been
in the hands of two people at once. Run: python benchmarks/labels.py, or with --https
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import secrets
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.labeling.project import NewItems, Project, make
from accuacl.labeling.web.session import cookie_name

CLASSES = 4
SETTLING = 5  # seconds, in which the server loads torch and opens the first round
CLI = "from accuacl.cli import main; main()"


@dataclass(frozen=True)
class Ack:
    """A label that the server said it has kept."""

    person: str
    item: int
    class_id: int
    request: str
    begun: float  # when the annotator had the item in hand
    seconds: float  # from sending the label to its acknowledgement
    tries: int


@dataclass
class Annotator:
    """One person at one browser: takes what is next, labels it, and sends again what was not acknowledged."""

    name: str
    cookie: str
    server: Server
    every: float = 0.0  # seconds from one label to the next; 0: as fast as it can
    acks: list[Ack] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.line = self.server.connection()  # opens itself again after a close
        self.draw = random.Random(self.name)

    def work(self, stop: threading.Event) -> None:
        with contextlib.closing(self.line):
            self._work(stop)

    def _work(self, stop: threading.Event) -> None:
        pick = None
        self._pause(time.monotonic(), stop)
        while not stop.is_set():
            if pick is None:
                view, _ = self._post("/api/next", {}, stop)
                pick = view and view.get("pick")
                if pick is None:
                    stop.wait(0.1)
                    continue
            begun, request = time.monotonic(), secrets.token_hex(16)
            said = {"item": pick["item"], "class_id": pick["item"] % CLASSES, "request": request}
            view, tries = self._post("/api/label", said, stop)
            if view is not None:
                spent = time.monotonic() - begun
                self.acks.append(Ack(self.name, said["item"], said["class_id"], request, begun, spent, tries))
            self._pause(begun, stop)
            pick = view and view.get("pick")

    def _pause(self, begun: float, stop: threading.Event) -> None:
        """People do not answer in step: the time from one answer to the next is drawn at random."""
        if self.every:
            stop.wait(max(0.0, begun + self.draw.expovariate(1 / self.every) - time.monotonic()))

    def _post(self, path: str, body: dict[str, object], stop: threading.Event) -> tuple[dict[str, object] | None, int]:
        """The answer, and how many tries it took; None if it was refused, or never came."""
        status, data, tries = post(self.line, self.cookie, path, body, stop)
        if status != 200 and data:
            self.refused[f"{path} {status} {data.get('detail', '')[:60]}"] += 1
        return data if status == 200 else None, tries


def post(
    line: http.client.HTTPConnection, cookie: str, path: str, body: dict[str, Any], stop: threading.Event
) -> tuple[int, dict[str, Any], int]:
    """Status, answer and tries. It is sent again while the server is away or fails, until `stop`."""
    status, data, tries = 0, {}, 0
    while tries == 0 or not stop.is_set():
        tries += 1
        try:
            line.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Cookie": cookie})
            answer = line.getresponse()
            status, data = answer.status, dict(json.loads(answer.read()))
        except (OSError, http.client.HTTPException, ValueError):
            line.close()
            time.sleep(0.05)
            continue
        if status < 500:
            break
    return status, data, tries


class Server:
    """`accuacl project serve` as a process of its own. https: with a certificate made for it, beside the project."""

    def __init__(self, directory: Path, https: bool = False) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command = [sys.executable, "-c", CLI, "project", "serve", str(directory), "--port", str(self.port)]
        self.up = self.cpu = 0.0
        self.trusted: ssl.SSLContext | None = None
        self.cookie = cookie_name(directory, secure=https)
        if https:
            cert, key = str(directory.parent / "cert.pem"), str(directory.parent / "key.pem")
            make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
            files = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key]
            subprocess.run([*make, *files], check=True, capture_output=True)
            self.command += ["--cert", cert, "--key", key]
            self.trusted = ssl.create_default_context(cafile=cert)

    def connection(self, timeout: float = 30) -> http.client.HTTPConnection:
        """To this server, opened with the first request."""
        if self.trusted is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.trusted)

    def start(self) -> float:
        """Start it; how long it took until it answered."""
        begun = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, preexec_fn=on_one_core)
        while time.monotonic() < begun + 60:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError("the server ended") from None
                time.sleep(0.02)
                continue
            self.since = time.monotonic()
            self.cpu -= cpu_seconds(self.process.pid)
            return self.since - begun
        raise RuntimeError("the server does not answer")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, by default without a chance to tidy up."""
        self.up += time.monotonic() - self.since
        self.cpu += cpu_seconds(self.process.pid)
        self.process.send_signal(how)
        self.process.wait(60)


def on_one_core() -> None:
    """The server has one, and the annotators the others too."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def cpu_seconds(pid: int) -> float:
    """What the process has used of the processor since it began to answer."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_project(directory: Path, items: int, per_round: int, epochs: int = 2) -> Project:
    """Vectors in a few clusters: nothing to decode, quick to learn."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(items, 16)) + 3 * np.eye(16)[np.arange(items) % CLASSES]
    rounds = items // per_round
    chosen = {"strategy": "uniform", "first_round": "uniform"}  # choosing is not what is measured here
    settings = make(
        {"kind": "vectors", "per_round": per_round, "rounds": rounds, "epochs": epochs, "memory": 100} | chosen
    )
    project = Project.create(directory, settings, [f"class {i}" for i in range(CLASSES)])
    project.add(NewItems("vectors", "made up", [str(i) for i in range(items)], vectors=vectors.astype(np.float32)))
    return project


def run(
    directory: Path, people: int, labels: int, seconds: float, kills: int, rate: float = 0.0, https: bool = False
) -> tuple[list[Annotator], Server]:
    """Let them work until there are so many labels, or for so long; kill the server at even distances.

    rate: the most labels per second of all together; 0: as many as they can.
    """
    project = Project.open(directory)
    server = Server(directory, https)
    names = [f"annotator {i}" for i in range(people)]
    sessions = [project.store.enter(project.store.add_person(name)) for name in names]
    every = people / rate if rate else 0.0
    pairs = zip(names, sessions, strict=True)
    crowd = [Annotator(name, f"{server.cookie}={session}", server, every) for name, session in pairs]
    project.close()
    server.start()
    stop = threading.Event()
    threads = [threading.Thread(target=one.work, args=(stop,)) for one in crowd]
    begun = time.monotonic()
    for thread in threads:
        thread.start()

    def done() -> float:
        given = sum(len(one.acks) for one in crowd) / labels if labels else 0.0
        return max(given, (time.monotonic() - begun) / seconds)

    try:
        for kill in range(kills):
            while done() < (kill + 1) / (kills + 1):
                time.sleep(0.02)
            server.kill()
            server.start()
        while done() < 1:
            time.sleep(0.02)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        server.kill(signal.SIGTERM)
    return crowd, server


def audit(database: Path, crowd: Sequence[Annotator]) -> dict[str, int]:
    """Go through the store; what is wrong is counted, so all of these must be 0."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        rows = db.execute(
            "SELECT id, time, kind, person, item, class, until, request FROM events ORDER BY id"
        ).fetchall()
        ids = {name: id for id, name in db.execute("SELECT id, name FROM people")}
    kept = Counter((row[7], row[3], row[4], row[5]) for row in rows if row[2] == "label")
    labels = Counter(row[4] for row in rows if row[2] == "label")
    acks = [ack for one in crowd for ack in one.acks]
    wrong = {
        "acknowledged but not kept exactly once": sum(
            kept[ack.request, ids[ack.person], ack.item, ack.class_id] != 1 for ack in acks
        ),
        "items labelled twice": sum(count != 1 for count in labels.values()),
        "items acknowledged twice": len(acks) - len({ack.item for ack in acks}),
        "leases of an item that was in other hands": 0,
    }
    holder: dict[int, tuple[int, float]] = {}
    for _, when, kind, person, item, _, until, _ in rows:
        if kind in ("lease", "renew"):
            held_by, held_until = holder.get(item, (person, 0.0))
            wrong["leases of an item that was in other hands"] += held_by != person and held_until > when
            holder[item] = (person, until)
        elif kind in ("label", "skip", "release"):
            holder.pop(item, None)
    return wrong


def bare_inserts(folder: Path, seconds: float = 2.0) -> float:
    """How many transactions a second SQLite alone makes durable on this disk: what bounds everything else."""
    with contextlib.closing(sqlite3.connect(folder / "bare.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE labels (item INTEGER, class INTEGER)")
        begun, count = time.monotonic(), 0
        while time.monotonic() < begun + seconds:
            db.execute("INSERT INTO labels VALUES (?, ?)", (count, 0))
            count += 1
        return count / (time.monotonic() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--per-round", type=int, default=1000)
    parser.add_argument(
        "--rate", type=float, default=0.0, help="labels per second of all together; 0: as many as they can"
    )
    parser.add_argument("--https", action="store_true", help="encrypted, with a certificate of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "project"
        bare = bare_inserts(Path(folder))
        make_project(directory, 20_000, options.per_round).close()
        crowd, server = run(directory, options.people, 0, options.seconds, options.kills, options.rate, options.https)
        wrong = audit(directory / "labels.sqlite", crowd)
        with Project.open(directory) as project:
            status = project.store.status()
    acks = [ack for one in crowd for ack in one.acks]
    first = min(ack.begun for ack in acks)
    spent = np.array([ack.seconds for ack in acks if ack.tries == 1]) * 1000
    settled = np.array([ack.seconds for ack in acks if ack.tries == 1 and ack.begun > first + SETTLING]) * 1000
    print(f"{len(acks)} labels acknowledged to {options.people} people; {options.kills} times SIGKILL")
    print(f"{len(acks) / server.up:.0f} labels/s while it was up ({server.up:.1f} s)")
    print(f"a bare loop of SQLite inserts on the same disk: {bare:.0f}/s")
    print(f"processor time of the server: {1000 * server.cpu / max(1, len(acks)):.1f} ms for each label")
    print(f"latency: median {np.median(spent):.0f} ms, 99th percentile {np.percentile(spent, 99):.0f} ms")
    print(f"99th percentile after the first {SETTLING} s: {np.percentile(settled, 99):.0f} ms")
    print(f"sent again after a kill: {sum(ack.tries > 1 for ack in acks)}")
    print(f"now in task {status.task + 1}, round {status.round + 1}" if status else "no round")
    for what, count in wrong.items():
        print(f"{what}: {count}")
    sys.exit(any(wrong.values()))


if __name__ == "__main__":
    main()

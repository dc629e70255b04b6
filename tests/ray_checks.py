"""What is checked on Ray, in one cluster: run by test_engines_ray.py in a process and a network of its own."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path

import numpy as np

from accuacl import engines, pools
from accuacl.base.errors import InputError
from accuacl.base.progress import Progress
from accuacl.engines import Local
from accuacl.engines.ray import Ray
from accuacl.sweeps import run_missing, runs_of


def fails(item, report):
    if item == 1:
        raise InputError("one is wrong")
    return item


def dies(folder, often, item, report):
    """Is killed the first `often` times that it is given item 3."""
    if item == 3 and len(list(folder.iterdir())) < often:
        (folder / str(time.time_ns())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def slow(item, report):
    for step in range(50):
        report(Progress(step, 50, f"{item} at {step}"))
        time.sleep(0.2)
    return item


def kill_a_worker(killed: list[int], kind: bytes = b"ray::_do_item") -> None:
    """One that is at work on a shard."""
    for _ in range(600):
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                name = (entry / "cmdline").read_bytes()
                if name.startswith(kind):
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed.append(int(entry.name))
                    return
            except OSError:
                continue
        time.sleep(0.02)


def sweep_with_a_death(places: Path, engine: Ray) -> dict[str, object]:
    """Matrices of a sweep whose worker is killed in the middle of a run, and how often that run was begun."""
    settings = {"benchmark": "split-digits", "tasks": 3, "labels": 20, "rounds": 4, "epochs": 40, "seeds": [0, 1]}
    out = places / "sweep"

    def kill_when_begun() -> None:
        while not any(_labels(journal) for journal in out.glob("*/journal.sqlite")):
            time.sleep(0.02)
        kill_a_worker([])

    killer = threading.Thread(target=kill_when_begun)
    killer.start()
    outcome = run_missing(runs_of(settings), out, out / "results.csv", engine)
    killer.join()
    alone = run_missing(runs_of(settings), places / "alone", places / "alone.csv", Local(1))
    pick = [{row["seed"]: row["accuracy_matrix"] for row in some.rows} for some in (outcome, alone)]
    return {"failed": outcome.failed, "same": pick[0] == pick[1], "runs": len(pick[0])}


def _labels(journal: Path) -> int:
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(journal)) as db:
        return int(db.execute("SELECT COUNT(*) FROM steps WHERE kind = 'label'").fetchone()[0])
    return 0


def main() -> None:
    folder, places = sys.argv[1], Path(sys.argv[2])
    found: dict[str, object] = {}
    with engines.get("ray", workers=2) as engine:
        found["workers"] = engine.workers
        done = {end.index: end for end in engine.map(fails, range(4))}
        found["errors"] = [done[i].failure and done[i].failure.message for i in range(4)]
        told: list[tuple[int, float, str]] = []
        list(engine.map(slow, [5, 6], lambda index, p: told.append((index, p.share, p.text))))
        found["told"] = told
        killer = threading.Thread(target=kill_a_worker, args=([], b"ray::_Board"))
        killer.start()
        found["without board"] = sorted(end.value for end in engine.map(slow, [7, 8], lambda *news: None))
        killer.join()
        (places / "once").mkdir()
        found["once"] = sorted(end.value for end in engine.map(functools.partial(dies, places / "once", 1), range(6)))
        (places / "always").mkdir()
        ends = {end.index: end for end in engine.map(functools.partial(dies, places / "always", 99), range(6))}
        found["always"] = [ends[3].failure.message, sum(not end.failure for end in ends.values())]
        options = {"budget": 300, "shard_rows": 500, "seed": 3}
        found["picks"] = {
            name: pools.select(folder, name, engine=engine, **options).ids.tolist() for name in ("accuacl", "uniform")
        }
        # Already connected: found, used, and left alone.
        found["connected"] = pools.select(folder, engine="ray", **options).ids.tolist()
        assert engine.ray.is_initialized()
        killed: list[int] = []
        killer = threading.Thread(target=kill_a_worker, args=(killed,))
        killer.start()
        found["killed"] = pools.select(folder, engine=engine, **(options | {"shard_rows": 50})).ids.tolist()
        killer.join()
        found["kills"] = len(killed)
        bad = np.ones((3, 6), np.float32)
        bad[1, 2] = np.nan
        from accuacl.pools import write_pool

        write_pool(places / "bad.parquet", [1, 2, 3], bad, np.full((3, 4), 0.25, np.float32))
        try:
            pools.select(places / "bad.parquet", engine=engine, budget=1)
        except ValueError as error:
            found["bad"] = str(error)
        found["sweep"] = sweep_with_a_death(places, engine)
    found["shut"] = not engine.ray.is_initialized()
    try:
        Ray(address="127.0.0.1:1")
    except ValueError as error:
        found["nobody"] = str(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

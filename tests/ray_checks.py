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
from accuacl.engines.ray import Ray
from accuacl.experiments.sweeps import run_missing, runs_of
from accuacl.pools import write_pool
from accuacl.strategies import REGISTRY, Context, Ranking, Rows, register, row_strategy
from pool_files import Inline


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


def until_heard(folder, item, report):
    """Reports and reports, until a file says that it was heard."""
    step = 0
    while not (folder / str(item)).exists():
        report(Progress(step, 10**6, f"{item} at {step}"))
        step += 1
        time.sleep(0.05)
    return item


def heard_of_each(engine: Ray, folder: Path) -> list[tuple[int, float, str]]:
    """What was told of two items, each of which ends when it has been heard of twice."""
    told: list[tuple[int, float, str]] = []

    def tell(index: int, progress: Progress) -> None:
        told.append((index, progress.share, progress.text))
        if sum(i == index for i, *_ in told) == 2:
            (folder / str(index)).touch()

    folder.mkdir()
    list(engine.map(functools.partial(until_heard, folder), range(2), tell))
    return told


def heard_after_the_board_was_killed(engine: Ray, folder: Path) -> list[int]:
    """The values of two items that end when they are heard of by a board that took the place of one killed."""
    killed: list[int] = []

    def tell(index: int, progress: Progress) -> None:
        if killed:
            (folder / str(index)).touch()

    folder.mkdir()
    killer = threading.Thread(target=kill_a_worker, args=(killed, b"ray::_Board"))
    killer.start()
    values = sorted(end.value for end in engine.map(functools.partial(until_heard, folder), range(2), tell))
    killer.join()
    return values


def kill_a_worker(killed: list[int], kind: bytes = b"ray::_do_item") -> None:
    """One that is at work, as soon as there is one."""
    while not killed:
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes().startswith(kind):
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed.append(int(entry.name))
                    return
        time.sleep(0.02)


@row_strategy("probability")
def deadly_margin(context: Context, *, folder: Path = Path()) -> Ranking:
    """As margin, but the tenth part of the pool that is ranked kills its worker."""
    margin = REGISTRY["margin"].prepare(context)
    return Ranking(functools.partial(margin_or_death, margin.exact, folder), margin.scores)


def margin_or_death(margin, folder: Path, rows: Rows):
    (folder / f"{time.time_ns()}-{os.getpid()}").touch()
    if len(list(folder.iterdir())) >= 10 and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return margin(rows)


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
    alone = run_missing(runs_of(settings), places / "alone", places / "alone.csv", Inline())
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
        found["told"] = heard_of_each(engine, places / "told")
        found["without board"] = heard_after_the_board_was_killed(engine, places / "board")
        (places / "once").mkdir()
        found["once"] = sorted(end.value for end in engine.map(functools.partial(dies, places / "once", 1), range(6)))
        (places / "always").mkdir()
        ends = {end.index: end for end in engine.map(functools.partial(dies, places / "always", 99), range(6))}
        found["always"] = [ends[3].failure.message, sum(not end.failure for end in ends.values())]
        options = {"budget": 300, "shard_rows": 500, "seed": 3}
        found["picks"] = {
            name: pools.select(folder, name, engine=engine, **options).ids.tolist()
            for name in ("accuacl", "uniform", "margin")
        }
        # Already connected: found, used, and left alone.
        found["connected"] = pools.select(folder, engine="ray", **options).ids.tolist()
        assert engine.ray.is_initialized()
        register("deadly-margin")(deadly_margin)
        (places / "deadly").mkdir()
        options |= {"shard_rows": 50, "folder": places / "deadly"}
        found["killed"] = pools.select(folder, "deadly-margin", engine=engine, **options).ids.tolist()
        found["kills"] = (places / "deadly" / "killed").exists()
        bad = np.ones((3, 6), np.float32)
        bad[1, 2] = np.nan
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

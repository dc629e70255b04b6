"""How long the kernel head takes from the last label on: fit, and predictions for a sample of the pool.

    OMP_NUM_THREADS=1 python benchmarks/heads_speed.py
    OMP_NUM_THREADS=1 python benchmarks/heads_speed.py --project ahead then

--project: from the last label of a round to the next batch in a project with a pool of 50,000 items, rounds of 400
labels; `ahead`: the batch was chosen while people labelled, as a server does, `then`: it is chosen now.

Random rows as texts (256 token columns, 4,096 TF-IDF columns of which eight are used) and images (1,280 columns) have
them; 60 classes; medians of three. `floor`: one Cholesky factor of n x n and one product of 5,000 rows of the pool with
the support rows, which no head of this kind can do without.
"""

from __future__ import annotations

import argparse
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from accuacl.experiments.heads import candidates_of_kind, fit, fit_with_pool
from accuacl.labeling.project import NewItems, Project, make, people_steps

CLASSES, SAMPLE, POOL = 60, 5000, 50_000
ROUNDS = {"per_round": 400, "rounds": 6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", nargs="+", choices=("ahead", "then"), default=[])
    ways = parser.parse_args().project
    if ways:
        projects(ways)
        return
    print("| data | labels | floor | fit | fit, pool of 3 x 1,200 | predict 5,000 |\n|---|--:|--:|--:|--:|--:|")
    for name in ("texts", "images"):
        for n in (200, 600, 2000):
            x, blocks = rows(name, n + SAMPLE + 3600)
            labels = np.arange(n) % CLASSES
            candidates = candidates_of_kind(name, blocks)
            pools = [x[n + SAMPLE + 1200 * t :][:1200] for t in range(3)]
            head = fit(x[:n], labels, candidates=candidates)
            times = [
                seconds(lambda n=n, x=x: floor(x[:n], x[n : n + SAMPLE])),
                seconds(lambda n=n, x=x, labels=labels, c=candidates: fit(x[:n], labels, candidates=c)),
                seconds(
                    lambda n=n, x=x, labels=labels, c=candidates, pools=pools: fit_with_pool(
                        x[:n], labels, pools, candidates=c
                    )
                ),
                seconds(lambda head=head, n=n, x=x: head.logits(x[n : n + SAMPLE])),
            ]
            print(f"| {name} | {n:,} | {' | '.join(f'{each:.2f} s' for each in times)} |", flush=True)


def projects(ways: list[str]) -> None:
    print(f"| data | labels | {' | '.join(f'chosen {way}' for way in ways)} |\n|---|--:|{'--:|' * len(ways)}")
    for name in ("texts", "images"):
        found = [waits(name, way == "ahead") for way in ways]
        for labels in found[0]:
            print(f"| {name} | {labels:,} | {' | '.join(f'{each[labels]:.2f} s' for each in found)} |", flush=True)


def waits(name: str, ahead: bool) -> dict[int, float]:
    """By labels so far, the CPU seconds from the last label of a round until the next batch is there."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLASSES, size=POOL)
    names = [str(i) for i in range(POOL)]
    if name == "texts":
        words = rng.integers(3000, size=(CLASSES, 30))
        own = words[truth[:, None], rng.integers(30, size=(POOL, 5))]
        texts = [" ".join(f"w{word}" for word in row) for row in np.hstack([own, rng.integers(3000, size=(POOL, 4))])]
        items, settings = NewItems("texts", "made", names, texts=texts), make({"kind": "texts"} | ROUNDS)
    else:
        x = rng.normal(size=(POOL, 1280)).astype(np.float32)
        x += 0.35 * rng.normal(size=(CLASSES, 1280)).astype(np.float32)[truth]
        items = NewItems("vectors", "made", names, vectors=x)
        settings = make({"kind": "vectors"} | ROUNDS, embeddings=True)
    found: dict[int, float] = {}
    opened: list[float] = []
    choose_ahead = people_steps.PeopleSteps.choose_ahead

    def noticed(steps: people_steps.PeopleSteps) -> None:  # called when the next batch is there
        opened.append(time.process_time())
        choose_ahead(steps)

    people_steps.PeopleSteps.choose_ahead = noticed  # type: ignore[method-assign]
    with TemporaryDirectory() as folder, Project.create(Path(folder) / "p", settings) as project:
        project.store.add_person("Ada")
        person = project.store.people()[0]
        classes = [project.store.add_class(str(c)).id for c in range(CLASSES)]
        project.add(items)
        project.advance(ahead=ahead)
        while len(found) < ROUNDS["rounds"] - 1:
            while (pick := project.store.lease(person)) is not None:
                project.store.label(person, pick.item, classes[truth[pick.item]], uuid.uuid4().hex)
            started = time.process_time()
            project.advance(ahead=ahead)
            found[len(project.store.labels())] = opened[-1] - started
    people_steps.PeopleSteps.choose_ahead = choose_ahead  # type: ignore[method-assign]
    return found


def rows(name: str, count: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    rng = np.random.default_rng(0)
    if name == "images":
        return rng.normal(size=(count, 1280)).astype(np.float32), [(0, 1280)]
    x = np.zeros((count, 4352), np.float32)
    x[:, :256] = rng.normal(size=(count, 256))
    x[np.arange(count)[:, None], rng.integers(256, 4352, size=(count, 8))] = 1
    return x, [(0, 256), (256, 4352)]


def floor(x: np.ndarray, sample: np.ndarray) -> None:
    dense = np.ascontiguousarray(x[:, : min(1280, x.shape[1])])[:, : 256 if x.shape[1] > 1280 else None]
    np.linalg.cholesky(dense.astype(np.float64) @ dense.T + len(x) * np.eye(len(x)))
    sample[:, : dense.shape[1]] @ dense.T


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()

"""Nothing lost, doubled or invented: many people work over HTTP while the server is killed again and again.

The same as benchmarks/labels.py and benchmarks/faults.py, which do it for longer and with more people.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from accuacl.labeling.project import Project
from effort import LONG, times

FOLDER = Path(__file__).parents[1] / "benchmarks"


def benchmark(name: str):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def labels():
    return benchmark("labels")


def test_labels_corrections_undos_skips_and_merges_are_kept_once(tmp_path, labels):
    faults = benchmark("faults")
    directory = tmp_path / "project"
    epochs = 20 * faults.EPOCHS  # rounds are smaller here than in the benchmark, so that an epoch takes less time
    labels.make_project(directory, items=5000, per_round=40, epochs=epochs).close()
    workers, hit, _ = faults.run(directory, people=times(6, 15), kills=times(2, 100))
    done = [worker.sent[request][0] for worker in workers for request in worker.acknowledged]
    assert {"label", "undo", "correct"} <= set(done)
    assert sum(worker.again for worker in workers) > 0  # kills did hit requests on their way
    assert hit["training"] > 0
    assert not any(faults.audit(directory, workers).values())
    with Project.open(directory) as project:
        project.advance()  # the file lock of the killed ones holds nobody up
        assert project.state().waiting == "labels"


def test_an_audit_finds_what_is_wrong(tmp_path, labels):
    """Or it could not fail."""
    faults = benchmark("faults")
    directory = tmp_path / "project"
    labels.make_project(directory, items=20, per_round=8).close()
    with Project.open(directory) as project:
        project.advance()
        ada = project.store.person_of(project.store.add_person("Ada"))
        item = project.store.lease(ada).item
        project.store.label(ada, item, 1, "kept")
    worker = faults.Worker("Ada", "", 0, None)
    worker.sent = {"kept": ("label", item, 1)}
    worker.acknowledged = {"kept"}
    assert not any(faults.audit(directory, [worker]).values())
    worker.sent = {"kept": ("label", item, 2)}
    assert faults.audit(directory, [worker])["acknowledged but not kept exactly once"] == 1
    worker.sent, worker.acknowledged = {"lost": ("label", item, 1)}, {"lost"}
    found = faults.audit(directory, [worker])
    assert found["acknowledged but not kept exactly once"] == found["kept but never sent so"] == 1
    worker.classes = [("never", True)]
    assert faults.audit(directory, [worker])["classes added or merged but not kept"] == 1


@pytest.mark.skipif(not LONG, reason="the one above does the same and more")
def test_what_was_acknowledged_is_kept_once_and_nobody_has_what_somebody_else_has(tmp_path, labels):
    directory = tmp_path / "project"
    labels.make_project(directory, items=600, per_round=60).close()
    crowd, _ = labels.run(directory, people=12, labels=160, seconds=120, kills=3)
    acks = [ack for one in crowd for ack in one.acks]
    assert len(acks) >= 160
    assert any(ack.tries > 1 for ack in acks)  # kills did hit labels on their way
    assert not any(labels.audit(directory / "labels.sqlite", crowd).values())
    with Project.open(directory) as project:
        kept = project.store.labels()
        assert all(kept[ack.item] == ack.class_id for ack in acks)

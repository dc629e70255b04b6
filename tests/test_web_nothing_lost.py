"""Nothing lost: many people label over HTTP while the server is killed again and again.

The same as benchmarks/labels.py, which does it for longer and with more people.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from accuacl.labeling.project import Project

PATH = Path(__file__).parents[1] / "benchmarks" / "labels.py"


def test_what_was_acknowledged_is_kept_once_and_the_loop_goes_on(tmp_path):
    spec = importlib.util.spec_from_file_location("labels_benchmark", PATH)
    labels = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(labels)
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
        assert project.store.status().round >= 2
        project.advance()  # the file lock of the killed ones holds nobody up
        assert project.state().waiting == "labels"

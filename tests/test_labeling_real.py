"""Small projects on real data: texts, rows of a table, images under the pretrained network."""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path

import pytest

from effort import has_pretrained

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import project_data
import projects

NEEDED = {
    "clinc150": "text/clinc150_data_full.json.xz",
    "nslkdd": "tabular/nslkdd_train20.csv.xz",
    "cifar100": "cifar100/train-00000-of-00001.parquet",
}
SMALL = {"per_round": 10, "rounds": 2, "epochs": 10}


@pytest.mark.parametrize("name", list(NEEDED))
def test_three_tasks_of_real_data(tmp_path, name):
    folder = os.environ.get("ACCUACL_DATA")
    if folder is None or not (Path(folder) / NEEDED[name]).exists():
        pytest.skip(f"{NEEDED[name]} is not in ACCUACL_DATA")
    if name == "cifar100" and not has_pretrained():
        pytest.skip("the extra `label` is not installed")
    make = project_data.DATA[name]
    if name == "cifar100":
        make = functools.partial(project_data.cifar100, classes=2, each=20, tested=10)
    opened = projects.prepared(make(Path(folder), tmp_path / "data" / name), tmp_path, {})
    learner = "er" if name == "nslkdd" else "ridge"
    row = projects.run(*opened, tmp_path, learner, "accuacl", 0, SMALL, keep=False)
    assert (row["labels"], row["held"]) == ("60", "9")
    assert [point[0] for point in json.loads(row["curve"])] == [10, 20, 30, 40, 50, 60]
    assert float(row["true_accuracy"]) > 5
    assert float(row["accuracy_low"]) <= float(row["accuracy"]) <= float(row["accuracy_high"])

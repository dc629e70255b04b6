"""Every command that writes says in a sentence that the disk is full or read-only, and leaves nothing half-written."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import SMALL, accuacl, sweep_file
from disks import ends
from wrong_uses import NET

RUN = "run --benchmark split-digits --scale smoke --tasks 1 --labels 4 --epochs 1 --pool 20 --strategy uniform"
USES = {
    "run": f"{RUN} --out {{disk}}/new",
    "sweep": "sweep sweep.yaml --out {disk}/new",
    "report": "report runs --out {disk}/report.md",
    "report --figures": "report runs --out report.md --figures {disk}/new",
    "select": "select --pool pool.parquet --budget 2 --strategy entropy --out {disk}/picked.csv",
    "select, Parquet": "select --pool pool.parquet --budget 2 --strategy entropy --out {disk}/picked.parquet",
    "embed": "embed --data x.npy --model net.py:build --out {disk}/new",
    "new, vectors": "project new {disk}/new --vectors vectors.parquet --classes a,b",
    "new, texts": "project new {disk}/new --texts texts.csv --classes a,b --model none",
    "export": "project export project --out {disk}/new",
    "paper": "paper efficiency --scale smoke --only strategy=uniform --out {disk}/new",
    "add": "project add {disk}/project --vectors more.parquet",
    "label": "project label {disk}/project --from labels.csv --by bob",
    "train": "project train {disk}/project",
    "person": "project person {disk}/project add Ada",
}
VIEWS = {"status": "project status {disk}/project"}
OF_A_PROJECT = ("add", "label", "train", "person")
SAYS = {"full": "no space left on device", "read-only": ("read-only file system", "may not be written to")}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with all that the commands name."""
    folder = tmp_path_factory.mktemp("inputs")
    draw = np.random.default_rng(0).normal
    for name in ("vectors", "more"):
        ids = [f"{name} {i}" for i in range(20)]
        pq.write_table(pa.table({"id": ids, "embedding": draw(size=(20, 3)).tolist()}), folder / f"{name}.parquet")
    columns = {"id": range(6), "embedding": [[1.0, 2.0]] * 6, "probability": [[0.5, 0.5]] * 6}
    pq.write_table(pa.table({name: list(column) for name, column in columns.items()}), folder / "pool.parquet")
    np.save(folder / "x.npy", np.ones((4, 2), np.float32))
    (folder / "net.py").write_text(NET)
    (folder / "texts.csv").write_text("text\none\ntwo\n")
    (folder / "labels.csv").write_text("name,class\nvectors 0,a\nvectors 1,b\n")
    sweep_file(folder, **SMALL | {"tasks": 1, "strategy": ["uniform", "entropy"], "scale": "smoke"})
    for use in (f"{RUN} --out runs/a", "project new project --vectors vectors.parquet --classes a,b --per-round 4"):
        assert accuacl(*use.split(), cwd=folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def found(inputs, tmp_path_factory):
    """How the commands end on each kind of disk, which are tried once."""
    known = {}

    def of(kind, **more):
        if kind not in known:
            known[kind] = ends(
                kind, inputs, more.pop("uses", USES | VIEWS), tmp_path_factory.mktemp("disks") / kind, **more
            )
        if "skip" in known[kind]:
            pytest.skip(known[kind]["skip"])
        return known[kind]

    return of


def is_a_sentence(text):
    return text.startswith("accuacl: ") and text.endswith(".\n") and text.count("\n") == 1 and "[Errno" not in text


@pytest.mark.parametrize("kind", ["full", "read-only"])
@pytest.mark.parametrize("name", USES)
def test_a_disk_that_cannot_be_written(found, kind, name):
    end = found(kind)[name]
    assert end["code"] == 2, end
    assert is_a_sentence(end["err"]), end["err"]
    assert any(reason in end["err"] for reason in ([SAYS[kind]] if kind == "full" else SAYS[kind])), end["err"]
    assert ".new-" not in end["err"]  # a folder that the user has never heard of
    assert "--fresh" not in end["err"]  # which would not help
    assert end["left"] == []


@pytest.mark.posix
@pytest.mark.parametrize("name", [name for name in USES if name not in OF_A_PROJECT and name != "paper"])
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_place_where_nobody_can_write(inputs, name):
    ended = accuacl(*USES[name].replace("{disk}", "/proc").split(), cwd=inputs, width=300)
    assert ended.returncode == 2, ended
    assert is_a_sentence(ended.stderr), ended.stderr
    assert "/proc/" in ended.stderr
    assert ".new-" not in ended.stderr


def test_a_project_that_cannot_be_written_to_is_shown(found):
    end = found("read-only")["status"]
    assert (end["code"], end["err"]) == (0, ""), end
    assert end["left"] == []


GOING_ON = ("run", "sweep", "embed", "new, vectors", "export", "label")


@pytest.mark.parametrize("name", GOING_ON)
def test_a_disk_that_fills_halfway_is_said_and_the_same_command_ends_well_when_there_is_room(found, name):
    end = found("full-then-larger", uses={name: USES[name] for name in GOING_ON}, room=24 << 10)[name]
    if end["code"]:  # otherwise it needs less room than there was
        assert end["code"] == 2, end
        assert is_a_sentence(end["err"]), end["err"]
        assert not [path for path in end["left"] if path.endswith(".part") or ".new-" in path]
        assert end["again"] == 0

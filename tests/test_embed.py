"""`embed`: images and vectors to a pool that `select` reads, going on where it was stopped."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch
from PIL import Image

from accuacl import pools
from accuacl.base.files import Lock
from accuacl.cli import main
from accuacl.experiments import make, models, run
from accuacl.experiments.data import load
from accuacl.experiments.embed.checkpoint import of_run
from effort import wait_until
from processes import start_command

NET = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear({inputs}, 5), nn.ReLU(), nn.Linear(5, 3))

def prepared():
    return build(), lambda x: x.flatten(1).float() / 100
"""


def accuacl(monkeypatch, capsys, *arguments):
    """The command; (exit code, what it wrote)."""
    monkeypatch.setattr(sys, "argv", ["accuacl", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    out = capsys.readouterr()
    return end.value.code or 0, out.out + out.err


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.py").write_text(NET.format(inputs=8 * 6 * 3))
    return f"{tmp_path / 'net.py'}:build"


@pytest.fixture
def images(tmp_path):
    """Twenty images of 6 x 8 in two folders."""
    rng, pixels = np.random.default_rng(0), {}
    for i in range(20):
        place = tmp_path / "photos" / ("a" if i % 2 else "b é") / f"{i:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        pixels[place.relative_to(tmp_path / "photos").as_posix()] = rng.integers(0, 256, (8, 6, 3), np.uint8)
        Image.fromarray(pixels[place.relative_to(tmp_path / "photos").as_posix()]).save(place)
    return tmp_path / "photos", dict(sorted(pixels.items()))


def read(folder):
    whole = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet")))
    h, p = (np.array(whole.column(name).to_pylist()) for name in ("embedding", "probability"))
    return whole.column("id").to_pylist(), h, p


def expected(pixels):
    """By hand: the layers of NET on pixels in [0, 1]."""
    torch.manual_seed(0)
    from torch import nn

    net = nn.Sequential(nn.Flatten(), nn.Linear(8 * 6 * 3, 5), nn.ReLU(), nn.Linear(5, 3))
    x = torch.from_numpy(np.stack(list(pixels.values()))).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        h = net[:3](x)
        return h.numpy(), net[3](h).softmax(1).numpy()


def test_a_folder_of_images_and_ones_own_model(tmp_path, images, net, monkeypatch, capsys):
    folder, pixels = images
    out = tmp_path / "pool"
    code, said = accuacl(
        monkeypatch, capsys, "embed", "--data", folder, "--model", net, "--out", out, "--shard-rows", 7, "--batch", 3
    )
    assert code == 0, said
    assert "20 rows of 3 classes" in said
    ids, h, p = read(out)
    assert ids == list(pixels)
    np.testing.assert_allclose(h, expected(pixels)[0], atol=1e-6)
    np.testing.assert_allclose(p, expected(pixels)[1], atol=1e-6)
    assert [pq.ParquetFile(file).metadata.num_rows for file in sorted(out.glob("*.parquet"))] == [7, 7, 6]
    code, said = accuacl(
        monkeypatch, capsys, "select", "--pool", out, "--budget", 4, "--out", tmp_path / "p.csv", "--workers", 1
    )
    assert code == 0, said
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 5


def test_it_goes_on_where_it_was_and_finished_shards_are_kept(tmp_path, images, net, monkeypatch, capsys):
    folder, out = images[0], tmp_path / "pool"
    command = ["embed", "--data", folder, "--model", net, "--out", out, "--shard-rows", 5]
    accuacl(monkeypatch, capsys, *command)
    whole = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in out.glob("*.parquet")}
    (out / "000001.parquet").unlink()  # gone, damaged, and of one that was killed
    (out / "000002.parquet").write_bytes(b"x" * 10)
    (out / "000003.parquet.1234.part").write_bytes(b"x")
    assert accuacl(monkeypatch, capsys, *command)[0] == 0
    again = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in out.glob("*.parquet")}
    assert {name: data for name, (data, _) in again.items()} == {name: data for name, (data, _) in whole.items()}
    assert sum(whole[name] == again[name] for name in whole) == 2
    assert not list(out.glob("*.part"))
    code, said = accuacl(monkeypatch, capsys, *command, "--half")
    assert code == 2
    assert "was begun with other half; give another --out, or start over with --fresh" in said
    assert accuacl(monkeypatch, capsys, *command, "--half", "--fresh")[0] == 0
    assert pq.read_schema(out / "000000.parquet").field("embedding").type.value_type == pa.float16()


def test_one_that_failed_is_not_in_the_way_of_the_corrected_command(tmp_path, net, monkeypatch, capsys):
    """At once or after a shard was written; one that went well still is."""
    rows, out = np.ones((12, 8 * 6 * 3), np.float32), tmp_path / "pool"
    for bad in (3, 9):
        broken = rows.copy()
        broken[bad, 0] = np.nan
        np.save(tmp_path / "x.npy", broken)
        command = ["embed", "--data", tmp_path / "x.npy", "--model", net, "--out", out, "--shard-rows", 4]
        assert accuacl(monkeypatch, capsys, *command)[0] == 2
        np.save(tmp_path / "x.npy", rows)
        assert accuacl(monkeypatch, capsys, *command)[0] == 0
        assert sum(pq.read_metadata(file).num_rows for file in out.glob("*.parquet")) == 12
        code, said = accuacl(monkeypatch, capsys, *command, "--half")
        assert (code, "was begun with other half" in said) == (2, True)
        shutil.rmtree(out)


def test_killed_and_started_again(tmp_path, images, net):
    """Killed while its model waits at the fifth row."""
    script = tmp_path / "waits.py"
    script.write_text(
        NET.format(inputs=8 * 6 * 3) + "\n\ncalls = []\n\ndef waits():\n    import os, time\n\n"
        "    def prepare(x):\n        calls.append(x)\n"
        "        while 'WAIT' in os.environ and len(calls) > 6:\n            time.sleep(1)\n"
        "        return x.permute(0, 3, 1, 2).float() / 255\n\n    return build(), prepare\n"
    )
    out = tmp_path / "pool"
    command = ["embed", "--data", images[0], "--model", f"{script}:waits", "--out", out]
    command += ["--shard-rows", 2, "--batch", 1, "--runtime", "torch"]
    process = start_command(*command, WAIT="1")
    wait_until((out / "000001.parquet").exists, process)
    process.kill()
    process.wait()
    finished = json.loads((out / "manifest.json").read_text())["shards"]
    assert 0 < len(finished) < 10
    times = {name: (out / name).stat().st_mtime_ns for name in finished}
    ended = start_command(*command).wait()
    assert ended.returncode == 0, ended.stderr
    assert {name: (out / name).stat().st_mtime_ns for name in finished} == times
    ids, h, _ = read(out)
    assert ids == list(images[1])
    np.testing.assert_allclose(h, expected(images[1])[0], atol=1e-6)


def test_parquet_as_hugging_face_writes_it_with_and_without_ids(tmp_path, images, net, monkeypatch, capsys):
    folder, pixels = images
    encoded = [{"bytes": (folder / name).read_bytes(), "path": None} for name in pixels]
    for i, columns in enumerate(({}, {"id": [f"k{i}" for i in range(20)]})):
        data = tmp_path / f"data{i}"
        data.mkdir()
        for part in range(2):
            some = {name: values[10 * part : 10 * part + 10] for name, values in ({"image": encoded} | columns).items()}
            pq.write_table(pa.table(some), data / f"{part}.parquet", row_group_size=4)
        out = tmp_path / f"pool{i}"
        code, said = accuacl(
            monkeypatch, capsys, "embed", "--data", data, "--model", net, "--out", out, "--shard-rows", 7
        )
        assert code == 0, said
        ids, h, _ = read(out)
        assert ids == (columns.get("id") or list(range(20)))
        np.testing.assert_allclose(h, expected(pixels)[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_vectors_weights_and_a_function_that_prepares(tmp_path, kind, monkeypatch, capsys):
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    (tmp_path / "net.py").write_text(NET.format(inputs=4))
    namespace = {}
    exec(NET.format(inputs=4), namespace)
    weights = {name: torch.full_like(value, 0.5) for name, value in namespace["build"]().state_dict().items()}
    safetensors.torch.save_file(weights, tmp_path / "w.safetensors")
    data = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(data, vectors)
    else:
        pq.write_table(pa.table({"id": list(range(30)), "vector": list(vectors)}), data)
    code, said = accuacl(
        monkeypatch, capsys, "embed", "--data", data, "--model", f"{tmp_path / 'net.py'}:prepared",
        "--weights", tmp_path / "w.safetensors", "--out", tmp_path / "pool",
    )  # fmt: skip
    assert code == 0, said
    _, h, p = read(tmp_path / "pool")
    by_hand = np.maximum(vectors.sum(axis=1, keepdims=True) / 100 * 0.5 + 0.5, 0).repeat(5, axis=1)
    np.testing.assert_allclose(h, by_hand, rtol=1e-5)
    np.testing.assert_allclose(p, 1 / 3, rtol=1e-5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A short run on digits, classes in another order; the last task has not come."""
    folder = tmp_path_factory.mktemp("run")
    config = make({"benchmark": "split-digits", "order": "classes", "tasks": 4, "strategy": "entropy"})
    return folder, run(config, folder)


def test_the_model_of_a_run(finished, tmp_path, monkeypatch, capsys):
    folder, result = finished
    digits = load("digits")
    np.save(tmp_path / "x.npy", digits.test.inputs)
    out = tmp_path / "pool"
    code, said = accuacl(monkeypatch, capsys, "embed", "--data", tmp_path / "x.npy", "--run", folder, "--out", out)
    assert code == 0, said
    ids, _, p = read(out)
    checkpoint = of_run(folder)
    assert 6 <= len(checkpoint.seen) <= 8  # of four tasks of two, those that were picked at least once
    assert p.shape == (len(digits.test), len(checkpoint.seen))
    assert ids == list(range(len(digits.test)))
    # The run's own accuracy comes out again: same weights, same inputs, same classes.
    from accuacl.experiments import open_stream

    stream = open_stream(make({"benchmark": "split-digits", "order": "classes"}), None, False)
    guess = np.array(checkpoint.seen)[p.argmax(axis=1)]
    for task, accuracy in zip(list(stream)[:4], result["accuracy_matrix"][-1], strict=True):
        truth = stream.to_model(digits.test.labels[task.test])
        assert 100 * (guess[task.test] == truth).mean() == pytest.approx(accuracy)
    assert isinstance(checkpoint.model, models.Classifier)
    assert len(pools.select(out, budget=5, engine="local", workers=1)) == 5


def test_a_run_with_a_strategy_of_a_plugin_needs_no_plugin_here(finished, tmp_path):
    """Only the model and the classes of a run matter."""
    copy = shutil.copytree(finished[0], tmp_path / "run")
    settings = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(settings | {"strategy": "mine"}))
    assert of_run(copy).fingerprint == of_run(finished[0]).fingerprint


def test_bad_images(tmp_path, images, net, monkeypatch, capsys):
    folder, pixels = images
    (folder / "a" / "01.png").write_bytes(b"no image")
    command = ["embed", "--data", folder, "--model", net, "--out", tmp_path / "pool"]
    code, said = accuacl(monkeypatch, capsys, *command)
    assert code == 2
    assert "01.png is not a readable image" in said
    code, said = accuacl(monkeypatch, capsys, *command, "--skip-bad")
    assert code == 0, said
    assert "19 rows of 3 classes, 1 left out" in " ".join(said.split())
    assert read(tmp_path / "pool")[0] == [name for name in pixels if name != "a/01.png"]
    Image.new("RGB", (6, 8)).save(folder / "a" / "01.png")
    Image.new("RGB", (9, 9)).save(folder / "b é" / "18.png")
    code, said = accuacl(monkeypatch, capsys, *command, "--fresh")
    assert code == 2
    assert "9 x 9 pixels where 6 x 8 were expected; give --image-size" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--data", "x.npy"], "give either --run, the directory of a finished run or of a project, or --model"),
        (["--data", "x.npy", "--run", "nowhere"], "nowhere is not the directory of a finished run"),
        (["--data", "x.npy", "--run", "a", "--weights", "b"], "--weights are for --model; a run has its own"),
        (["--data", "x.npy", "--model", "net.py"], "model is 'net.py'; give a Python file and a function"),
        (["--data", "x.npy", "--model", "net.py:nothing"], "net.py has no function nothing; define it there"),
        (["--data", "x.npy", "--model", "net.py:number"], "net.py:number returned int; return a torch module"),
        (["--data", "x.npy", "--model", "net.py:build", "--weights", "x.npy"], "x.npy cannot be read as safetensors"),
        (["--data", "x.npy", "--model", "net.py:wide"], "are vectors of 4 numbers and the model wants 9; give"),
        (
            ["--data", "cube.npy", "--model", "net.py:build"],
            r"cube.npy holds float64 of shape \(2, 3, 4\); give vectors",
        ),
        (["--data", "empty", "--model", "net.py:build"], "empty holds no images and no Parquet files"),
        (["--data", "net.py", "--model", "net.py:build"], r"net.py is not a folder, a table \(Parquet"),
        (["--data", "a.parquet", "--model", "net.py:build"], "has the columns key; say with --column which one"),
        (
            ["--data", "x.npy", "--model", "net.py:huge", "--half"],
            "cannot go into a pool: .*float16 holds less than",
        ),
        (["--data", "x.npy", "--model", "net.py:build", "--device", "cuda:9"], "'cuda:9', but torch finds no GPU"),
        (["--data", "x.npy", "--model", "net.py:build", "--device", "cpux"], "device is 'cpux'; give cpu, cuda"),
        (["--data", "full", "--model", "net.py:build", "--out", "full/pool"], "full/pool is inside full"),
        (["--data", "both", "--model", "net.py:build"], "both holds images and Parquet files, like both/a.parquet"),
        (["--data", "x.npy", "--model", "net.py:build", "--out", "full"], "full holds a.parquet, which is not part"),
    ],
)
def test_wrong_input(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    more = "def number():\n    return 7\n\ndef wide():\n    return nn.Linear(9, 2)\n\n"
    more += "def huge():\n    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), lambda x: x.abs() * 1e9\n"
    Path("net.py").write_text(NET.format(inputs=4) + "\n\n" + more)
    np.save("x.npy", np.ones((5, 4)))
    np.save("cube.npy", np.ones((2, 3, 4)))
    os.mkdir("empty")
    os.mkdir("full")
    os.mkdir("both")
    Image.new("RGB", (4, 4)).save("both/a.png")
    pq.write_table(pa.table({"key": [1]}), "both/a.parquet")
    pq.write_table(pa.table({"key": [1]}), "a.parquet")
    pq.write_table(pa.table({"key": [1]}), "full/a.parquet")
    out = [] if "--out" in arguments else ["--out", "pool"]
    code, said = accuacl(monkeypatch, capsys, "embed", *arguments, *out)
    assert code == 2
    assert re.search(says, said), said
    assert len(said.strip().splitlines()) == 1
    assert not list(Path().glob("pool/*.parquet"))


def test_a_pool_is_not_made_anew_by_a_command_that_is_refused(tmp_path, net, monkeypatch, capsys, images):
    monkeypatch.chdir(tmp_path)
    common = ("embed", "--data", images[0], "--model", net, "--out", "pool")
    assert accuacl(monkeypatch, capsys, *common)[0] == 0
    before = sorted(Path("pool").iterdir())
    for device in ("cpux", "cuda:9"):
        assert accuacl(monkeypatch, capsys, *common, "--fresh", "--device", device)[0] == 2
    assert sorted(Path("pool").iterdir()) == before


DATACLASS = """from __future__ import annotations

from dataclasses import dataclass

from torch import nn

@dataclass
class Sizes:
    hidden: int = 5

def build() -> nn.Module:
    return nn.Sequential(nn.Linear(4, Sizes().hidden), nn.Linear(5, 3))
"""


def test_a_model_file_may_have_dataclasses_and_future_annotations(tmp_path, monkeypatch, capsys):
    (tmp_path / "net.py").write_text(DATACLASS)
    np.save(tmp_path / "x.npy", np.ones((5, 4)))
    command = [
        "embed",
        "--data",
        tmp_path / "x.npy",
        "--model",
        f"{tmp_path / 'net.py'}:build",
        "--out",
        tmp_path / "p",
    ]
    code, said = accuacl(monkeypatch, capsys, *command)
    assert code == 0, said


@pytest.mark.parametrize("more", ["\n1 / 0\n", "\ndef build():\n    return {}['key']\n"])
def test_a_bug_in_a_model_file_shows_where_it_is(tmp_path, more, monkeypatch, capsys):
    (tmp_path / "net.py").write_text(NET.format(inputs=4) + more)
    np.save(tmp_path / "x.npy", np.ones((5, 4)))
    model = f"{tmp_path / 'net.py'}:build"
    code, said = accuacl(
        monkeypatch, capsys, "embed", "--data", tmp_path / "x.npy", "--model", model, "--out", tmp_path / "p"
    )
    assert code == 1
    assert said.startswith(f'Traceback (most recent call last):\n  File "{tmp_path / "net.py"}", line ')
    assert said.splitlines()[-1] in ("ZeroDivisionError: division by zero", "KeyError: 'key'")


def test_two_at_once_do_not_remove_each_others_files(tmp_path, net, images, monkeypatch, capsys):
    common = ("embed", "--data", images[0], "--model", net, "--out", tmp_path / "pool", "--shard-rows", 5)
    assert accuacl(monkeypatch, capsys, *common)[0] == 0
    (tmp_path / "pool" / "000003.parquet.1234.part").write_bytes(b"being written")
    before = {path: path.read_bytes() for path in (tmp_path / "pool").glob("*.p*")}
    with Lock(tmp_path / "pool" / "embed.lock"):
        for more in ([], ["--fresh"]):
            code, said = accuacl(monkeypatch, capsys, *common, *more)
            assert (code, f"another embed (process {os.getpid()}) is writing to" in said) == (2, True)
    assert {path: path.read_bytes() for path in (tmp_path / "pool").glob("*.p*")} == before


def idx(path, array):
    """MNIST's format."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4) for size in array.shape)
    data = header + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "images-idx3-ubyte", "images-idx3-ubyte.gz"])
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_arrays_of_images(tmp_path, net, name, channels, monkeypatch, capsys):
    rng, file = np.random.default_rng(0), tmp_path / name
    images = rng.integers(0, 256, (9, 8, 6, channels) if channels else (9, 8, 6), np.uint8)
    if name == "x.npy":
        np.save(file, images)
    elif name == "x.npz":
        np.savez(file, x=images, y=np.arange(9))
    else:
        idx(file, images)
    out = tmp_path / "pool"
    code, said = accuacl(monkeypatch, capsys, "embed", "--data", file, "--model", net, "--out", out)
    assert code == 0, said
    pixels = np.broadcast_to(images.reshape(9, 8, 6, -1), (9, 8, 6, 3)).copy()
    ids, h, p = read(out)
    assert ids == list(range(9))
    np.testing.assert_allclose(h, expected(dict(enumerate(pixels)))[0], atol=1e-5)
    np.testing.assert_allclose(p, expected(dict(enumerate(pixels)))[1], atol=1e-5)


def test_arrays_of_an_npz_file_by_their_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET.format(inputs=4))
    vectors, keys = np.arange(20, dtype=np.float32).reshape(5, 4), np.array(list("vwxyz"))
    np.savez("x.npz", train=vectors, other=vectors[::-1], key=keys, twice=np.array([3, 1, 4, 1, 5]), short=keys[:2])
    common = ("embed", "--data", "x.npz", "--model", "net.py:build")
    for more, says in (
        ([], "x.npz has the arrays train, other, key, twice, short; say with --column which"),
        (["--column", "nothing"], "say with --column which"),
        (["--column", "train", "--id-column", "no"], "x.npz has no array 'no'; give another --id-column"),
        (["--column", "key"], "holds <U1 of shape (5,); give vectors (n, d) or uint8 images"),
        (["--column", "train", "--id-column", "train"], "train holds float32 of shape (5, 4); give a whole number"),
        (["--column", "train", "--id-column", "short"], "has 2 ids for 5 rows"),
        (["--column", "train", "--id-column", "twice"], "row 3 has the id 1, which x.npz, row 1 has too"),
    ):
        code, said = accuacl(monkeypatch, capsys, *common, *more, "--out", "pool")
        assert (code, says in " ".join(said.split())) == (2, True), said
    code, said = accuacl(monkeypatch, capsys, *common, "--column", "train", "--id-column", "key", "--out", "pool")
    assert code == 0, said
    assert read(Path("pool"))[0] == list("vwxyz")


@pytest.mark.parametrize("damage", ["short", "of floats", "labels"])
def test_idx_files_that_are_not_images(tmp_path, net, damage, monkeypatch, capsys):
    file = tmp_path / "images-idx3-ubyte"
    idx(file, np.zeros((4, 8, 6) if damage != "labels" else 4, np.uint8))
    data = file.read_bytes()
    file.write_bytes({"short": data[:-1], "of floats": data[:2] + b"\x0d" + data[3:], "labels": data}[damage])
    code, said = accuacl(monkeypatch, capsys, "embed", "--data", file, "--model", net, "--out", tmp_path / "pool")
    says = "give vectors (n, d) or uint8 images" if damage == "labels" else "is not a complete idx file of bytes"
    assert (code, says in " ".join(said.split())) == (2, True), said


def test_a_pool_goes_on_with_the_runtime_that_it_was_begun_with(tmp_path, images, net, monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    command = ["embed", "--data", images[0], "--model", net, "--out", tmp_path / "pool", "--shard-rows", 5]
    manifest = tmp_path / "pool" / "manifest.json"

    def recorded():
        return json.loads(manifest.read_text())["settings"]["runtime"]

    assert accuacl(monkeypatch, capsys, *command)[0] == 0
    assert recorded() == "onnxruntime"
    whole = read(tmp_path / "pool")
    code, said = accuacl(monkeypatch, capsys, *command, "--runtime", "torch")
    assert (code, "was begun with other runtime" in said) == (2, True)
    assert accuacl(monkeypatch, capsys, *command, "--runtime", "torch", "--fresh")[0] == 0
    (tmp_path / "pool" / "000001.parquet").unlink()
    assert accuacl(monkeypatch, capsys, *command)[0] == 0  # not the fastest: the one that it has
    assert recorded() == "torch"
    np.testing.assert_allclose(read(tmp_path / "pool")[1], whole[1], atol=1e-5)


def test_a_runtime_that_does_not_exist(tmp_path, images, net, monkeypatch, capsys):
    command = ["embed", "--data", images[0], "--model", net, "--out", tmp_path / "pool", "--runtime", "onnxruntme"]
    code, said = accuacl(monkeypatch, capsys, *command)
    assert (code, "onnxruntime" in said) == (2, True)

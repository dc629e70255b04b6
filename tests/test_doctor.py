"""`accuacl doctor`: what it says of extras, machine, data and caches."""

from __future__ import annotations

import tomllib
from pathlib import Path

from accuacl.base.errors import EXTRAS
from accuacl.base.machine import cpu_name
from accuacl.cli import doctor
from accuacl.experiments.data import caches
from commands import accuacl

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def test_all_extras_that_users_may_need_are_looked_for():
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS) == set(extras) - {"all", "docs", "dev"}
    assert extras["all"] == [f"accuacl[{','.join(name for name in EXTRAS if name != 'train')}]"]  # label has train
    for extra, (_, modules) in EXTRAS.items():
        others = [word for word in extras[extra] if not word.startswith("accuacl[")]
        assert len(modules) == len(others), f"{extra}: one module for each distribution"


def test_what_is_found_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(EXTRAS, "label", ("the page", ("fastapi", "no_such_module")))
    ended = accuacl("doctor", "--data-dir", tmp_path)
    assert ended.returncode == 0, ended.stderr
    for words in (
        cpu_name(),
        "torch ",
        "label (the page): missing; install it: pip install 'accuacl[label]'",
        f"folder: {tmp_path}",
        "cifar10: not found",
        "0 B in all; a cache may be deleted",
    ):
        assert words in ended.stdout, words


def test_what_runs_the_networks_is_said(monkeypatch):
    monkeypatch.setattr("accuacl.experiments.networks.installed", lambda: ["onnxruntime", "torch"])
    assert doctor._runtimes({"onnxruntime": "1.2", "torch": "3.4"}) == (
        "onnxruntime 1.2 runs the pretrained networks (here are onnxruntime 1.2, torch 3.4); openvino would be faster "
        "where the processor has bfloat16"
    )
    monkeypatch.setattr("accuacl.experiments.networks.installed", lambda: ["openvino-bf16", "torch"])
    assert doctor._runtimes({"openvino": "5", "torch": "3.4"}) == (
        "openvino-bf16 5 runs the pretrained networks (here are openvino-bf16 5, torch 3.4)"
    )


def test_caches_and_their_sizes(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path))
    (tmp_path / "cifar10-1234").mkdir()
    (tmp_path / "cifar10-1234" / "images.npy").write_bytes(bytes(3 << 20))
    assert caches() == {tmp_path / "cifar10-1234": 3 << 20}
    ended = accuacl("doctor")
    assert f"{tmp_path / 'cifar10-1234'}: 3.0 MiB" in ended.stdout
    assert "3.0 MiB in all" in ended.stdout


def test_small_caches_share_a_line():
    kept = {Path("c") / str(n): n for n in range(60)} | {Path("c/large"): 30 << 20, Path("c/larger"): 1 << 30}
    assert doctor._caches(kept) == [
        "c/larger: 1.0 GiB",
        "c/large: 30 MiB",
        "60 small caches in c: 2 KiB",
        "1.0 GiB in all; a cache may be deleted, and is made again.",
    ]

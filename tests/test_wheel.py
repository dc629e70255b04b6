"""The wheel: built, installed into a new environment that does not have the source tree, and used there."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accuacl
from accuacl.base.errors import EXTRAS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Its `bin`. What the wheel needs is taken from the environment of these tests, without what is editable there."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy, since building writes beside the sources
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.pyc", "*.egg-info"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = folder.glob("accuacl-*.whl")
    venv.create(folder / "new", with_pip=False)
    inside = next((folder / "new" / "lib").glob("python*")) / "site-packages"
    subprocess.run([*pip, "--python", folder / "new" / "bin" / "python", "install", "--no-deps", wheel], check=True)
    # A folder that a .pth file names is searched, but its own .pth files, such as that of the tree, are not read.
    (inside / "needed.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder / "new" / "bin"


def run(environment, folder, command):
    """What a command of the environment prints."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = command.split()
    done = subprocess.run([environment / words[0], *words[1:]], cwd=folder, env=variables, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_installed_package_runs_selects_and_keeps_projects(environment, tmp_path):
    (tmp_path / "where.py").write_text("import accuacl.labeling.web.app\nprint(accuacl.__file__)\n")
    assert str(ROOT) not in run(environment, tmp_path, "python where.py")
    assert run(environment, tmp_path, "python -m accuacl --version") == f"accuacl {accuacl.__version__}\n"
    small = "--tasks 1 --labels 4 --rounds 2 --epochs 1 --pool 20 --out run"
    run(environment, tmp_path, f"accuacl run --benchmark split-digits --scale smoke {small}")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["version"] == accuacl.__version__
    rng = np.random.default_rng(0)
    columns = {"id": range(30), "embedding": list(rng.normal(size=(30, 4)).astype(np.float32))}
    columns["probability"] = list(rng.dirichlet(np.ones(3), 30).astype(np.float32))
    pq.write_table(pa.table(columns), tmp_path / "pool.parquet")
    run(environment, tmp_path, "accuacl select --strategy entropy --pool pool.parquet --budget 3 --out a.csv")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 4
    (tmp_path / "t.csv").write_text("text\nopen it\nclose it\nopen that\n")
    assert "3 texts" in run(environment, tmp_path, "accuacl project new p --texts t.csv --classes open,close")
    assert "0 of 3" in run(environment, tmp_path, "accuacl project status p")


def test_pages_and_recipes_are_in_the_wheel(environment):
    inside = next((environment.parent / "lib").glob("python*")) / "site-packages" / "accuacl"
    for path in (ROOT / "src" / "accuacl").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (inside / path.relative_to(ROOT / "src" / "accuacl")).is_file(), path


def test_without_extras_the_wheel_asks_for_little(environment):
    """torch and what belongs to extras alone is not among what a plain `pip install` brings."""
    inside = next((environment.parent / "lib").glob("python*")) / "site-packages"
    (distribution,) = metadata.distributions(name="accuacl", path=[str(inside)])
    required = distribution.requires or []
    plain = {re.split(r"[^\w-]", line)[0].lower() for line in required if "extra ==" not in line}
    assert plain == {
        "numpy", "scipy", "scikit-learn", "threadpoolctl", "pyarrow", "pydantic", "typer", "rich", "pyyaml", "filelock"
    }  # fmt: skip
    extras = set(distribution.metadata.get_all("Provides-Extra"))
    assert extras == {*EXTRAS, "all", "docs", "dev"}

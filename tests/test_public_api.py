"""The public API: `dir(accuacl)` shows it, the page lists it, and importing the package loads nothing slow."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import accuacl

NAMES = {
    "Features", "InputError", "Query", "Selection", "__version__", "get_strategy", "register", "select",
    "strategy_names",
}  # fmt: skip
PACKAGES = {"engines", "experiments", "heads", "labeling", "pools", "skactiveml", "strategies", "torch"}
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "public-api.md"


def test_dir_shows_the_public_names_and_all_are_there():
    assert set(dir(accuacl)) == NAMES | PACKAGES
    assert set(accuacl.__all__) == NAMES
    for name in NAMES | PACKAGES - {"skactiveml"}:
        getattr(accuacl, name)
    with pytest.raises(AttributeError, match="module 'accuacl' has no attribute 'NAMES'"):
        accuacl.NAMES  # noqa: B018


def test_the_page_lists_names_that_can_be_imported():
    rows = re.findall(r"(?m)^\| `(accuacl[.\w]*)` \| (.*) \|$", PAGE.read_text())
    assert {module for module, _ in rows} >= {"accuacl", "accuacl.strategies", "accuacl.pools", "accuacl.torch"}
    for module, text in rows:
        if module == "accuacl.skactiveml":
            pytest.importorskip("skactiveml")
        for name in re.findall(r"`(\w+)(?:\(\))?`", text):
            if module != "accuacl.experiments":  # whose row names packages too
                assert hasattr(importlib.import_module(module), name), (module, name)
    named = next(text for module, text in rows if module == "accuacl")
    assert set(re.findall(r"`(\w+)(?:\(\))?`", named)) == NAMES


def test_a_strategy_of_ones_own_is_registered_listed_and_found():
    import numpy as np

    @accuacl.register("last-rows")
    def last_rows(query: accuacl.Query) -> accuacl.Selection:
        return accuacl.Selection(np.arange(len(query.pool))[::-1][: query.count], {})

    try:
        assert accuacl.strategy_names()[-1] == "last-rows"
        pool = accuacl.Features(np.eye(4, 2), np.full((4, 2), 0.5))
        assert accuacl.get_strategy("last-rows")(accuacl.Query(pool, 2)).indices.tolist() == [3, 2]
    finally:
        del accuacl.strategies.REGISTRY["last-rows"]
    assert "last-rows" not in accuacl.strategy_names()


def test_importing_the_package_loads_nothing_slow():
    code = (
        "import sys, json, accuacl\nprint(json.dumps(sorted({'numpy', 'torch', 'typer', 'rich'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert json.loads(done.stdout) == []

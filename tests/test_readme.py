"""The README: short, wrapped alike, true to its first example; its addresses hold on the page of a package index."""

from __future__ import annotations

import itertools
import re
import runpy
from pathlib import Path

from accuacl import __version__

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = re.compile(r"\]\(([^)\s]+)")


def test_it_is_short_and_its_prose_is_wrapped_alike():
    assert len(TEXT.splitlines()) <= 150
    prose = re.sub(r"(?ms)^```.*?^```$", "", TEXT)
    too_long = [line for line in prose.splitlines() if len(line) > 140 and not line.startswith(("|", "![", "<!--"))]
    assert not too_long
    for paragraph in re.split(r"\n\s*\n", prose):
        lines = paragraph.splitlines()
        if not paragraph.startswith(("|", "#", "![", "<!--")):
            for line, following in itertools.pairwise(lines):  # the next word would not have fitted
                assert len(line) + 1 + len(following.split()[0]) > 120, line


def test_an_index_is_given_whole_addresses_once_the_repository_has_one():
    whole_addresses = runpy.run_path(str(ROOT / "setup.py"))["whole_addresses"]
    relative = [address for address in ADDRESS.findall(TEXT) if not re.match(r"[a-z]+:|#", address)]
    assert all((ROOT / address.split("#")[0]).exists() for address in relative)
    rewritten = ADDRESS.findall(whole_addresses(TEXT, "https://host.invalid/us/it/", f"v{__version__}"))
    assert len(rewritten) == len(ADDRESS.findall(TEXT))
    assert all(address.startswith("https://") for address in rewritten)
    at = f"v{__version__}"
    assert f"https://host.invalid/us/it/raw/{at}/docs/images/digits.png" in rewritten
    assert f"https://host.invalid/us/it/blob/{at}/docs/start.md#install" in rewritten
    assert whole_addresses("[a](#b) [c](https://d.invalid/e)", "https://host.invalid", at) == (
        "[a](#b) [c](https://d.invalid/e)"
    )


def test_its_first_example_prints_the_accuracies_that_it_quotes(capsys):
    code, quoted = re.search(r"(?s)## Ten lines\n\n```python\n(.*?)```\n\n(.*?)```", TEXT).groups()
    exec(code, {})
    printed = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert list(printed) == ["uniform", "coverage"]
    at_random, by_coverage = (f"{100 * float(accuracy):.1f} %" for accuracy in printed.values())
    assert f"30 labels at random, {at_random} (" in quoted
    assert f"`coverage` chose,\n{by_coverage}." in quoted
    for seed in range(10):  # the same lines with other seeds
        exec(code.replace("seed=0", f"seed={seed}").replace('("uniform", "coverage")', '("uniform",)'), {})
    accuracies = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(accuracies) == 10
    assert f"({100 * sum(accuracies) / 10:.1f} % on average over ten seeds)" in quoted

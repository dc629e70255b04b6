"""The documentation site: built strictly, read offline in a browser."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
import warnings
from pathlib import Path

import pytest
import yaml

from accuacl import strategy_names
from web_browser import DESKTOP, PHONE, Watch, browser

for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason="the extra `docs` is not installed")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(DOCS / "hooks")
    import command_page
    import dark_figures
    import docstrings
    import github_lists
    import short_code


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All pages; a warning of mkdocs, such as a link to nowhere, is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    out = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's, about what its packages use
        patch.setenv("NO_MKDOCS_2_WARNING", "true")
        patch.chdir(ROOT)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out), strict=True))
    return out


def test_no_page_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        assert not re.findall(r'<(?:script|img|iframe)[^>]* src="?(?:https?:)?//', text), page
        assert not re.findall(r'<link[^>]* rel="?stylesheet"?[^>]* href="?(?:https?:)?//', text), page


def test_every_command_and_option_is_in_the_reference(site):
    text = (site / "reference" / "commands.html").read_text()
    for name in (*command_page.COMMANDS, *command_page.PROJECT_COMMANDS):
        assert re.search(rf'id="accuacl(-project)?-{name}"', text), name
    for option in ("--memory-policy", "--trust-code", "--no-open", "--exclude"):
        assert f">{option}</code>" in text
    assert "\\[" not in text


def test_options_in_help_are_code_on_the_page_once():
    assert (
        command_page._plain("Give --lr, or\n`run --lr 1` twice--here.") == "Give `--lr`, or `run --lr 1` twice--here."
    )


def test_every_page_is_in_the_navigation(site):
    nav = str(yaml.safe_load((ROOT / "mkdocs.yml").read_text().replace("!!", ""))["nav"])
    for page in DOCS.rglob("*.md"):
        assert page.relative_to(DOCS).as_posix() in nav


def test_pages_open_from_a_folder_in_light_and_dark_and_can_be_searched(site):
    watch = Watch()
    with browser() as chromium:
        for dark in (False, True):
            page = watch.page(chromium, dark=dark)
            page.context.set_offline(True)
            page.goto((site / "index.html").as_uri())
            twins = page.locator("img[src*='digits']")
            assert [one.is_visible() for one in twins.all()] == [not dark, dark]
        page.locator("input.md-search__input").click()
        page.keyboard.type("Clopper")
        page.locator(".md-search-result__item a[href*='projects.html']").first.wait_for()
        for name in ("strategies.html", "results/index.html", "reference/python.html"):  # wide tables, long code
            page.goto((site / name).as_uri())
            wide = "document.documentElement.scrollWidth > innerWidth"
            assert not page.evaluate(wide)
            page.set_viewport_size(PHONE)
            assert not page.evaluate(wide)
            page.set_viewport_size(DESKTOP)
    assert not watch.complaints
    assert {url.partition(":")[0] for url in watch.asked} <= {"file", "about", "data", "blob"}


@pytest.mark.parametrize("module", [dark_figures, docstrings, github_lists, short_code])
def test_examples_of_the_hooks(module):
    results = doctest.testmod(sys.modules[module.__name__])  # building the site loads some of them anew
    assert results.failed == 0
    assert results.attempted > 0


def test_examples_of_docstrings_get_fences():
    assert docstrings.fenced("A sum.\n\n>>> 1 + 1\n2\n\nMore.") == "A sum.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert docstrings.fenced("No example, 1 >>> 2.") == "No example, 1 >>> 2."
    assert docstrings.fenced(">>> 1 / 3  # doctest: +ELLIPSIS\n0.3...") == "```pycon\n>>> 1 / 3\n0.3...\n```"


def test_only_arguments_are_listed():
    assert docstrings.listed("note: a sum. a: the first.", ["a"]) == "note: a sum. a: the first."
    assert docstrings.listed("a: the first.", []) == "a: the first."
    assert docstrings.listed("`a`: half (0.5) b: see a: it.", ["a", "b"]) == "- `a`: half (0.5)\n- `b`: see a: it."
    assert docstrings.listed("a, b:\nboth.", ["a", "b"]) == "- `a`, `b`: both."


def test_the_reference_of_python_has_names_that_can_be_imported():
    text = (DOCS / "reference" / "python.md").read_text()
    names = re.findall(r"(?m)^::: (\S+)\.(\w+)$", text)
    assert len(names) > 40
    for module, name in names:
        assert hasattr(importlib.import_module(module), name), (module, name)
    strategies = set(re.findall(r"(?m)^ +heading: (\S+)$", text))
    assert strategies | {"accuacl-full"} == set(strategy_names())


def test_lists_as_github_reads_them():
    given = "a\n```\n- no\n```\n1. x\n   - y\n\nb\n- z"
    assert github_lists.spaced(given) == "a\n```\n- no\n```\n\n1. x\n    - y\n\nb\n\n- z"
    assert github_lists.spaced("- a\n\n  more\n- b") == "- a\n\n  more\n- b"

"""The documentation site: built strictly, read offline in a browser."""

from __future__ import annotations

import doctest
import re
import warnings
from pathlib import Path

import pytest
import yaml

from web_browser import Watch, browser

for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason="the extra `docs` is not installed")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(DOCS / "hooks")
    import command_page
    import dark_figures
    import doctest_fences
    import github_lists


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
        assert f"<code>{option}</code>" in text
    assert "\\[" not in text


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
    assert not watch.complaints
    assert {url.partition(":")[0] for url in watch.asked} <= {"file", "about", "data", "blob"}


@pytest.mark.parametrize("module", [dark_figures, github_lists])
def test_examples_of_the_hooks(module):
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted > 0


def test_examples_of_docstrings_get_fences():
    assert doctest_fences.fenced("A sum.\n\n>>> 1 + 1\n2\n\nMore.") == "A sum.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert doctest_fences.fenced("No example, 1 >>> 2.") == "No example, 1 >>> 2."


def test_lists_as_github_reads_them():
    given = "a\n```\n- no\n```\n1. x\n   - y\n\nb\n- z"
    assert github_lists.spaced(given) == "a\n```\n- no\n```\n\n1. x\n    - y\n\nb\n\n- z"
    assert github_lists.spaced("- a\n\n  more\n- b") == "- a\n\n  more\n- b"

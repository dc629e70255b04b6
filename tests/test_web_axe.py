"""axe-core finds nothing on any page, in both themes; and the keyboard alone comes to every control of each."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from accuacl.base.progress import ignore
from accuacl.labeling.project import read_images
from effort import wait_until
from web_browser import Watch
from web_project import PATIENCE, image_project, picture, running

expect.set_options(timeout=1000 * PATIENCE)
PAGES = ["/", "/gallery", "/review", "/review?show=flagged", "/dashboard", "/classes", "/people", "/project", "/docs"]
PAGES += ["/item/0", "/settle"]
DIALOGS = {"/": ["#help-open", "#add", "#flag", "#guide", "#skip-why"], "/classes": ["[data-edit]"]}
DIALOGS |= {"/review": ["#help-open"], "/settle": ["#help-open"]}
SHOWN = {"/dashboard": "#forgetting a", "/people": "#agreement table + p, #agreement h3", "/gallery": "#groups li"}
SHOWN |= {"/settle": "#said-by tr"}
TAB = """() => {
  const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && e.tabIndex >= 0;
  const every = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")];
  return every.filter(shown).map((e, i) => (e.dataset.tab = `${i}`));
}"""


def at(project):
    status = project.store.status()
    return status.task, status.round


def label_round(project, person, until):
    wait_until(lambda: not project.state().ready)  # all of it is chosen
    while (pick := project.store.lease(person)) is not None:
        project.store.label(person, pick.item, pick.item % 2, f"axe-{pick.item}")
    wait_until(lambda: at(project) == until)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("axe")
    with image_project(folder, per_round=4) as project, running(project) as address:
        lead, other = (project.store.person_of(project.store.add_person(name)) for name in ("Ada", "Bob"))
        (folder / "more").mkdir()
        for i in range(8):
            picture(100 + i).save(folder / "more" / f"{i}.png")
        project.add(read_images(folder / "more", ignore))
        label_round(project, lead, (0, 1))  # so that every card of the dashboard is there
        project.end_task(lead, 0)
        wait_until(lambda: at(project) == (1, 0))
        label_round(project, lead, (1, 1))
        for pick in project.store.picks(0, 0)[:2]:  # and those of people who were asked about the same
            project.store.mark_gold(lead, [pick.item])
            project.store.label(other, pick.item, (pick.item + 1) % 2, f"gold-{pick.item}")  # they disagree
        project.store.guide(lead, 0, "whiskers", [pick.item for pick in project.store.picks(0, 0)[:1]])
        project.store.propose(lead, "lion", "propose-lion")
        project.store.flag(lead, project.store.picks(0, 0)[0].item, "?", "flag-it-now")
        yield address, project


def wrong(page, dark=False):
    """What axe finds, with where: WCAG 2.2 AA and best practices. Dark pages differ in their colours alone."""
    found = Axe().run(page, options={"runOnly": ["color-contrast"]} if dark else None).response
    assert len(found["passes"]) > (0 if dark else 10)
    return [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found["violations"]]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(chromium, server, dark):
    address, project = server
    watch = Watch()
    page = watch.page(chromium, dark=dark)
    for path in ("/login", "/nowhere"):
        watch.open(page, f"{address}{path}")
        assert wrong(page, dark) == [], path
    page.goto(f"{address}/login#token={project.store.invite('Ada')}")
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    for path in PAGES:
        watch.open(page, f"{address}{path}")
        assert page.locator(SHOWN.get(path, "main")).count() > 0, path
        assert wrong(page, dark) == [], path
        for opener in DIALOGS.get(path, ()):
            page.locator(opener).first.click()
            watch.settle(page)
            assert wrong(page, dark) == [], (path, opener)
            page.keyboard.press("Escape")
    watch.open(page, f"{address}/people")
    page.locator("[data-invite]").first.click()
    expect(page.locator("#invitation-here")).to_contain_text("only on this computer")
    assert wrong(page, dark) == []


def test_the_keyboard_alone_comes_to_every_control(chromium, server):
    address, project = server
    watch = Watch()
    page = watch.page(chromium)
    page.goto(f"{address}/login#token={project.store.invite('Ada')}")
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    for path in PAGES:
        watch.open(page, f"{address}{path}")
        controls = set(page.evaluate(TAB))
        assert len(controls) >= 8, path
        page.evaluate("() => document.activeElement.blur()")
        reached = set()
        for _ in range(2 * len(controls) + 10):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("() => document.activeElement.dataset.tab ?? ''"))
            if controls <= reached:
                break
        missing = [page.locator(f"[data-tab='{tab}']").evaluate("e => e.outerHTML") for tab in controls - reached]
        assert missing == [], path


def test_nothing_is_wider_than_a_phone(chromium, server):
    address, project = server
    watch = Watch()
    page = watch.page(chromium, phone=True)
    page.goto(f"{address}/login#token={project.store.invite('Ada')}")
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    for path in PAGES:
        watch.open(page, f"{address}{path}")
        wide, left = page.evaluate("() => [document.documentElement.scrollWidth - innerWidth, scrollX]")
        assert (wide <= 0, left) == (True, 0), path

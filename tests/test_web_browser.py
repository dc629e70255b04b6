"""The page in a real browser: what a person does, with the keyboard alone, on a phone, in the dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from web_browser import Watch, browser, faint, nameless, reached_by_tab
from web_project import PATIENCE, TestTrainer, image_project, link, running

PER_ROUND = 4


expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="module")
def chromium():
    with browser() as launched:
        yield launched


@pytest.fixture
def watch():
    watch = Watch()
    yield watch
    assert watch.complaints == []


@pytest.fixture
def project(tmp_path):
    with image_project(tmp_path, per_round=PER_ROUND, epochs=20) as project:
        yield project


@pytest.fixture
def trainer(project):
    return TestTrainer(project)


@pytest.fixture
def server(project, trainer):
    with running(project, trainer=trainer) as address:
        yield address


def enter(page, server, project, name="Ada"):
    """Log in by the link and wait for the first example."""
    page.goto(link(server, project, name))
    page.wait_for_selector("#view > *")
    return page


def shown(page) -> str:
    """Which example is on the page."""
    return page.locator("#view img").get_attribute("src")


def gone(page, example):
    """Wait until it is no longer shown."""
    expect(page.locator(f'#view img[src="{example}"]')).to_be_hidden()


def press(page, key):
    """A key that brings another example, or ends the round."""
    before = shown(page)
    page.keyboard.press(key)
    gone(page, before)


def settle(page):
    """Wait until the page has handled all answers that it got before now."""
    page.evaluate("() => fetch('/static/icon.svg').then((answer) => answer.text())")


def labels(project):
    return list(project.store.labels().values())


def test_a_whole_round_by_keyboard_then_training_then_the_next_batch(chromium, watch, server, project, trainer):
    page = enter(watch.page(chromium), server, project)
    assert "token" not in page.url
    seen = {shown(page)}
    assert page.locator("#round-name").inner_text() == "Task 1, round 1 of 2"
    trainer.may_go_on.clear()
    for key in "1212"[:PER_ROUND]:
        page.locator("#round-count").wait_for()
        seen.add(shown(page))
        press(page, key)
    assert len(seen) == PER_ROUND
    expect(page.locator("#waiting-title")).to_have_text("The model is learning")
    trainer.may_go_on.set()
    expect(page.locator("#round-name")).to_have_text("Task 1, round 2 of 2")
    expect(page.locator("#desk")).to_be_visible()
    assert shown(page) not in seen
    assert page.locator("#said").inner_text() == "The model has been trained. Here is the next batch."
    assert sorted(labels(project)) == [0, 0, 1, 1]
    # Now there are scores to say why, and a guess for those who ask.
    assert re.search(r"choice 1 of 4, \w+ -?[\d.e+-]+", page.locator("#why").inner_text())
    assert page.locator("#guessed").inner_text() == ""
    page.keyboard.press("g")
    expect(page.locator("#guessed")).to_have_text(re.compile("guess: (cat|dog)"))
    assert all(url.startswith(server) for url in watch.asked)


def test_undo_goes_back_to_the_beginning(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    first = shown(page)
    press(page, "1")
    second = shown(page)
    press(page, "s")
    press(page, "u")
    assert shown(page) == second
    assert project.store.status().skipped == 0
    press(page, "u")
    assert shown(page) == first
    assert labels(project) == []
    assert page.locator("#undo").is_disabled()
    press(page, "2")
    assert labels(project) == [1]


def test_a_class_is_added_and_used(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    page.keyboard.press("a")
    page.keyboard.type("<b>okapi</b>")
    before = shown(page)
    page.keyboard.press("Enter")
    gone(page, before)
    assert page.locator("#classes button").last.inner_text().endswith("<b>okapi</b>")
    assert project.store.classes()[-1].name == "<b>okapi</b>"
    assert labels(project) == [2]
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.locator("#new")).to_be_hidden()
    press(page, "3")
    assert labels(project) == [2, 2]


def test_a_key_right_after_a_dialog_was_closed(chromium, watch, server, project):
    """Chromium leaves the focus in the hidden dialog until the next frame."""
    page = enter(watch.page(chromium), server, project)
    before = shown(page)
    page.keyboard.press("a")
    page.evaluate(
        """() => {
          const field = document.activeElement;
          document.getElementById("new").close();
          field.dispatchEvent(new KeyboardEvent("keydown", { key: "2", bubbles: true }));
        }"""
    )
    gone(page, before)
    assert labels(project) == [1]


def test_a_late_answer_does_not_bring_back_what_was(chromium, watch, server, project):
    """The state asked for before a class was added, which arrives after it."""
    page = enter(watch.page(chromium), server, project)
    late = []
    page.route("**/api/state", lambda route: route.continue_() if late else late.append((route, route.fetch())))
    while not late:
        page.wait_for_timeout(100)
    page.keyboard.press("a")
    page.keyboard.type("okapi")
    press(page, "Enter")
    route, response = late[0]
    with page.expect_request("**/api/state"):  # the page asks again when it has dealt with the late answer
        route.fulfill(response=response)
    assert page.locator("#classes button").count() == 3
    press(page, "3")
    assert labels(project) == [2, 2]


def test_no_class_changes_its_key_while_an_example_is_shown(chromium, watch, server, project):
    for name in ("okapi", "zebra"):
        project.store.add_class(name)
    page = enter(watch.page(chromium), server, project)
    project.store.merge_class(1, 0)
    project.store.add_class("yak")
    expect(page.locator("#classes button:disabled")).to_have_text(re.compile("dog"))
    expect(page.locator("#classes button")).to_have_count(5)
    page.keyboard.press("2")  # it is gone
    press(page, "3")
    assert labels(project) == [2]
    expect(page.locator("#classes button")).to_have_count(4)
    press(page, "2")
    assert labels(project) == [2, 2]


def test_a_late_guess_is_not_shown_under_another_example(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    late = []
    page.route("**/api/guess/*", lambda route: late.append((route, route.fetch())))
    page.keyboard.press("g")
    while not late:
        page.wait_for_timeout(100)
    press(page, "1")
    route, response = late[0]
    with page.expect_response("**/api/guess/*"):
        route.fulfill(response=response)
    settle(page)
    assert page.locator("#guessed").inner_text() == ""


def test_many_classes_are_searched(chromium, watch, server, project):
    for i in range(40):
        project.store.add_class(f"animal {i}")
    page = enter(watch.page(chromium), server, project)
    assert page.locator("#classes button").count() == 42
    page.keyboard.press("/")
    page.keyboard.type("ANIMAL 3")
    assert page.locator("#classes button").count() == 11
    assert page.locator("#classes button.first").inner_text().split() == ["Enter", "animal", "3"]
    press(page, "Enter")
    assert labels(project) == [5]
    assert page.locator("#classes button").count() == 42
    press(page, "2")  # the focus is back on the page: keys are keys again
    assert labels(project) == [5, 1]


def test_two_people_never_have_the_same_example(chromium, watch, server, project):
    ada = enter(watch.page(chromium), server, project, "Ada")
    bob = enter(watch.page(chromium), server, project, "Bob")
    assert shown(ada) != shown(bob)
    press(ada, "1")
    assert shown(ada) != shown(bob)
    for page in (ada, bob):  # each sees what the other has done
        expect(page.locator("#round-count")).to_have_text(f"1 of {PER_ROUND} labelled")
    bob_had = shown(bob)
    bob.goto("about:blank")  # whoever leaves gives the example back
    seen = set()
    for _ in range(PER_ROUND - 1):
        expect(ada.locator("#view img")).to_be_visible()
        seen.add(shown(ada))
        press(ada, "1")
    assert bob_had in seen


def test_the_lease_is_renewed_while_the_page_is_open(chromium, watch, server, project):
    page = watch.page(chromium)
    page.clock.install()
    enter(page, server, project)
    with page.expect_request("**/api/renew"):
        page.clock.fast_forward(31_000)


def test_a_label_is_sent_again_until_it_is_kept(chromium, watch, project):
    """The server goes away for a while; nothing is lost and nothing is kept twice."""
    page = watch.page(chromium)
    with running(project) as server:
        enter(page, server, project)
    page.keyboard.press("1")
    expect(page.locator("#trouble")).to_contain_text("not saved yet")
    assert labels(project) == []
    with running(project, port=int(server.rpartition(":")[2])):
        expect(page.locator("#trouble")).to_be_hidden()
        assert labels(project) == [0]
    page.close()
    watch.complaints[:] = [
        text for text in watch.complaints if "ERR_CONNECTION_REFUSED" not in text and "Failed to fetch" not in text
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_every_control_has_a_name_a_role_and_contrast(chromium, watch, server, project, dark, phone):
    page = watch.page(chromium, dark=dark, phone=phone)
    page.goto(f"{server}/login")
    assert faint(page) == []
    assert nameless(page) == []
    enter(page, server, project)
    page.keyboard.press("g")
    for path in ("/", "/dashboard", "/classes", "/item/0"):
        page.goto(f"{server}{path}")
        page.wait_for_load_state("networkidle")
        assert faint(page) == [], path
        assert nameless(page) == [], path
        width = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], path
    page.goto(server)
    page.wait_for_selector("#view > *")
    page.locator("#add").click()
    assert faint(page) == []
    assert nameless(page) == []


def test_the_tab_key_reaches_everything(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    press(page, "1")
    reached = reached_by_tab(page)
    assert {"view", "add", "skip", "undo", "guess", "Keyboard shortcuts", "Log out", "Dashboard"} <= reached
    assert any("cat" in one for one in reached)


def test_what_happens_is_said_to_screen_readers(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    assert page.locator("#said").get_attribute("role") == "status"
    assert page.locator("#trouble").get_attribute("role") == "alert"
    assert page.get_by_role("group", name="Classes").get_by_role("button", name="cat").count() == 1
    assert page.get_by_role("progressbar", name="Round").count() == 1
    press(page, "1")
    assert page.locator("#said").inner_text() == "Saved: cat."


def test_single_keys_can_be_turned_off(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    page.get_by_text("Keyboard shortcuts", exact=True).click()
    page.locator("#use-keys").uncheck()
    page.locator("#view").focus()
    page.keyboard.press("1")
    page.keyboard.press("s")
    settle(page)
    assert not [url for url in watch.asked if url.endswith(("/api/label", "/api/skip"))]
    assert project.store.status().left == PER_ROUND


def test_on_a_phone_the_thumb_is_enough(chromium, watch, server, project):
    page = enter(watch.page(chromium, phone=True), server, project)
    button = page.locator("#classes button").first
    box = button.bounding_box()
    assert box["height"] >= 44
    assert box["y"] + box["height"] <= 844  # without scrolling
    before = shown(page)
    button.tap()
    gone(page, before)
    assert labels(project) == [0]


def test_a_correction_is_made_from_the_dashboard(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    press(page, "1")
    page.get_by_role("link", name="Dashboard").click()
    page.locator(".sheet a", has_text="cat").click()
    page.locator("#class").select_option(label="dog")
    page.get_by_role("button", name="Correct").click()
    page.wait_for_selector("h2:has-text('dog')")
    assert labels(project) == [1]


def test_script_in_names_does_not_run(chromium, watch, server, project):
    project.store.add_class("<img src=x onerror=alert(1)>")
    page = enter(watch.page(chromium), server, project, "<script>alert(1)</script>")
    page.on("dialog", lambda dialog: watch.complaints.append("it ran") or dialog.dismiss())
    for path in ("/", "/dashboard", "/classes"):
        page.goto(f"{server}{path}")
        page.wait_for_load_state("networkidle")
    assert "<script>alert(1)</script>" in page.locator(".who").inner_text()


def test_a_revoked_person_is_sent_to_the_login(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    project.store.revoke("Ada")
    page.keyboard.press("1")
    page.wait_for_url("**/login")
    assert labels(project) == []
    watch.complaints[:] = [text for text in watch.complaints if "401" not in text]

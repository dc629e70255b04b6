"""The page in a real browser: what a person does, with the keyboard alone, on a phone, in the dark."""

from __future__ import annotations

import io
import re
from contextlib import suppress

import pytest
from PIL import Image
from playwright.sync_api import Error, expect

from web_browser import LOOKS, faint, nameless, reached_by_tab, wait_on
from web_project import PATIENCE, link, running

PER_ROUND = 4
PROJECT = {"per_round": PER_ROUND, "epochs": 20}
expect.set_options(timeout=1000 * PATIENCE)


def enter(page, server, project, name="Ada"):
    """Log in by the link and wait for the first example."""
    page.goto(link(server, project, name))
    is_seen(page)
    return page


def is_seen(page):
    """Wait until an example has been painted: before that it cannot be answered."""
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")


def shown(page) -> str:
    """Which example is on the page."""
    return page.locator("#view img").get_attribute("src")


def gone(page, example):
    """Wait until it is no longer shown, but another one is, or none."""
    expect(page.locator(f'#view img[src="{example}"]')).to_be_hidden()
    page.wait_for_selector("#desk:not([hidden])[data-seen]:not([data-seen='']), #waiting:not([hidden])")


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
    said = r"The model has been trained\. Accuracy: \d+ %, on 1 held-out example\. Here is the next batch\."
    assert re.fullmatch(said, page.locator("#said").inner_text())
    assert sorted(labels(project)) == [0, 0, 1, 1]
    # Now there are scores to say why, and a guess for those who ask.
    assert re.search(r"choice 1 of 4, \w+ -?[\d.e+-]+", page.locator("#why").inner_text())
    assert page.locator("#guessed").inner_text() == ""
    page.keyboard.press("g")
    expect(page.locator("#guessed")).to_have_text(re.compile("guess: (cat|dog)"))
    assert all(url.startswith(server) for url in watch.asked)


def test_what_people_wait_for_is_said_while_a_pool_is_prepared(chromium, watch, project, trainer):
    trainer.may_go_on.clear()  # it has begun to look at the pool, and does not get on
    with running(project, trainer=trainer) as server:
        page = enter(watch.page(chromium), server, project)
        expect(page.locator("#preparing")).to_contain_text("chosen meanwhile. 0 of 40 examples are prepared.")
        for _ in range(PER_ROUND):
            press(page, "1")
        expect(page.locator("#waiting-title")).to_have_text("Preparing the next examples")
        expect(page.locator("#waiting-text")).to_contain_text("0 of 40 examples are prepared. Before it chooses,")
        trainer.may_go_on.set()
        is_seen(page)


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
    with page.expect_request("**/api/state"):
        page.route("**/api/state", lambda route: route.continue_() if late else late.append(route))
    wait_on(page, lambda: late)
    response = late[0].fetch()
    page.keyboard.press("a")
    page.keyboard.type("okapi")
    press(page, "Enter")
    with page.expect_request("**/api/state"):  # the page asks again when it has dealt with the late answer
        late[0].fulfill(response=response)
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
    page.route("**/api/guess/*", lambda route: late.append(route))
    with page.expect_request("**/api/guess/*"):
        page.keyboard.press("g")
    wait_on(page, lambda: late)
    response = late[0].fetch()
    press(page, "1")
    with page.expect_response("**/api/guess/*"):
        late[0].fulfill(response=response)
    settle(page)
    assert page.locator("#guessed").inner_text() == ""


def test_many_classes_are_searched(chromium, watch, server, project):
    for i in range(40):
        project.store.add_class(f"animal {i}")
    page = enter(watch.page(chromium), server, project)
    assert page.locator("#classes button").count() == 42
    page.keyboard.press("/")
    page.keyboard.type("ANIMAL 3")  # 3, 30 to 39, and 13 and 23
    assert page.locator("#classes button").count() == 13
    assert page.locator("#classes button.first").inner_text().split() == ["Enter", "animal", "3"]
    press(page, "Enter")
    assert labels(project) == [5]
    assert page.locator("#classes button").count() == 42
    press(page, "1")  # the focus is back on the page: keys are keys again, and it is the last class used
    assert labels(project) == [5, 5]


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


def test_the_lease_is_renewed_by_activity_and_not_by_an_open_page(chromium, watch, server, project):
    page = watch.page(chromium)
    page.clock.install()
    enter(page, server, project)
    page.clock.fast_forward(31_000)
    page.clock.fast_forward(31_000)
    settle(page)
    asked = [url for url in watch.asked if url.endswith("/api/renew")]
    assert len(asked) <= 1  # of what was done until then
    page.mouse.move(200, 200)
    with page.expect_request("**/api/renew"):
        page.clock.fast_forward(31_000)


def test_an_idle_page_holds_up_nobody(chromium, watch, server, project):
    """Once a page that was only open kept its example for good."""
    idle = enter(watch.page(chromium), server, project, "Ada")
    item = int(shown(idle).split("/")[2])
    ada = next(person for person in project.store.people() if person.name == "Ada")
    project.store.renew(ada, item, seconds=0.0)  # two minutes later
    bob = enter(watch.page(chromium), server, project, "Bob")
    assert int(shown(bob).split("/")[2]) == item
    idle.keyboard.press("1")
    expect(idle.locator("#errors")).to_contain_text(f"Someone else has item {item} now; take another one.")
    watch.complaints[:] = [text for text in watch.complaints if "409" not in text]


def test_nothing_is_labelled_that_was_not_on_the_screen(chromium, watch, server, project):
    """With images withheld, four keys once made four labels, or four skips."""
    page = watch.page(chromium)
    held, free = [], []
    page.route("**/item/*/image", lambda route: route.continue_() if free else held.append(route))
    page.goto(link(server, project, "Ada"))
    expect(page.locator("#desk")).to_be_visible()
    wait_on(page, lambda: page.keyboard.press("1") or page.locator("#said").text_content())  # until keys are heard
    for key in "1212":
        page.keyboard.press(key)
    expect(page.locator("#said")).to_have_text("Not saved: this example was not on the screen yet.")
    for _ in range(4):
        page.keyboard.press("s")
    page.locator("#skip").click()
    expect(page.locator("#said")).to_have_text("Not skipped: this example was not on the screen yet.")
    expect(page.locator("#view")).to_have_text("Loading the image …")
    expect(page.locator("#view .loading")).to_be_visible()
    settle(page)
    assert labels(project) == []
    assert project.store.status().skipped == 0
    free.append(True)
    for route in held:
        route.continue_()
    is_seen(page)
    press(page, "1")
    assert labels(project) == [0]


def test_an_image_that_cannot_be_shown_can_only_be_skipped(chromium, watch, server, project):
    page = watch.page(chromium)
    page.route("**/item/*/image", lambda route: route.fulfill(status=404))
    page.goto(link(server, project, "Ada"))
    expect(page.locator("#view")).to_have_text("This image cannot be shown. Skip it.")
    page.wait_for_selector("#desk[data-broken]:not([data-broken=''])")
    page.keyboard.press("1")
    expect(page.locator("#said")).to_have_text("Not saved: this example cannot be shown.")
    settle(page)
    assert labels(project) == []
    page.keyboard.press("s")
    expect(page.locator("#round-count")).to_contain_text("1 skipped")
    watch.complaints[:] = [text for text in watch.complaints if "404" not in text]


def test_an_image_that_could_not_be_loaded_ahead_is_shown(chromium, watch, server, project):
    """A server that restarts, or a lost Wi-Fi: nothing is wrong with the images."""
    page = watch.page(chromium)
    failed = []

    def fail_once(route):
        if route.request.url in failed:
            return route.continue_()
        failed.append(route.request.url)
        return route.abort()

    page.route("**/item/*/image", fail_once)
    page.goto(link(server, project, "Ada"))
    is_seen(page)
    wait_on(page, lambda: len(failed) == PER_ROUND)
    for _ in range(PER_ROUND):
        press(page, "1")
    assert labels(project) == PER_ROUND * [0]
    watch.complaints[:] = [text for text in watch.complaints if "ERR_FAILED" not in text]


def test_a_lost_connection_says_nothing_about_an_image(chromium, watch, server, project):
    page = watch.page(chromium)
    lost = [True]
    page.route("**/item/*/image", lambda route: route.abort() if lost else route.continue_())
    page.goto(link(server, project, "Ada"))
    expect(page.locator("#view")).to_have_text("The server does not respond; trying again.")
    page.keyboard.press("s")
    expect(page.locator("#said")).to_have_text("Not skipped: this example was not on the screen yet.")
    lost.clear()
    is_seen(page)
    expect(page.locator("#view")).to_have_text("")
    assert project.store.status().skipped == 0
    watch.complaints[:] = [text for text in watch.complaints if "ERR_FAILED" not in text]


@pytest.mark.parametrize("answer", [{"status": 500}, {"status": 200, "body": "no image", "content_type": "image/png"}])
def test_an_image_that_fails_again_and_again_is_given_up(chromium, watch, server, project, answer):
    page = watch.page(chromium)
    page.route("**/item/*/image", lambda route: route.fulfill(**answer))
    page.goto(link(server, project, "Ada"))
    expect(page.locator("#view")).to_have_text("This image could not be loaded; trying again.")
    expect(page.locator("#view")).to_have_text("This image cannot be shown. Skip it.")
    page.wait_for_selector("#desk[data-broken]:not([data-broken=''])")
    page.keyboard.press("s")
    expect(page.locator("#round-count")).to_contain_text("1 skipped")
    watch.complaints[:] = [text for text in watch.complaints if "500" not in text]


def test_the_next_images_are_there_before_they_are_needed(chromium, watch, server, project):
    page = watch.page(chromium)
    loaded = []
    page.on("requestfinished", lambda request: request.url.endswith("/image") and loaded.append(request.url))
    with page.expect_event("requestfinished", lambda request: len(loaded) == PER_ROUND):
        enter(page, server, project)
    expect(page.locator("#view img")).to_be_visible()
    asked = len([url for url in watch.asked if url.endswith("/image")])
    assert asked == PER_ROUND  # this one and the next three
    for _ in range(2):
        press(page, "1")
    assert len(loaded) == PER_ROUND  # nothing had to be loaded again


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


@pytest.mark.parametrize(("dark", "phone"), LOOKS)
def test_every_control_has_a_name_a_role_and_contrast(chromium, watch, server, project, dark, phone):
    page = watch.page(chromium, dark=dark, phone=phone)
    page.goto(f"{server}/login")
    assert faint(page) == []
    assert nameless(page) == []
    enter(page, server, project)
    page.keyboard.press("g")
    for path in ("/", "/review", "/dashboard", "/classes", "/item/0"):
        watch.open(page, f"{server}{path}")
        assert faint(page) == [], path
        assert nameless(page) == [], path
        width = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], path
    page.goto(server)
    is_seen(page)
    page.keyboard.press("?")
    assert faint(page) == []
    assert nameless(page) == []
    page.locator("#help-close").click()
    if phone:
        page.locator("#more").click()
        assert faint(page) == []
    page.locator("#add").click()
    assert faint(page) == []
    assert nameless(page) == []


def test_the_tab_key_reaches_everything(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    press(page, "1")
    reached = reached_by_tab(page)
    assert {"view", "add", "skip", "undo", "guess", "help-open", "Log out", "Dashboard"} <= reached
    assert {"zoom-in", "zoom-out", "brightness", "contrast", "pixels", "zoom-reset"} <= reached
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
    page.keyboard.press("?")
    page.locator("#use-keys").uncheck()
    page.locator("#help-close").click()
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


def test_a_phone_with_many_classes_reaches_skip_without_scrolling(chromium, watch, server, project):
    for i in range(150):
        project.store.add_class(f"animal {i}")
    page = enter(watch.page(chromium, phone=True), server, project)
    for name in ("skip", "undo"):
        box = page.locator(f"#{name}").bounding_box()
        assert 0 <= box["y"] < box["y"] + box["height"] <= 844
    before = shown(page)
    page.locator("#skip").tap()
    gone(page, before)
    assert project.store.status().skipped == 1


SMALL_PHONES = [(360, 640), (375, 667), (390, 664)]


@pytest.mark.parametrize("classes", [3, 10, 150])
def test_on_a_small_phone_the_first_classes_are_in_view(chromium, watch, server, project, classes):
    """Once two rows of pages, the image and two rows of actions left no room for any."""
    for i in range(classes - 2):
        project.store.add_class(f"animal number {i}")
    page = enter(watch.page(chromium, phone=True), server, project)
    for width, height in SMALL_PHONES:
        page.set_viewport_size({"width": width, "height": height})
        bar = page.locator(".foot").bounding_box()
        assert bar["y"] + bar["height"] <= height
        assert bar["height"] <= 96
        for button in page.locator("#classes button").all()[:4]:
            box = button.bounding_box()
            assert box["height"] >= 44
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= bar["y"]
        assert page.locator("#view").bounding_box()["height"] >= 160
        assert page.evaluate("() => document.documentElement.scrollWidth") == width
    before = shown(page)
    page.locator("#classes button").nth(2).tap()
    gone(page, before)
    before = shown(page)
    page.locator("#skip").tap()
    gone(page, before)
    assert (labels(project), project.store.status().skipped) == ([2], 1)


def test_on_a_phone_the_other_actions_are_under_more(chromium, watch, server, project):
    page = enter(watch.page(chromium, phone=True), server, project)
    skip = page.locator("#skip").bounding_box()
    expect(page.locator("#flag")).to_be_hidden()
    page.get_by_role("button", name="More").tap()
    assert page.locator("#skip").bounding_box() == skip  # nothing moves under the thumb
    expect(page.locator("#more")).to_have_attribute("aria-expanded", "true")
    for name in ("add", "guide"):
        expect(page.locator(f"#{name}")).to_be_visible()
    page.locator("#flag").tap()
    expect(page.locator("#flag-it")).to_be_visible()


def test_on_a_phone_the_first_class_can_be_added(chromium, watch, server, project):
    """While there are no classes, the button for one is in view."""
    page = watch.page(chromium, phone=True)
    for call in ("next", "state"):  # the page asks for its state now and then
        page.route(f"**/api/{call}", lambda route: route.fulfill(json=route.fetch().json() | {"classes": []}))
    enter(page, server, project)
    expect(page.locator("#none")).to_be_visible()
    page.locator("#add").tap()
    expect(page.locator("#new")).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")  # the page may ask once more when the server is gone


def test_there_are_keys_for_thirty_classes(chromium, watch, server, project):
    for i in range(28):
        project.store.add_class(f"animal {i}")
    page = enter(watch.page(chromium), server, project)
    for key, label in (("0", 9), ("q", 10), ("m", 29)):
        press(page, key)
        assert labels(project)[-1] == label or label in labels(project)
    assert sorted(labels(project)) == [9, 10, 29]


def test_of_many_classes_the_recent_ones_come_first_and_keep_their_keys(chromium, watch, server, project):
    for i in range(60):
        project.store.add_class(f"animal {i}")
    page = enter(watch.page(chromium), server, project)
    assert page.locator("#classes kbd").count() == 0
    for name in ("animal 41", "animal 7"):
        page.keyboard.press("/")
        page.keyboard.type(name)
        press(page, "Enter")
    keys = page.locator("#classes button:has(kbd)")
    assert [text.split("\n") for text in keys.all_inner_texts()] == [["1", "animal 41"], ["2", "animal 7"]]
    press(page, "1")
    assert sorted(labels(project)) == [9, 43, 43]


def test_the_pressed_class_is_marked_at_once(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    held = []
    page.route("**/api/label", lambda route: held.append(route))
    page.keyboard.press("2")
    expect(page.locator("#classes .pressed")).to_have_text(re.compile("dog"))
    wait_on(page, lambda: held)
    held[0].continue_()
    expect(page.locator("#classes .pressed")).to_have_count(0)


def test_what_was_refused_stays_until_it_is_closed_and_moves_nothing(chromium, watch, server, project):
    """Once the background poll wiped it, after 66 ms to 2.6 s."""
    page = enter(watch.page(chromium), server, project)
    project.store.add_class("emu")
    item = int(shown(page).split("/")[2])
    place = page.locator("#skip").bounding_box()
    ada = next(person for person in project.store.people() if person.name == "Ada")
    project.store.label(ada, item, 1, "from-elsewhere")
    page.keyboard.press("1")
    expect(page.locator("#errors .note")).to_contain_text("is already labelled or skipped")
    with page.expect_response("**/api/state"):  # the poll
        pass
    with page.expect_response("**/api/state"):
        pass
    settle(page)
    expect(page.locator("#errors .note")).to_be_visible()
    now = page.locator("#skip").bounding_box()
    assert now["y"] == place["y"] or page.locator("#classes button").count() == 3
    page.keyboard.press("Escape")
    expect(page.locator("#errors .note")).to_have_count(0)
    watch.complaints[:] = [text for text in watch.complaints if "409" not in text]


def test_looking_closely(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    image = page.locator("#view img")
    style = "e => [e.style.transform, e.style.filter, e.classList.contains('pixels')]"
    assert image.evaluate(style)[0] == "translate(0px, 0px) scale(1)"
    with page.expect_request("**/full"):
        page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.locator("#brightness").fill("250")
    page.locator("#pixels").check()
    assert image.evaluate(style) == ["translate(60px, 0px) scale(1.5)", "brightness(250%) contrast(100%)", True]
    assert page.locator("#zoom-level").inner_text() == "150 %"
    page.locator("#view").focus()
    page.keyboard.press("Escape")
    assert page.locator("#zoom-level").inner_text() == "100 %"
    press(page, "1")
    assert image.evaluate(style)[1] == "brightness(250%) contrast(100%)"  # stays for the next ones
    page.locator("#zoom-reset").click()
    assert image.evaluate(style)[1] == "brightness(100%) contrast(100%)"


def test_on_a_phone_two_fingers_zoom_and_one_moves(chromium, watch, server, project):
    page = enter(watch.page(chromium, phone=True), server, project)
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers = page.context.new_cdp_session(page)

    def touch(kind, *places):
        points = [{"x": x + a, "y": y, "id": i} for i, a in enumerate(places)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -20, 20)
    for far in (25, 30, 35, 40):
        touch("touchMove", -far, far)
    touch("touchEnd")
    page.wait_for_function("() => document.getElementById('zoom-level').textContent === '200 %'")
    matrix = "e => [new DOMMatrix(e.style.transform)].flatMap((m) => [m.a, m.e, m.f])"
    assert page.locator("#view img").evaluate(matrix) == pytest.approx([2, 0, 0], abs=1e-6)
    touch("touchStart", 0)
    touch("touchMove", 12)
    touch("touchMove", 24)
    touch("touchEnd")
    page.wait_for_function(f"() => Math.abs(({matrix})(document.querySelector('#view img'))[1] - 24) < 1e-6")
    assert labels(project) == []


def test_on_a_phone_the_image_can_be_adjusted_too(chromium, watch, server, project):
    page = enter(watch.page(chromium, phone=True), server, project)
    expect(page.locator("#tools")).to_be_hidden()
    page.locator("#adjust").tap()
    assert page.locator("#adjust").get_attribute("aria-expanded") == "true"
    page.locator("#contrast").fill("200")
    assert page.locator("#view img").evaluate("e => e.style.filter") == "brightness(100%) contrast(200%)"
    page.locator("#adjust").tap()
    expect(page.locator("#contrast")).to_be_hidden()


def test_on_a_phone_a_tap_on_the_map_shows_the_example(chromium, watch, server, project):
    page = enter(watch.page(chromium, phone=True), server, project)
    watch.open(page, f"{server}/dashboard")
    dot = page.locator("#map circle").first
    item = dot.evaluate("e => e.point.item")
    dot.evaluate("e => e.scrollIntoView({ block: 'center' })")
    box = dot.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#map-item a")).to_have_attribute("href", f"/item/{item}")
    assert page.url.endswith("/dashboard")


def test_classes_are_renamed_and_merged(chromium, watch, server, project):
    project.store.add_class("kitten")
    page = enter(watch.page(chromium), server, project)
    page.goto(f"{server}/classes")
    page.get_by_role("button", name="Change kitten").click()
    page.locator("#rename-name").fill("young cat")
    page.keyboard.press("Enter")
    expect(page.get_by_role("rowheader", name="young cat")).to_be_visible()
    page.get_by_role("button", name="Change young cat").click()
    assert faint(page) == []
    assert nameless(page) == []
    page.locator("#merge-into").select_option(label="cat")
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.get_by_text("young cat counts as cat")).to_be_visible()


def test_many_answers_are_found_and_changed_under_review(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    for key in "11s":
        press(page, key)
    page.get_by_role("link", name="Dashboard").click()
    page.locator("th a", has_text="cat").click()  # its bar leads there
    expect(page.locator("#grid li")).to_have_count(2)
    page.wait_for_load_state()  # its script has run
    page.locator("#select-all").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#chosen")).to_have_text("2 selected")
    page.locator("#new-label").select_option(label="dog")
    page.get_by_role("button", name="Relabel").click()
    expect(page.locator("#grid li")).to_have_count(0)
    page.wait_for_load_state()
    assert labels(project) == [1, 1]
    page.locator("select[name=label]").select_option("")
    page.locator("select[name=show]").select_option("skipped")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#grid li")).to_have_count(1)
    page.wait_for_load_state()
    page.locator("#grid input").focus()
    page.keyboard.press("Space")
    page.locator("#comment-text").fill("too dark")
    page.keyboard.press("Enter")
    expect(page.locator("#grid .said")).to_have_text("too dark")
    page.wait_for_load_state()
    page.get_by_role("button", name="Relabel").click()  # no label was chosen, so the browser asks for one
    page.locator("#new-label").select_option(label="cat")
    page.get_by_role("button", name="Relabel").click()
    expect(page.locator("#review-trouble")).to_have_text("Select something first.")
    page.locator("#grid input").check()
    page.get_by_role("button", name="Relabel").click()
    expect(page.locator("#grid li")).to_have_count(0)
    assert sorted(labels(project)) == [0, 1, 1]


def test_the_filters_of_review_wait_for_the_button(chromium, watch, server, project):
    """A page that is loaded again at every arrow key takes the focus from the list that somebody walks through."""
    page = enter(watch.page(chromium), server, project)
    watch.open(page, f"{server}/review")
    page.evaluate("() => { window.same = true; }")
    page.locator("select[name=show]").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
        settle(page)
    assert page.evaluate("() => [window.same, document.activeElement.name, document.activeElement.selectedIndex]") == [
        True,
        "show",
        2,
    ]
    chosen = page.locator("select[name=show]").input_value()
    page.get_by_role("button", name="Show", exact=True).press("Enter")
    page.wait_for_url(f"**/review?*show={chosen}&**")


def test_examples_of_a_class_are_chosen_under_review(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    for key in "112":
        press(page, key)
    page.goto(f"{server}/review?label=0")
    page.wait_for_load_state("networkidle")
    expect(page.locator("#example-of")).to_have_value("0")  # what is looked at
    page.locator("#select-all").click()
    page.get_by_role("button", name="Use as example").click()
    expect(page.locator("#chosen")).to_have_text("2 are now examples of cat.")
    cats = [item for item, label in project.store.labels().items() if label == 0]
    assert sorted(project.store.guidelines()[0].examples) == cats
    page.goto(server)
    is_seen(page)
    page.keyboard.press("c")
    expect(page.locator("#guidelines-list h3")).to_have_text("cat")
    expect(page.locator("#guidelines-list img")).to_have_count(2)


def test_tall_images_are_shown_whole_in_a_grid(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    Image.new("RGB", (100, 300)).save(tall := io.BytesIO(), "PNG")
    page.route("**/thumb", lambda route: route.fulfill(body=tall.getvalue(), content_type="image/png"))
    page.goto(f"{server}/review")
    page.wait_for_function("() => document.querySelector('#grid img').complete")
    image, frame = (page.locator(place).first.bounding_box() for place in ("#grid img", "#grid .thumb"))
    assert image["height"] <= frame["height"]


def test_script_in_names_does_not_run(chromium, watch, server, project):
    project.store.add_class("<img src=x onerror=alert(1)>")
    page = enter(watch.page(chromium), server, project, "<script>alert(1)</script>")
    page.on("dialog", lambda dialog: watch.complaints.append("it ran") or dialog.dismiss())
    for path in ("/", "/dashboard", "/classes"):
        watch.open(page, f"{server}{path}")
    assert "<script>alert(1)</script>" in page.locator(".who").inner_text()


def test_a_revoked_person_is_sent_to_the_login(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    project.store.revoke("Ada")
    with suppress(Error):  # what the page asks for by itself may have sent it there already
        page.keyboard.press("1")
    page.wait_for_url("**/login")
    assert labels(project) == []
    watch.complaints[:] = [text for text in watch.complaints if "401" not in text]


def test_ones_own_link_leads_on_when_it_is_opened_again(chromium, watch, server, project):
    """It once said that one was not logged in, and that the link was not valid."""
    page, opened = watch.page(chromium), link(server, project, "Ada")
    page.goto(opened)
    is_seen(page)
    page.goto("about:blank")
    page.goto(opened)
    expect(page.locator("main")).to_contain_text("You are logged in on this device as Ada")
    expect(page.locator("main")).not_to_contain_text("You are not logged in")
    assert page.url == f"{server}/login"  # the token is not in the history
    page.get_by_role("button", name="Use the link, and stop being Ada").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid any more")
    page.get_by_role("link", name="Go to the labelling page").click()
    is_seen(page)
    assert "Ada" in page.locator(".who").inner_text()
    watch.complaints[:] = [text for text in watch.complaints if "401" not in text]


def test_a_login_link_changes_nobody_without_asking(chromium, watch, server, project):
    """Somebody may have sent their own link, so that what one does is recorded as theirs."""
    page = watch.page(chromium)
    enter(page, server, project)
    page.goto("about:blank")
    page.goto(link(server, project, "Mallory"))
    button = page.get_by_role("button", name="Use the link, and stop being Ada")
    expect(button).to_be_visible()
    assert [person.name for person in project.store.logged_in()] == ["Ada"]
    page.goto(f"{server}/")
    is_seen(page)
    assert "Ada" in page.locator(".who").inner_text()
    page.goto("about:blank")
    page.goto(f"{server}/login#token={project.store.invite('Mallory')}")
    button.click()  # who sits down at the same computer says so
    is_seen(page)
    assert "Mallory" in page.locator(".who").inner_text()


def test_the_second_half_of_a_double_press_answers_nothing(chromium, watch, server, project):
    page = watch.page(chromium)
    enter(page, server, project)
    first = shown(page)
    page.locator("#classes button").first.dblclick()
    gone(page, first)
    assert len(labels(project)) == 1
    second = shown(page)
    # Keys that come as soon as an example is painted: nobody has seen it.
    page.evaluate("""() => {
      const desk = document.getElementById("desk");
      const send = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      window.presses = 0;
      new MutationObserver(() => {
        if (desk.dataset.seen === "") requestAnimationFrame(() => requestAnimationFrame(() => {
          for (const key of ["1", "s"]) send(key);
          window.presses += 1;
        }));
      }).observe(desk, { attributes: true, attributeFilter: ["data-seen"] });
    }""")
    page.keyboard.press("2")
    gone(page, second)
    assert page.evaluate("() => window.presses") == 1
    settle(page)
    assert len(labels(project)) == 2
    assert project.store.status().skipped == 0
    page.keyboard.press("1")  # a moment later it is answered
    wait_on(page, lambda: len(labels(project)) == 3)


def test_after_the_login_comes_the_page_that_was_wanted(chromium, watch, server, project):
    page = watch.page(chromium)
    page.goto(f"{server}/review?show=labelled&task=0")
    page.locator("#token").fill(project.store.add_person("Ada"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server}/review?show=labelled&task=0")
    project.store.revoke("Ada")
    page.evaluate("() => { import('/static/api.js').then((api) => api.get('/api/state')).catch(() => {}) }")
    page.wait_for_url("**/login?next=%2Freview%3Fshow%3Dlabelled%26task%3D0")
    page.goto(f"{page.url}#token={project.store.add_person('Grace')}")
    page.wait_for_url(f"{server}/review?show=labelled&task=0")
    watch.complaints[:] = [text for text in watch.complaints if "401" not in text]


def test_review_by_keys_alone(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    for _ in range(3):
        press(page, "1")
    ada = project.store.people()[0]
    labelled = sorted(project.store.labels())
    project.store.comment(ada, labelled[:1], "long " * 100, "a-long-comment")
    watch.open(page, f"{server}/review?show=labelled&sort=old")
    items = [int(box) for box in page.locator("#grid input").evaluate_all("all => all.map((box) => box.value)")]
    heights = page.locator("#grid li").evaluate_all("all => all.map((cell) => cell.firstElementChild.offsetHeight)")
    assert len(set(heights)) == 1
    assert page.locator("#grid details").bounding_box()["height"] < 100
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#large-view img")).to_have_attribute("src", f"/item/{items[1]}/image")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#large-view img")).to_have_attribute("src", f"/item/{items[2]}/image")
    page.keyboard.press("x")
    focused = page.evaluate("""() => {
      const escape = new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true });
      document.activeElement.dispatchEvent(escape);
      return document.activeElement.value;
    }""")
    assert focused == str(items[2])  # at once: the next key must not meet the window that closes
    page.keyboard.press("e")
    expect(page.locator("#large-view img")).to_have_attribute("src", f"/item/{items[2]}/image")
    page.keyboard.press("Escape")
    expect(page.locator("#large")).to_be_hidden()
    expect(page.locator("#chosen")).to_have_text("1 selected")
    page.keyboard.press("l")
    page.keyboard.type("dog")
    keyboard = page.keyboard
    with page.expect_navigation():
        keyboard.press("Tab")
        keyboard.press("Enter")
    assert project.store.labels()[items[2]] == 1
    with page.expect_navigation():
        page.keyboard.press("u")
    assert project.store.labels()[items[2]] == 0
    page.keyboard.press("/")
    page.keyboard.type("LONG")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("#grid input")).to_have_count(1)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()


def test_a_reason_for_skipping_is_one_key(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    before = shown(page)
    page.keyboard.press("Shift+S")
    expect(page.locator("#skip-it")).to_be_visible()
    page.keyboard.press("2")
    gone(page, before)
    expect(page.locator("#said")).to_have_text("Skipped: None of the classes.")
    page.keyboard.press("Shift+S")
    page.locator("#skip-reason").fill("half of it is missing")
    before = shown(page)
    page.keyboard.press("Enter")
    gone(page, before)
    reasons = [answer.reason for answer in project.store.every_answer()]
    assert reasons == ["None of the classes", "half of it is missing"]


def test_digits_are_keys_of_any_keyboard(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    french = {"key": "\u00e9", "code": "Digit2", "bubbles": True}
    russian = {"key": "\u044b", "code": "KeyS", "bubbles": True}
    for event in (french, russian):
        before = shown(page)
        page.evaluate("event => document.body.dispatchEvent(new KeyboardEvent('keydown', event))", event)
        gone(page, before)
    assert [(answer.kind, answer.class_id) for answer in project.store.every_answer()] == [("label", 1), ("skip", None)]


def test_an_image_cannot_be_moved_out_of_sight(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    page.keyboard.press("+")
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowUp")
    inside = """() => {
      const [view, image] = ['#view', '#view img'].map((it) => document.querySelector(it).getBoundingClientRect());
      return [image.left <= view.left + 9, image.right >= view.right - 9];
    }"""
    assert page.evaluate(inside) == [True, True]


@pytest.mark.parametrize("path", ["/review", "/classes"])
def test_pages_say_when_the_server_is_gone_and_when_it_is_back(chromium, watch, server, project, path):
    page = enter(watch.page(chromium), server, project)
    watch.open(page, f"{server}{path}")
    page.route("**/api/changes", lambda route: route.abort())
    expect(page.locator("#gone")).to_contain_text("The server does not respond")
    page.unroute("**/api/changes")
    expect(page.locator("#gone")).to_have_text("The server is back.")
    expect(page.locator("#gone")).to_be_hidden()
    watch.complaints.clear()  # of the requests that were lost


@pytest.mark.parametrize("size", [(1280, 800), (1366, 768), (1280, 720), (844, 390)])
def test_with_many_classes_what_is_said_and_the_actions_are_on_the_screen(chromium, watch, server, project, size):
    for i in range(60):
        project.store.add_class(f"animal {i}")
    page = watch.page(chromium)
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    enter(page, server, project)
    page.locator("#classes button").first.click()
    expect(page.locator("#said")).to_have_text("Saved: cat.")
    is_seen(page)
    for element in ("#said", "#skip", "#undo", "#guess", "#view img", "#classes button >> nth=0"):
        box = page.locator(element).bounding_box()
        assert box["y"] >= 0, element
        assert box["y"] + box["height"] <= size[1], element
    assert page.evaluate("() => scrollY") == 0


def test_a_class_has_the_same_mark_on_every_page(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    for _ in range(3):
        press(page, "2")
    colour = "element => getComputedStyle(element)"
    seen = {page.locator("#classes button .mark").nth(1).evaluate(f"{colour}.backgroundColor")}
    for path, mark in (("/review?label=1", "#grid .mark"), ("/classes", "tbody .mark >> nth=1")):
        watch.open(page, f"{server}{path}")
        seen.add(page.locator(mark).first.evaluate(f"{colour}.backgroundColor"))
    watch.open(page, f"{server}/dashboard")
    page.wait_for_selector("#map .labelled")
    seen.add(page.locator("#map .labelled").first.evaluate(f"{colour}.fill"))
    seen.add(page.locator("#classes-card .mark").nth(1).evaluate(f"{colour}.backgroundColor"))
    assert seen == {"rgb(213, 94, 0)"}

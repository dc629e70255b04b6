"""The gallery: guesses in groups; the wrong ones are struck out, the rest is confirmed by one key."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from accuacl.labeling.project import NewItems, Project, make
from accuacl.labeling.store import Pick
from web_browser import LOOKS, faint, nameless, reached_by_tab, wait_on
from web_project import PATIENCE, TestTrainer, link, no_time_passes, running, wait_until

expect.set_options(timeout=1000 * PATIENCE)
COUNT = 8
PROJECT = {"per_round": COUNT}


class Idle(TestTrainer):
    """Does nothing: the round and its guesses are made by the test."""

    def _check(self) -> None:
        pass

    def has_chosen(self) -> bool:
        return True


def offer(project, count=COUNT, guess=lambda item: item % 2, round=0):
    first = 20 * round
    picks = [Pick(first + i, i, {}, guess(i), 0.9 - i / 20) for i in range(count)]
    project.store.open_round(0, round, picks)


@pytest.fixture
def trainer(project):
    """Chooses nothing: the test has."""
    offer(project)
    return Idle(project)


def confirm(client, labels, request="a-request"):
    said = {"labels": [{"item": item, "class_id": id} for item, id in labels.items()], "request": request}
    return client.post("/api/gallery/label", json=said)


def test_the_batch_comes_in_groups_and_the_surest_first(client, project):
    view = client.post("/api/gallery", json={}).json()
    assert view["guesses"] is True
    assert [(g["class_id"], g["name"], [i["item"] for i in g["items"]]) for g in view["groups"]] == [
        (0, "cat", [0, 2, 4, 6]),
        (1, "dog", [1, 3, 5, 7]),
    ]
    assert view["groups"][0]["items"][0] == {"item": 0, "kind": "image", "confidence": 0.9, "image": "/item/0/thumb"}
    project.store.merge_class(1, 0)
    (group,) = client.post("/api/gallery", json={}).json()["groups"]
    assert (group["name"], len(group["items"])) == ("cat", COUNT)


def test_guesses_at_chance_level_are_not_offered(client, project):
    """A model that has learned nothing gives each of four classes 25 %."""
    for name in ("cow", "pig"):
        project.store.add_class(name)
    for item in range(COUNT):
        project.store.skip(project.store.people()[0], item, f"skip-{item}")
    project.store.close_round(0, 0)
    picks = [Pick(20 + i, i, {}, i % 4, 0.25 + 0.01 * (i % 3)) for i in range(COUNT)]
    project.store.open_round(0, 1, [*picks, Pick(30, COUNT, {}, 2, 0.6)])
    view = client.post("/api/gallery", json={}).json()
    assert [(group["name"], [cell["item"] for cell in group["items"]]) for group in view["groups"]] == [("cow", [30])]
    confirm(client, {30: 2}, "of-the-only-one")
    view = client.post("/api/gallery", json={}).json()
    assert (view["groups"], view["state"]["phase"]) == ([], "labelling")  # the others are labelled one by one


def test_labels_are_saved_together_once_and_undone(client, project):
    client.post("/api/gallery", json={})
    first, again = (confirm(client, {0: 0, 2: 0, 99: 0}).json() for _ in range(2))
    assert first == again
    assert first["saved"] == [0, 2]
    assert first["refused"] == ["Item 99 has not been picked; label one that has."]
    assert first["state"]["labelled"] == 2
    undone = client.post("/api/gallery/undo", json={"batch": "a-request", "request": "undo-it-all"}).json()
    assert undone["undone"] == [0, 2]
    assert project.store.labels() == {}
    assert client.post("/api/gallery/renew", json={"items": [0, 99]}).json() == {"lost": [99]}
    client.post("/api/gallery/release", json={"items": list(range(COUNT))})
    assert project.store.status().leased == 0


def test_every_label_of_a_batch_counts_against_the_limit(client, project, monkeypatch):
    """A person may send 200 requests at once, and so 200 labels."""
    no_time_passes(monkeypatch)
    statuses = [confirm(client, dict.fromkeys(range(100), 0), f"request-{i}").status_code for i in range(3)]
    assert statuses == [200, 200, 429]


@pytest.mark.parametrize(
    "labels", [[], [{"item": 0, "class_id": 0}] * 101, [{"item": -1, "class_id": 0}], [{"item": 0}], "all"]
)
def test_malformed_batches_are_refused(client, labels):
    assert client.post("/api/gallery/label", json={"labels": labels, "request": "a-request"}).status_code == 422
    long = {"labels": [{"item": 0, "class_id": 0}], "request": "x" * 91}
    assert client.post("/api/gallery/label", json=long).status_code == 422


def test_a_guess_that_was_shown_is_found_in_review(client, project):
    client.post("/api/gallery", json={})
    confirm(client, {0: 0, 2: 1})
    page = client.get("/review?show=guessed").text
    assert page.count('name="item"') == 2
    assert page.count("(saw the guess)") == 2
    history = client.get("/item/0").text
    assert "was shown the model&#39;s guess: cat" in history


def test_the_guess_that_somebody_asks_for_is_recorded(client, project):
    item = client.post("/api/next", json={}).json()["pick"]["item"]
    client.post("/api/label", json={"item": item, "class_id": 0, "request": f"request-{item}"})
    item = client.post("/api/next", json={}).json()["pick"]["item"]
    assert client.get(f"/api/guess/{item}").json()["name"] == "dog"
    client.post("/api/label", json={"item": item, "class_id": 0, "request": f"request-{item}"})
    assert project.store.guesses_shown() == {item: 1}


# In the browser


def enter(page, server, project, name="Ada"):
    page.goto(link(server, project, name))
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    page.goto(f"{server}/gallery")
    page.wait_for_function("() => document.querySelectorAll('#groups li[data-seen=yes]').length > 0")
    all_seen(page)
    return page


def all_seen(page):
    page.wait_for_function("() => !document.querySelector('#groups li[data-seen=\"\"]')")
    ready(page)


def ready(page):
    """What has been drawn has been on the screen for a moment, so that it can be confirmed."""
    page.wait_for_selector("#groups[data-ready=yes]", state="attached")


def shown(page):
    return page.eval_on_selector_all("#groups li", "all => all.map((one) => Number(one.dataset.item))")


def saved(page, count, name):
    expect(page.locator("#said")).to_have_text(f"Saved: {count} as {name}.")
    ready(page)


def test_the_wrong_ones_are_struck_out_and_the_rest_confirmed_by_keys(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    assert shown(page) == [0, 2, 4, 6, 1, 3, 5, 7]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("Space")  # taken back
    page.keyboard.press("Enter")
    saved(page, 3, "cat")
    assert project.store.labels() == {0: 0, 4: 0, 6: 0}
    expect(page.locator("#struck-title")).to_have_text("1 example is struck out")
    page.keyboard.press("ArrowDown")  # the focus is on the next group, which has one row
    page.keyboard.press("Enter")
    saved(page, 4, "dog")
    assert project.store.labels() == {0: 0, 4: 0, 6: 0, 1: 1, 3: 1, 5: 1, 7: 1}
    expect(page.locator("#one-by-one")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_selector("#desk[data-seen='2']")  # it is the first to be labelled now
    page.keyboard.press("2")
    expect(page.locator("#waiting")).to_be_visible()
    assert project.store.labels()[2] == 1
    assert set(project.store.guesses_shown()) == set(range(COUNT))
    assert all(url.startswith(server) for url in watch.asked)


def test_a_click_strikes_out_and_what_was_confirmed_is_undone(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    page.locator("#groups li[data-item='0'] img").click()
    page.get_by_role("button", name="Confirm 3 as cat").click()
    saved(page, 3, "cat")
    page.locator("#undo").click()
    expect(page.locator("#said")).to_have_text("Undone: 3.")
    assert project.store.labels() == {}
    all_seen(page)
    assert shown(page) == [2, 4, 6, 1, 3, 5, 7]  # 0 stays struck out
    page.get_by_role("button", name="Strike out the others of cat instead").click()
    page.get_by_role("button", name="Set all of cat aside").click()
    expect(page.locator("#struck-title")).to_have_text("4 examples are struck out")
    assert project.store.labels() == {}


def test_a_double_press_confirms_one_group(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    button = page.get_by_role("button", name="Confirm 4 as cat")
    place = button.bounding_box()
    button.dblclick()
    saved(page, 4, "cat")
    assert project.store.labels() == dict.fromkeys((0, 2, 4, 6), 0)
    other = page.get_by_role("button", name="Confirm 4 as dog")
    assert other.bounding_box()["y"] > place["y"] + 40  # it has not come to lie under the pointer
    page.mouse.move(place["x"] - 200, place["y"] + 100)
    page.wait_for_function(
        f"() => document.querySelector('#groups .main').getBoundingClientRect().y < {place['y'] + 40}"
    )
    page.keyboard.press("u")
    expect(page.locator("#said")).to_have_text("Undone: 4.")
    all_seen(page)
    page.evaluate("""() => {
      const box = document.querySelector("#groups input");
      box.focus();
      for (const _ of [1, 2]) box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    }""")
    saved(page, 4, "cat")
    page.evaluate("""() => document.querySelector("#groups input").dispatchEvent(
      new KeyboardEvent("keydown", { key: "Enter", bubbles: true }))""")
    saved(page, 4, "dog")  # once it has been on the screen for a moment


def test_small_groups_stand_side_by_side_and_stay_where_they_are(chromium, watch, server, project):
    grace = project.store.person_of(project.store.add_person("Grace"))
    for item in (0, 1):
        project.store.label(grace, item, item, f"request-{item}")
    page = enter(watch.page(chromium), server, project)
    all_seen(page)
    places = [group.bounding_box() for group in page.locator("#groups .group").all()]
    assert [round(box["y"] - places[0]["y"]) for box in places] == [0, 0]
    assert places[1]["x"] > places[0]["x"] + places[0]["width"]
    page.get_by_role("button", name="Confirm 3 as cat").dblclick()
    saved(page, 3, "cat")
    assert page.locator("#groups .group").bounding_box() == places[1]  # the pointer has not moved
    assert sorted(project.store.labels()) == [0, 1, 2, 4, 6]
    page.keyboard.press("Enter")
    saved(page, 3, "dog")


def test_a_wrong_one_is_given_its_class_in_place_by_keys(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("2")  # example 2 is a dog
    expect(page.get_by_role("button", name="Confirm 3 as cat, 1 as another class")).to_be_visible()
    page.keyboard.press("1")  # no, it is what the model says
    expect(page.get_by_role("button", name="Confirm 4 as cat", exact=True)).to_be_visible()
    page.keyboard.press("2")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("/")
    expect(page.get_by_label("Class of example 4", exact=True)).to_be_focused()
    page.keyboard.type("dog")
    page.keyboard.press("Enter")  # back to the example
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")  # example 6 is left for later
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("Saved: 1 as cat, 2 as dog.")
    assert project.store.labels() == {0: 0, 2: 1, 4: 1}
    expect(page.locator("#struck-title")).to_have_text("1 example is struck out")
    page.keyboard.press("u")
    expect(page.locator("#said")).to_have_text("Undone: 3.")
    expect(page.get_by_role("button", name="Confirm 1 as cat, 2 as another class")).to_be_visible()  # as before


def test_a_wrong_one_is_given_its_class_in_place_by_the_pointer(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    page.locator("#groups li[data-item='0'] img").click()
    before = page.locator("#groups li[data-item='2']").bounding_box()
    page.get_by_label("Class of example 0", exact=True).select_option(label="dog")
    assert page.locator("#groups li[data-item='2']").bounding_box() == before  # nothing moves under the pointer
    page.get_by_role("button", name="Strike out the others of cat instead").click()  # it keeps its class
    page.get_by_role("button", name="Confirm 1 as another class").click()
    saved(page, 1, "dog")
    assert project.store.labels() == {0: 1}
    expect(page.locator("#struck-title")).to_have_text("3 examples are struck out")


def test_nothing_is_confirmed_that_was_not_on_the_screen(chromium, watch, server, project):
    page = watch.page(chromium)
    held, free = {}, []
    page.route(
        "**/item/*/thumb",
        lambda route: route.continue_() if free else held.setdefault(route.request.url.split("/")[-2], route),
    )
    page.goto(link(server, project, "Ada"))
    page.wait_for_selector("#desk:not([hidden])")
    page.goto(f"{server}/gallery")
    page.wait_for_selector("#groups li")
    ready(page)
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("4 not saved: they were not on the screen yet.")
    assert project.store.labels() == {}
    page.wait_for_function("() => document.querySelectorAll('#groups img').length === 8")
    wait_on(page, lambda: "2" in held)
    with page.expect_response("**/item/2/thumb"):
        held["2"].continue_()
    page.wait_for_selector("#groups li[data-item='2'][data-seen='yes']")
    ready(page)
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("3 not saved: they were not on the screen yet.")
    assert project.store.labels() == {2: 0}
    free.append(True)
    for item, route in held.items():
        if item != "2":
            route.continue_()
    all_seen(page)
    page.keyboard.press("Enter")
    saved(page, 3, "cat")


def test_what_lies_below_the_screen_is_not_confirmed(chromium, watch, server, project):
    page = watch.page(chromium)
    page.set_viewport_size({"width": 1280, "height": 480})
    page.goto(link(server, project, "Ada"))
    page.wait_for_selector("#desk:not([hidden])")
    page.goto(f"{server}/gallery")
    page.wait_for_selector("#groups li[data-item='0'][data-seen='yes']")

    def told(item):
        return "guess" in [event.kind for event in project.store.history(item)]

    wait_until(lambda: told(0))  # it is recorded that the guess was shown, of what was on the screen
    assert not told(7)
    page.get_by_role("button", name="Confirm 4 as dog").evaluate("(button) => button.click()")
    expect(page.locator("#said")).to_contain_text("not saved: they were not on the screen yet.")
    assert 1 not in project.store.labels()
    page.locator("#groups li[data-item='7']").scroll_into_view_if_needed()
    wait_until(lambda: told(7))


def test_an_image_that_cannot_be_shown_is_struck_out(chromium, watch, server, project):
    page = watch.page(chromium)
    page.route("**/item/0/thumb", lambda route: route.fulfill(status=404))
    page.goto(link(server, project, "Ada"))
    page.wait_for_selector("#desk:not([hidden])")
    page.goto(f"{server}/gallery")
    expect(page.locator("#groups li[data-item='0']")).to_contain_text("This image cannot be shown.")
    expect(page.locator("#groups li[data-item='0'] input")).to_be_checked()
    expect(page.locator("#groups li[data-item='0'] select")).to_have_count(0)  # nobody has seen what it is
    expect(page.get_by_role("button", name="Confirm 3 as cat")).to_be_visible()
    watch.complaints[:] = [text for text in watch.complaints if "404" not in text]


def test_an_image_is_loaded_again_after_a_lost_connection(chromium, watch, server, project):
    page = watch.page(chromium)
    lost = [True]
    page.route("**/item/0/thumb", lambda route: route.abort() if lost else route.continue_())
    page.goto(link(server, project, "Ada"))
    page.wait_for_selector("#desk:not([hidden])")
    page.goto(f"{server}/gallery")
    expect(page.locator("#groups li[data-item='0']")).to_contain_text("The server does not respond; trying again.")
    expect(page.locator("#groups li[data-item='0'] input")).not_to_be_checked()
    lost.clear()
    all_seen(page)
    expect(page.locator("#groups li[data-item='0'] img")).to_be_visible()
    expect(page.locator("#groups")).not_to_contain_text("trying again")
    watch.complaints[:] = [text for text in watch.complaints if "ERR_FAILED" not in text]


def test_a_label_that_somebody_else_gave_is_said(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    ada = project.store.people()[0]
    project.store.label_batch(ada, {0: 1}, "in-another-tab")
    page.keyboard.press("Enter")
    expect(page.locator("#errors")).to_contain_text("Item 0 is already labelled or skipped")
    saved(page, 3, "cat")
    assert project.store.labels() == {0: 1, 2: 0, 4: 0, 6: 0}


def test_the_first_round_is_labelled_one_by_one_until_there_are_guesses(chromium, watch, project):
    offer(project, guess=lambda item: None)
    with running(project, trainer=Idle(project)) as server:
        page = watch.page(chromium)
        page.goto(link(server, project, "Ada"))
        page.wait_for_selector("#desk:not([hidden])")
        page.goto(f"{server}/gallery")
        expect(page.locator("#no-guesses")).to_be_visible()
        assert page.locator("#no-guesses a").get_attribute("href") == "/"
        assert faint(page) == []
        assert nameless(page) == []
        ada = project.store.people()[0]
        project.store.label_batch(ada, dict.fromkeys(range(COUNT), 0), "the-first-round")
        project.store.close_round(0, 0)
        offer(project, round=1)  # noticed by itself
        expect(page.locator("#groups li")).to_have_count(COUNT)
        page.goto("about:blank")


def test_leases_are_renewed_by_activity_and_given_back(chromium, watch, server, project):
    page = watch.page(chromium)
    page.clock.install()
    enter(page, server, project)
    assert project.store.status().leased == COUNT
    page.mouse.move(200, 200)
    with page.expect_request("**/api/gallery/renew"):
        page.clock.fast_forward(31_000)
    page.goto(f"{server}/review")
    wait_until(lambda: project.store.status().leased == 0)


@pytest.mark.parametrize(("dark", "phone"), LOOKS)
def test_every_control_has_a_name_and_contrast(chromium, watch, server, project, dark, phone):
    page = watch.page(chromium, dark=dark, phone=phone)
    page.goto(link(server, project, "Ada"))
    page.wait_for_selector("#desk:not([hidden])")
    page.goto(f"{server}/gallery")
    page.wait_for_selector("#groups li[data-item='0'][data-seen='yes']")
    page.locator("#groups li[data-item='0'] img").click()
    assert faint(page) == []
    assert nameless(page) == []
    width = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    page.keyboard.press("?")
    assert faint(page) == []
    assert nameless(page) == []


def test_the_tab_key_reaches_everything(chromium, watch, server, project):
    page = enter(watch.page(chromium), server, project)
    page.keyboard.press("i")  # all of the first group
    page.keyboard.press("Enter")
    expect(page.locator("#struck")).to_be_visible()
    reached = reached_by_tab(page)
    assert {"help-open", "one-by-one", "Gallery", "Log out"} <= reached
    assert any(re.match("Confirm 4", one) for one in reached)
    assert "Invert" in reached


@pytest.mark.parametrize("kind", ["texts", "vectors"])
def test_texts_and_records_are_lists(chromium, watch, tmp_path, kind):
    names = [f"row {i}" for i in range(6)]
    texts = [f"<b>text {i}</b>\n" + "a long line\n" * (60 * (i == 1)) for i in range(6)] if kind == "texts" else None
    vectors = np.eye(6, dtype=np.float32) if kind == "vectors" else None
    shown_fields = [{"amount": i / 3, "country": "<i>"} for i in range(6)] if kind == "vectors" else None
    settings = make({"kind": kind, "model": "none", "per_round": 6, "rounds": 2})
    with Project.create(tmp_path / "project", settings, ["good", "bad"]) as project:
        project.add(NewItems(kind, "made up", names, texts=texts, vectors=vectors, shown=shown_fields))
        offer(project, 6)
        with running(project, trainer=Idle(project)) as server:
            page = watch.page(chromium)
            page.goto(link(server, project, "Ada"))
            page.wait_for_selector("#desk:not([hidden])")
            page.goto(f"{server}/gallery")
            for item in (0, 2, 4):
                page.wait_for_selector(f"#groups li[data-item='{item}'][data-seen='yes']")
            if kind == "texts":
                expect(page.locator("#groups li[data-item='0'] .said")).to_contain_text("<b>text 0</b>")
            else:
                expect(page.locator("#groups li[data-item='2'] dl")).to_contain_text("0.666667")
            assert faint(page) == []
            ready(page)
            page.keyboard.press("ArrowDown")
            page.keyboard.press("x")
            page.keyboard.press("Enter")
            saved(page, 2, "good")
            assert project.store.labels() == {0: 0, 4: 0}
            if kind == "texts":  # a text is seen once its end has been on the screen
                page.keyboard.press("Enter")
                expect(page.locator("#said")).to_contain_text("not saved: they were not on the screen yet.")
                assert 1 not in project.store.labels()
                page.evaluate("() => scrollTo(0, document.body.scrollHeight)")
                all_seen(page)
                page.keyboard.press("Enter")
                expect(page.locator("#struck")).to_be_visible()
                page.wait_for_function("() => !document.querySelector('#groups li')")
                assert project.store.labels()[1] == 1
            page.goto("about:blank")

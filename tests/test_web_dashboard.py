"""The dashboard: heatmap, curves and map, brought up to date without a reload."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from accuacl.labeling.project import Estimates, RoundAccuracy
from accuacl.labeling.project.estimates import ClassEstimate, TaskEstimate, change, exact, mean, share
from accuacl.labeling.web.charts import round_ticks, strip
from accuacl.labeling.web.dashboard import MOMENTS, facts, forgetting, heatmap
from effort import wait_until
from web_project import PATIENCE, browse, link

expect.set_options(timeout=1000 * PATIENCE)


def label_round(project, person):
    while (pick := project.store.lease(person)) is not None:
        project.store.label(person, pick.item, pick.item % 2, f"dashboard-{pick.item}")


def test_it_follows_the_project_without_a_reload(chromium, watch, server, client, project):
    """All of it in one browser, since the story is one."""
    page = watch.page(chromium)
    page.goto(link(server, project, "Grace"))
    page.wait_for_selector("#desk[data-seen]")
    page.goto(f"{server}/dashboard")
    expect(page.locator("#to-do")).to_contain_text("Nothing yet. Label a round")
    expect(page.locator("#map circle.picked")).to_have_count(4)
    assert page.locator("#map circle").count() == 40
    page.evaluate("() => (window.stillHere = true)")
    label_round(project, project.store.people()[0])
    page.get_by_text(re.compile("After the last training the accuracy is")).wait_for()
    expect(page.locator("#map circle.labelled")).to_have_count(4)
    for place in ("#accuracy th a", "#numbers th a", "#curve p a"):
        assert page.locator(place).first.get_attribute("href") == "/review?held=1&task=0"
    expect(page.locator(".heat td")).to_have_count(1)
    assert page.evaluate("() => window.stillHere")
    dot = page.locator("#map circle.labelled").first
    dot.hover()
    item = dot.evaluate("(dot) => dot.point.item")
    expect(page.locator("#map-item a")).to_have_text(re.compile(f"Item {item}: (cat|dog)"))
    assert page.locator("#map-item img").get_attribute("src") == f"/item/{item}/thumb"
    # The keyboard goes over the map; Enter opens what it is at.
    page.locator("#map").focus()
    expect(page.locator("#map-item a")).to_have_count(1)
    first = page.locator("#map-item a").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#map-item a")).not_to_have_text(first)
    assert page.locator("#map circle.here").count() == 1
    item = page.locator("#map-item a").get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{item}")
    assert all(url.startswith(server) for url in watch.asked)


def test_the_map_of_everything(client, project):
    view = client.get("/api/map").json()
    assert view["total"] == len(view["points"]) == 40
    assert all(0 <= x <= 1000 and 0 <= y <= 1000 for _, x, y, *_ in view["points"])
    labels = project.store.labels()
    assert {item: label for item, _, _, state, label in view["points"] if state == 2} == labels
    picked = {item for item, _, _, state, _ in view["points"] if state == 1}
    assert picked == {row.item for row in project.store.everything() if not row.answered}
    assert view["images"]
    assert client.get("/api/item/0").json() == {"item": 0, "kind": "image", "snip": ""}
    assert client.get("/api/item/999").status_code == 404


def test_the_stamp_changes_with_what_is_shown_and_with_nothing_else(client, project):
    ada = project.store.people()[0]
    wait_until(lambda: project.store.status().open)
    before = client.get("/api/changes").json()
    pick = project.store.lease(ada)
    project.store.renew(ada, pick.item)
    assert client.get("/api/changes").json() == before
    project.store.skip(ada, pick.item, "a-skip-of-it")
    assert client.get("/api/changes").json() != before


def test_strangers_see_nothing(server):
    with browse(server) as stranger:
        for path in ("/api/map", "/api/item/0", "/api/changes"):
            assert stranger.get(path).status_code == 401


def test_ticks_are_round_and_hold_everything():
    for low, high in ((-19.8, 19.8), (-3, 61), (0, 100), (-100, 100), (0, 1e-3), (0, 12345), (5, 5), (-0.5, 0.5)):
        ticks = round_ticks(low, high)
        assert ticks[0] <= low
        assert ticks[-1] >= high
        assert 2 <= len(ticks) <= 8
        step = ticks[1] - ticks[0]
        assert all(b - a == pytest.approx(step) for a, b in itertools.pairwise(ticks))
        assert f"{step:.0e}"[0] in "125"
        assert not low <= 0 <= high or 0.0 in ticks


def fallen(*values):
    """By how much each task has fallen, of ten held-out examples each."""
    return tuple(change(max(n, 0), max(-n, 0), 10) for n in values)


def with_history(*moments):
    return Estimates((), None, None, moments, {}, {}, {})


def test_forgetting_is_drawn_by_round_from_zero_on():
    ok = share(8, 10)
    drawn = forgetting(
        with_history(
            RoundAccuracy(0, 0, (ok,)),
            RoundAccuracy(0, 1, (ok,)),
            RoundAccuracy(1, 0, (ok, ok), fallen(2)),
            RoundAccuracy(1, 1, (ok, ok), fallen(5)),
            RoundAccuracy(2, 0, (ok, ok, ok), fallen(3, -1)),
        )
    )
    ticks = re.findall(r'text-anchor="middle">([^<]+)<', drawn)
    assert ticks == ["1.2", "2.1", "2.2", "3.1", "after task.round"]
    titles = re.findall(r"<title>([^<]+) \(", drawn)
    assert titles == [
        "task 1 after task.round 1.2: 0",
        "task 1 after task.round 2.1: 20",
        "task 1 after task.round 2.2: 50",
        "task 1 after task.round 3.1: 30",
        "task 2 after task.round 2.2: 0",
        "task 2 after task.round 3.1: \N{MINUS SIGN}10",
    ]
    assert drawn.count('class="axis"') == 1  # the line at zero
    assert drawn.count("<polyline") == 2
    assert re.findall(r'<a href="([^"]+)"', drawn) == [f"/review?held=1&amp;task={t}" for t in range(2)]
    assert 'role="group"' in drawn  # links inside of an image are hidden from screen readers


def test_of_many_tasks_those_that_fell_most_are_drawn():
    ok = share(8, 10)
    many = RoundAccuracy(6, 0, 7 * (ok,), fallen(0, 5, 1, 4, 2, 3))
    drawn = forgetting(with_history(RoundAccuracy(5, 0, 6 * (ok,), fallen(0, 0, 0, 0, 0)), many))
    assert re.findall(r">(task \d)<", drawn) == ["task 2", "task 4", "task 5", "task 6"]


def test_without_an_earlier_task_nothing_is_forgotten():
    assert forgetting(with_history()) == ""
    assert forgetting(with_history(RoundAccuracy(0, 0, (share(8, 10),)))) == ""


def site(project):
    return SimpleNamespace(project=project, store=project.store)


def test_a_mean_over_classes_says_how_many_and_how_many_examples(project):
    def facts_of(*accuracies):
        classes = [ClassEstimate(id, 1, accuracy) for id, accuracy in enumerate(accuracies)]
        return [name for name, _ in facts(site(project), with_history(), classes, False) if "mean over" in name]

    two = (share(1, 2), share(3, 4))
    assert facts_of(*two, None, None, None) == [
        "accuracy, mean over the 2 of 5 classes that can be measured (6 held-out examples)"
    ]
    assert facts_of(*two) == ["accuracy, mean over classes (6 held-out examples)"]


def test_the_mean_over_examples_stands_beside_the_mean_over_tasks(project):
    tasks = tuple(TaskEstimate(t, None, share(*counts), None) for t, counts in enumerate([(9, 10), (1, 2)]))
    confusion = {(0, 0): 9, (0, 1): 1, (1, 1): 1, (1, 0): 1}
    found = Estimates(tasks, mean([exact(9, 10), exact(1, 2)]), None, (), confusion, {}, {})
    shown = dict(facts(site(project), found, [], False))
    assert shown["accuracy, mean over tasks (12 held-out examples)"].startswith("70 ")
    assert shown["accuracy, mean over examples"].startswith("83 ")
    alone = replace(found, tasks=tasks[:1], confusion={(0, 0): 9, (0, 1): 1})
    assert "accuracy, mean over examples" not in dict(facts(site(project), alone, [], False))


def test_the_accuracy_of_a_class_is_drawn_to_scale():
    accuracy = share(3, 4)
    drawn = strip(accuracy)
    bar = re.search(r'class="bar" x1="([\d.]+)" x2="([\d.]+)"', drawn)
    (dot,) = re.findall(r'cx="([\d.]+)"', drawn)
    places = [float(x) - 6 for x in (bar[1], dot, bar[2])]
    assert places == pytest.approx([accuracy.low, 75, accuracy.high], abs=0.06)


def test_the_heatmap_has_a_row_for_each_task_and_not_too_many_columns():
    def moments(tasks, rounds):
        return tuple(
            RoundAccuracy(t, r, tuple(share(5 + r, 10) for _ in range(t + 1)))
            for t in range(tasks)
            for r in range(rounds)
        )

    def of(history):
        return heatmap(Estimates((), None, None, history, {}, {}, {}))

    assert of(()) is None
    assert of((RoundAccuracy(0, 0, (None,)),)) is None
    found = of(moments(2, 3))
    assert found["moments"] == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]
    assert [[cell and cell[0] for cell in cells] for _, _, _, cells in found["rows"]] == [
        ["50", "60", "70", "50", "60", "70"],
        [None, None, None, "50", "60", "70"],
    ]
    assert found["rows"][1][1] == "/review?held=1&task=1"  # a chart leads to what it is about
    assert found["rows"][0][2] == 10  # held-out examples
    assert found["rows"][0][3][0] == ("50", 5, "24\N{EN DASH}76")
    many = of(moments(40, 3))
    assert (len(many["moments"]), many["moments"][-1], len(many["rows"])) == (MOMENTS, "40.3", 40)

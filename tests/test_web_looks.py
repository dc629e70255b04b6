"""How pages look: nothing is cut off, colours have contrast, and a class has one colour on every page."""

from __future__ import annotations

import re

import pytest

from web_project import wait_until

COLOURS = 8  # of classes

# The colours of an element: fill and stroke of a shape, the background of anything else.
PAINT = """
(element) => {
  const style = getComputedStyle(element);
  return element.namespaceURI.endsWith("svg") ? [style.fill, style.stroke] : [style.backgroundColor];
}
"""


def channels(colour):
    """Red, green and blue from 0 to 1 of a colour as browsers write it."""
    numbers = [float(number) for number in re.findall(r"[\d.]+(?:e-\d+)?", colour)[:3]]
    return [value if colour.startswith("color(") else value / 255 for value in numbers]


def luminance(colour):
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """As WCAG 2.1 defines it.

    >>> contrast("rgb(0, 0, 0)", "color(srgb 1 1 1)")
    21.0
    """
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def enter(page, server, project):
    page.goto(f"{server}/login#token={project.store.add_person('Augusta Ada King-Noel, Countess', lead=True)}")
    page.wait_for_selector("#desk[data-seen]")


def test_everything_about_a_person_is_in_sight(chromium, watch, server, project):
    page = watch.page(chromium)
    enter(page, server, project)
    project.store.add_person("Annie", lead=True)
    page.goto(f"{server}/people")
    for width in (1280, 1249, 1248, 1024, 844, 390):
        page.set_viewport_size({"width": width, "height": 800})
        hidden = page.evaluate(
            "() => { const card = document.querySelector('.card.scroll'); return card.scrollWidth - card.clientWidth; }"
        )
        assert hidden == 0, width
        end = page.get_by_role("button", name="End the access of Annie").bounding_box()
        assert end["x"] >= 0
        assert end["x"] + end["width"] <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_dots_of_the_map_stand_out(chromium, watch, server, project, dark):
    page = watch.page(chromium, dark=dark)
    enter(page, server, project)
    page.goto(f"{server}/dashboard")
    page.wait_for_selector("#map circle.unlabelled")
    paper = page.locator("#map").evaluate(PAINT)[0]
    first = page.locator("#map circle").first
    for kind in ["picked", "skipped", *(f"labelled k{i}" for i in range(COLOURS))]:
        first.evaluate("(dot, kind) => dot.setAttribute('class', kind)", kind)
        painted = [colour for colour in first.evaluate(PAINT) if colour != "none"]
        assert max(contrast(colour, paper) for colour in painted) >= 3, kind
    assert contrast(page.locator("#map circle.unlabelled").last.evaluate(PAINT)[0], paper) >= 2


def test_a_class_has_one_colour_on_every_page(chromium, watch, server, project):
    page = watch.page(chromium)
    enter(page, server, project)
    ada = project.store.people()[-1]
    for i in range(4):
        pick = project.store.lease(ada)
        project.store.label(ada, pick.item, i % 2, f"looks-{i}")
    wait_until(lambda: project.state().round == 1 and not project.state().ready)
    colours = [page.locator(f"#classes .mark.k{i}").first.evaluate(PAINT)[0] for i in range(2)]
    assert colours[0] != colours[1]
    page.goto(f"{server}/dashboard")
    page.wait_for_selector("#map .labelled")
    page.goto(f"{server}/dashboard")  # with the labels of both classes
    page.wait_for_selector("#map .labelled.k1")
    for i, colour in enumerate(colours):
        for place in ("#classes-card .mark", "#map .labelled", "#map-classes .mark", "#sheet .mark"):
            assert page.locator(f"{place}.k{i}").first.evaluate(PAINT)[0] == colour, place
        bar = page.locator(f"#classes-card meter.k{i}").evaluate(
            "(bar) => getComputedStyle(bar).getPropertyValue('--k')"
        )
        assert channels(" ".join(str(int(bar[at : at + 2], 16)) for at in (1, 3, 5))) == channels(colour)
    for path, place in (("/review?show=labelled", "#grid .mark"), ("/classes", "#main .mark")):
        page.goto(server + path)
        for i, colour in enumerate(colours):
            assert page.locator(f"{place}.k{i}").first.evaluate(PAINT)[0] == colour, path

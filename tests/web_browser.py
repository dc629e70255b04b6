"""A real browser for tests: Chromium or Chrome, headless, watched for complaints and for requests to anyone else."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from effort import LONG, wait_until
from web_project import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
# Dark or not, on a phone or not: each theme and each size once, in long tests all pairs.
LOOKS = [pytest.param(False, False, id="desktop-light"), pytest.param(True, True, id="phone-dark")]
LOOKS += [pytest.param(True, False, id="desktop-dark"), pytest.param(False, True, id="phone-light")] if LONG else []
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}

# Three frames of this document, counted once.
PAINTED = """
async () => {
  for (window.framesPainted ??= 0; window.framesPainted < 3; window.framesPainted++)
    await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
}
"""


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Chromium; without it the test is skipped, or fails where ACCUACL_REQUIRE_CHROMIUM says that it must be there."""
    if CHROMIUM is None:
        reason = "there is no Chromium (on Debian: apt-get install chromium)"
        if os.environ.get("ACCUACL_REQUIRE_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    _act_on_pages_that_are_ready()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@functools.cache
def _act_on_pages_that_are_ready() -> None:
    """A form that opens a page anew shows it before its scripts have run: a click that comes so early does nothing.
    Keys that come before a document was first painted are dropped by Chromium."""
    from playwright.sync_api import Locator, Page

    def once_ready(act: Any) -> Any:
        @functools.wraps(act)
        def later(locator: Any, *given: Any, **named: Any) -> Any:
            locator.page.wait_for_load_state("domcontentloaded")
            return act(locator, *given, **named)

        return later

    for name in ("click", "focus", "press", "select_option"):
        setattr(Locator, name, once_ready(getattr(Locator, name)))
    keyboard = Page.keyboard

    def once_painted(page: Any) -> Any:
        page.evaluate(PAINTED)
        return keyboard.fget(page)  # type: ignore[attr-defined]

    Page.keyboard = property(once_painted)  # type: ignore[assignment, method-assign]


def wait_on(page: Any, happened: Callable[[], object]) -> None:
    """Wait for what the browser tells this process, such as a request held back; each question lets it speak."""
    wait_until(lambda: happened() or page.evaluate("() => false") or happened())


@dataclass
class Watch:
    """What pages said and whom they asked."""

    complaints: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    loading: set[Any] = field(default_factory=set)  # requests that have no answer yet

    def page(self, browser: Any, dark: bool = False, phone: bool = False) -> Any:
        """A new page of someone who is not logged in."""
        context = browser.new_context(
            color_scheme="dark" if dark else "light",
            viewport=PHONE if phone else DESKTOP,
            has_touch=phone,
            is_mobile=phone,
        )
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: (self.asked.add(request.url), self.loading.add(request)))
        page.on("requestfinished", lambda request: self.loading.discard(request))
        page.on("requestfailed", lambda request: self.loading.discard(request))
        return page

    def open(self, page: Any, address: str) -> None:
        """Go to an address, and wait until all is there."""
        self.loading.clear()
        page.goto(address)
        self.settle(page)

    def settle(self, page: Any) -> None:
        """Wait until the page has all that it asked for and has been painted several times since."""
        page.wait_for_load_state()
        painted = 0
        while painted < 3:
            page.evaluate("() => new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)))")
            painted = 0 if self.loading else painted + 1


# For every element with text of its own, and every control: its contrast with what lies behind it.
CONTRAST = """
() => {
  const parse = (text) => {
    const m = text.match(/rgba?\\(([\\d.]+), ([\\d.]+), ([\\d.]+)(?:, ([\\d.]+))?\\)/);
    if (m) return [+m[1], +m[2], +m[3], m[4] === undefined ? 1 : +m[4]];
    const s = text.match(/color\\(srgb ([\\d.e-]+) ([\\d.e-]+) ([\\d.e-]+)(?: \\/ ([\\d.]+))?\\)/);
    return [255 * s[1], 255 * s[2], 255 * s[3], s[4] === undefined ? 1 : +s[4]];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      layers.push(parse(getComputedStyle(e).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    if (layers.at(-1)[3] !== 1) layers.push([255, 255, 255, 1]);
    return layers.reverse().reduce((under, top) => over(top, under));
  };
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const said = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent.trim()).join(" ");
    const what = `${element.tagName} ${element.id} ${said}`.slice(0, 60);
    if (said || element.matches("input, select")) {
      const color = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
      found.push({ what, kind: "text", ratio: ratio(over(parse(color), behind(element)), behind(element)) });
    }
    if (element.matches("button, input:not([type=checkbox]), select")) {
      const around = behind(element.parentElement);
      const edge = Math.max(ratio(parse(style.borderTopColor), around), ratio(behind(element), around));
      found.push({ what, kind: "edge", ratio: edge });
    }
  }
  return found;
}
"""


def faint(page: Any) -> list[str]:
    """Texts with a contrast below 4.5 and edges of controls below 3, as WCAG 2.1 AA asks."""
    found = page.evaluate(CONTRAST)
    assert len(found) > 5
    return [
        f"{one['what']}: {one['ratio']:.2f}" for one in found if one["ratio"] < (4.5 if one["kind"] == "text" else 3)
    ]


NAMED = ("button", "link", "textbox", "searchbox", "combobox", "checkbox", "image", "img", "progressbar", "meter")


def nameless(page: Any) -> list[str]:
    """Controls and pictures that a screen reader has no name for."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    shown = [node for node in tree if not node["ignored"] and node["role"]["value"] in (*NAMED, "dialog")]
    assert shown
    return [str(node["role"]["value"]) for node in shown if not node.get("name", {}).get("value", "").strip()]


def reached_by_tab(page: Any) -> set[str]:
    """The controls that the Tab key comes to, by id or text."""
    page.evaluate("() => document.activeElement.blur()")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        here = page.evaluate("() => document.activeElement.id || document.activeElement.textContent.trim()")
        if here in seen and len(seen) > 3:
            break
        seen.add(here)
    return seen

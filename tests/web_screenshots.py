"""The pictures in docs/labelling.md and docs/fraud.md, taken from the real page: python tests/web_screenshots.py

Two folders of scikit-learn's digits, labelled by a script that knows them and is wrong now and then, through the page
where there is a picture to take and through the store elsewhere.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from accuacl.base.progress import Progress, ignore
from accuacl.labeling.project import Project, TableOptions, make, read_images, read_table
from accuacl.labeling.store import Person
from accuacl.labeling.web.trainer import Trainer
from web_browser import DESKTOP, PHONE, Watch, browser
from web_project import PATIENCE, TestTrainer, link, running, wait_until

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
OUT = Path(__file__).parents[1] / "docs" / "images"


def write_digits(folder: Path) -> None:
    """A third of them, in folders `first` (0 to 4) and `second` (5 to 9); a file's name has the digit at its end."""
    digits = load_digits()
    for i, (pixels, digit) in enumerate(zip(digits.images[::3], digits.target[::3], strict=True)):
        place = folder / ("first" if digit < 5 else "second")
        place.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray((255 - pixels * 15.9).astype(np.uint8)).resize((96, 96), Image.Resampling.BICUBIC)
        image.save(place / f"{i:04}-{digit}.png")


class StopsHalfway(TestTrainer):
    """Waits in the middle of a training while it may not go on."""

    def _report(self, progress: Progress) -> None:
        Trainer._report(self, progress)
        if progress.epochs and 2 * progress.epochs[0] >= progress.epochs[1]:
            self.may_go_on.wait(PATIENCE)


def truth(project: Project, item: int) -> int:
    return int(project.item(item).path.stem[-1])


def label_one(project: Project, person: Person) -> bool:
    """Label the next item, one in thirty wrong; whether there was one."""
    pick = project.store.lease(person)
    if pick is not None:
        label = (truth(project, pick.item) + (pick.item % 30 == 7)) % len(project.store.classes())
        project.store.label(person, pick.item, label, f"scripted-{pick.item}")
    return pick is not None


def label_rest(project: Project, people: list[Person], before: tuple[int, int] = (99, 0)) -> None:
    """Label all that nobody else has, of rounds before this one."""
    while at(project) < before and all(label_one(project, person) for person in people):
        pass


def shoot(page: Any, name: str) -> None:
    """A picture of the page with all of its colours: fewer of them draw bands over photographs and gradients."""
    path = OUT / f"labelling-{name}.png"
    page.wait_for_function("() => [...document.images].every((image) => image.complete || image.loading === 'lazy')")
    page.screenshot(path=path)
    Image.open(path).convert("RGB").save(path, optimize=True)
    print(path, path.stat().st_size)


def at(project: Project) -> tuple[int, int]:
    """The task and round that the project is at."""
    status = project.store.status()
    return (status.task, status.round) if status else (-1, -1)


def shoot_leads(page: Any, server: str, project: Project, second: Path) -> None:
    """The pages on which a lead invites people, says what the classes mean, and starts the next task."""
    ada = next(person for person in project.store.people() if person.name == "Ada")
    examples = {
        label: [item for item, given in project.store.labels().items() if given == label][:3] for label in range(2)
    }
    project.store.guide(ada, 0, "Round and closed, without a stroke at its end.", examples[0])
    project.store.guide(ada, 1, "One stroke, with or without a foot.", examples[1])
    project.store.propose(
        next(one for one in project.store.people() if one.name == "Grace"), "not a digit", "propose-it"
    )
    page.goto(f"{server}/classes")
    page.wait_for_load_state("networkidle")
    shoot(page, "classes")
    page.goto(f"{server}/people")
    page.wait_for_load_state("networkidle")
    page.locator("#invite-name").fill("Dorothy V.")
    page.keyboard.press("Enter")
    page.wait_for_selector("#invitation-code svg")
    shoot(page, "people")
    page.goto(f"{server}/project")
    page.wait_for_load_state("networkidle")
    page.locator("#files").set_input_files(sorted(second.iterdir())[:50])
    page.wait_for_selector("#staged:not([hidden])")
    shoot(page, "project")


def shoot_dashboard(page: Any, server: str) -> None:
    """The dashboard down to the confusion matrix, and its map with one of the examples."""
    page.goto(f"{server}/dashboard")
    page.set_viewport_size({"width": 1100, "height": 1000})
    page.wait_for_selector("#map circle")
    box = page.locator("#map-card").bounding_box()
    page.set_viewport_size({"width": 1100, "height": int(box["y"])})
    shoot(page, "dashboard")
    page.set_viewport_size({"width": 1100, "height": 800})
    page.locator("#map .labelled").nth(20).hover(force=True)  # another dot may lie on it
    page.wait_for_selector("#map-item img")
    page.locator("#map-card").evaluate("(card) => scrollTo(0, card.getBoundingClientRect().top + scrollY - 12)")
    shoot(page, "map")
    page.set_viewport_size(DESKTOP)


def shoot_settle(page: Any, server: str, project: Project, people: list[Person]) -> None:
    """What two people disagree about: four gold examples, which the other of them has taken for something else."""
    ada = next(person for person in project.store.people() if person.name == "Ada")
    answers = [answer for answer in project.store.answers() if answer.person in {person.id for person in people}]
    for answer in answers[:4]:
        other = next(person for person in people if person.id != answer.person)
        project.store.mark_gold(ada, [answer.item])
        project.store.label(other, answer.item, (answer.class_id + 3) % 5, f"disagrees-{answer.item}")
    project.store.comment(other, [answers[0].item], "The stroke is not closed at the top.", "comment-on-it")
    page.goto(f"{server}/settle")
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    shoot(page, "settle")


CLAIM = {
    "Month": "Mar", "DayOfWeek": "Sunday", "Make": "Mazda", "AccidentArea": "Urban", "Sex": "Male", "Age": "71",
    "MaritalStatus": "Single", "Fault": "Policy Holder", "PolicyType": "Sedan - All Perils", "VehicleCategory": "Sedan",
    "VehiclePrice": "more than 69000", "Deductible": "400", "DriverRating": "3", "Days_Policy_Accident": "more than 30",
    "PastNumberOfClaims": "none", "AgeOfVehicle": "more than 7", "PoliceReportFiled": "No", "WitnessPresent": "No",
    "AgentType": "External", "NumberOfSuppliments": "none", "AddressChange_Claim": "no change",
}  # fmt: skip


def shoot_record(chromium: Any, watch: Watch, folder: Path) -> None:
    """A row of a table, as people see it."""
    rows = [CLAIM | {"PolicyNumber": str(11 + i), "Age": str(71 - i)} for i in range(8)]
    lines = [",".join(rows[0])] + [",".join(row.values()) for row in rows]
    (folder / "claims.csv").write_text("\n".join(lines) + "\n")
    settings = make({"kind": "tables", "per_round": 8, "rounds": 1, "strategy": "uniform"})
    items = read_table(folder / "claims.csv", TableOptions(id="PolicyNumber"))
    Project.begin(folder / "claims", settings, ["fine", "fraud"], items)
    with Project.open(folder / "claims") as project, running(project, trainer=TestTrainer(project)) as server:
        page = watch.page(chromium)
        page.goto(f"{server}/login#token={project.store.add_person('Ada', lead=True)}")
        page.wait_for_selector("#desk[data-seen]")
        shoot(page, "record")
        page.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    write_digits(folder / "digits")
    OUT.mkdir(parents=True, exist_ok=True)
    watch = Watch()
    settings = make({"kind": "images", "per_round": 40, "rounds": 3})
    with Project.create(folder / "digits-project", settings, NAMES[:5]) as project:
        project.add(read_images(folder / "digits" / "first", ignore))
        people = [project.store.person_of(project.store.add_person(name)) for name in ("Grace", "Katherine")]
        trainer = StopsHalfway(project)
        with running(project, trainer=trainer, public_url="http://label.example.org") as server, browser() as chromium:
            shoot_record(chromium, watch, folder)
            page = watch.page(chromium)
            wait_until(lambda: not project.state().ready)  # all of the round is chosen
            page.goto(f"{server}/login#token={project.store.add_person('Ada', lead=True)}")
            page.wait_for_selector("#view img")
            for _ in range(9):
                item = int(page.locator("#view img").get_attribute("src").split("/")[2])
                page.wait_for_selector(f"#desk[data-seen='{item}']")
                page.keyboard.press(str(truth(project, item) + 1))
                page.wait_for_selector(f"#view img:not([src='/item/{item}/image'])")
            page.get_by_text("9 of 40 labelled").wait_for()
            shoot(page, "start")
            trainer.may_go_on.clear()
            label_rest(project, people)
            item = int(page.locator("#view img").get_attribute("src").split("/")[2])
            page.wait_for_selector(f"#desk[data-seen='{item}']")
            page.keyboard.press(str(truth(project, item) + 1))
            page.get_by_text("The model is learning").wait_for()
            page.get_by_text("The next examples will appear here.").wait_for()
            shoot(page, "training")
            trainer.may_go_on.set()
            page.wait_for_selector("#desk:not([hidden])")
            page.locator("#why summary").click()
            page.keyboard.press("g")
            page.wait_for_selector("#guessed:not(:empty)")
            page.locator("#view").focus()
            shoot(page, "why")
            page.goto(f"{server}/gallery")
            page.wait_for_selector("#groups li[data-seen='yes']")
            for box in (3, 8):
                page.locator("#groups li input").nth(box).check()
            page.locator("#groups li select").first.select_option(index=2)
            page.evaluate("() => scrollTo(0, 0)")
            shoot(page, "gallery")
            page.goto(f"{server}/review?show=labelled")
            page.wait_for_load_state("networkidle")
            for box in (2, 5):
                page.locator("#grid input").nth(box).check()
            shoot(page, "review")
            shoot_settle(page, server, project, people)
            shoot_leads(page, server, project, folder / "digits" / "second")
            page.goto("about:blank")
            project.add(read_images(folder / "digits" / "second", ignore))
            for name in NAMES[5:]:
                project.store.add_class(name)
            wait_until(lambda: at(project) == (1, 2) or label_rest(project, people, (1, 2)))
            for _ in range(13):
                label_one(project, people[0])
            page.goto(server)
            page.wait_for_selector("#view img")
            page.keyboard.press("/")
            page.keyboard.type("se")
            shoot(page, "search")
            shoot_dashboard(page, server)
            dark = watch.page(chromium, dark=True)
            dark.goto(link(server, project, "Dorothy"))
            dark.wait_for_selector("#view img")
            shoot(dark, "dark")
            dark.goto(f"{server}/dashboard")
            dark.set_viewport_size({"width": 1100, "height": 800})
            dark.wait_for_selector("#map circle")
            shoot(dark, "dashboard-dark")
            dark.close()
            phone = watch.page(chromium, phone=True)
            phone.goto(link(server, project, "Annie"))
            phone.wait_for_selector("#view img")
            shoot(phone, "phone")
            phone.set_viewport_size({"width": 844, "height": 390})
            shoot(phone, "phone-landscape")
            phone.set_viewport_size(PHONE)
            phone.goto(f"{server}/dashboard")
            phone.wait_for_load_state("networkidle")
            shoot(phone, "phone-dashboard")
            page.goto("about:blank")
            phone.goto("about:blank")
    print(watch.complaints)


if __name__ == "__main__":
    main()

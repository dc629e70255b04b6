"""Plays a newcomer: a new environment with the wheel alone, and every block of the README and the tutorials as printed.

Commands go to bash, Python blocks of a page to one interpreter, and where the page asks to label, somebody logs in over
HTTP with the link that was printed and labels until all is learned. Run: python tests/newcomer.py [PAGE ...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import venv
from pathlib import Path

import httpx

from accuacl.labeling.project import Project
from printed import PAGES, ROOT, Block, agrees, blocks_of
from printed_things import MODEL, THINGS

EXTRAS = "label,skactiveml,frames"
VARIABLES = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ACCUACL_DATA")}
LINK = re.compile(r"(http://\S+)/login#token=(\S+)")
# Reads one block after another from its standard input, as JSON, and says on a line of its own when it is done.
SESSION = """
import json, sys
session = {"__name__": "__main__"}
for line in sys.stdin:
    exec(compile(json.loads(line), "a printed block", "exec"), session)
    print("\\0", flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES, help="Markdown files (all)")
    parser.add_argument("--environment", type=Path, help="use this one, or make it there (a temporary one)")
    parser.add_argument("--package", type=Path, help="install this wheel or sdist (a wheel of this tree)")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored, and so by all children
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = options.environment or folder / "environment"
        if not (environment / "bin" / "accuacl").exists():
            install(environment, options.package or wheel_of_tree(folder))
        for page in options.pages:
            began = time.monotonic()
            place = folder / page.stem
            place.mkdir()
            Newcomer(place, environment).read(page)
            print(f"{page.name}: as printed, {time.monotonic() - began:.0f} s", flush=True)


def wheel_of_tree(folder: Path) -> Path:
    """A wheel of this tree."""
    build = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel", "--no-deps"]
    subprocess.run([*build, "--wheel-dir", folder, ROOT], check=True, env=VARIABLES)
    return next(folder.glob("accuacl-*.whl"))


def install(environment: Path, package: Path) -> None:
    """The package and what it needs, in a new environment; the tree itself is not on its path."""
    venv.create(environment, with_pip=True)
    pip = [environment / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    what = f"accuacl[{EXTRAS}] @ {package.resolve().as_uri()}"
    subprocess.run([*pip, "install", "-c", ROOT / "constraints.txt", what, "polars"], check=True, env=VARIABLES)


class Newcomer:
    """In a folder, with an environment whose commands come first on the path."""

    def __init__(self, folder: Path, environment: Path) -> None:
        self.folder = folder
        state = {"XDG_STATE_HOME": str(folder / ".state"), "XDG_CACHE_HOME": str(folder / ".cache")}
        self.variables = VARIABLES | state | {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "COLUMNS": "120"}

    def read(self, page: Path) -> None:
        """Run every block of a page that is meant to be run."""
        there: set[str] = set()
        with subprocess.Popen(
            ["python", "-c", SESSION], cwd=self.folder, env=self.variables, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as self.session:  # fmt: skip
            for block in blocks_of(page.read_text()):
                if "never" in block.marks:
                    continue
                for thing in set(block.things) - there:
                    THINGS[thing](self.folder, {})
                    if thing == "model":
                        self.python(MODEL)
                there |= set(block.things)
                given = self.run(block)
                if block.output and not agrees(block.output, given):
                    sys.exit(f"{page}, line {block.line}: it printed\n{given}")
            self.session.stdin.close()

    def run(self, block: Block) -> str:
        """What the block printed."""
        if block.title:
            (self.folder / block.title).write_text(block.text)
            return ""
        if block.language == "python":
            return self.python(block.text)
        return "".join(self.command(command) for command in block.commands)

    def python(self, text: str) -> str:
        """Run a block in the page's interpreter, which ends where an error is not caught."""
        self.session.stdin.write(json.dumps(text) + "\n")
        self.session.stdin.flush()
        lines = iter(self.session.stdout.readline, "")
        printed: list[str] = []
        for line in lines:
            if line == "\0\n":
                return "".join(printed)
            printed.append(line)
        sys.exit(f"a block of Python failed:\n{text}")

    def command(self, command: str) -> str:
        """Run a command in bash; whoever is asked to label labels."""
        if "project serve" in command:
            return self.label(command)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, env=self.variables, text=True,
            stdout=subprocess.PIPE, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"exit code {done.returncode}: {command}")
        return done.stdout

    def label(self, command: str) -> str:
        """Start the server, log in with the link that it prints, label until all is learned, end it with Ctrl-C."""
        server = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.variables, text=True, stdout=subprocess.PIPE
        )
        try:
            links = (LINK.search(line) for line in iter(server.stdout.readline, ""))
            link = next((found for found in links if found), None) or sys.exit(f"no link was printed: {command}")
            address, token = link.groups()
            with httpx.Client(base_url=address, timeout=60) as person:
                person.post("/api/login", json={"token": token}).raise_for_status()
                label_all(person, Project.open(self.folder / command.split()[3]))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        return ""


def label_all(person: httpx.Client, project: Project) -> None:
    """Label each image with the first word of its file's name."""
    view = person.post("/api/next", json={}).raise_for_status().json()
    while view["state"]["phase"] != "done":
        pick = view["pick"]
        if pick is None:  # the model learns
            time.sleep(0.2)
            view = person.post("/api/next", json={}).raise_for_status().json()
            continue
        name = Path(project.item(pick["item"]).name).stem.split("-")[0]
        known = {each["name"]: each["id"] for each in view["classes"]}
        if name not in known:
            known[name] = person.post("/api/classes", json={"name": name}).raise_for_status().json()["added"]
        answer = {"item": pick["item"], "class_id": known[name], "request": uuid.uuid4().hex}
        view = person.post("/api/label", json=answer).raise_for_status().json()


if __name__ == "__main__":
    main()

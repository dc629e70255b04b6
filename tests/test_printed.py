"""Every command and code block of the README and of the tutorials runs as printed."""

from __future__ import annotations

import uuid
from importlib.util import find_spec
from pathlib import Path

import pytest

from accuacl.labeling.project import Project
from effort import LONG, has_pretrained
from printed import PAGES, ROOT, RUN, Reader, agrees, blocks_of
from printed_things import THINGS
from scripted import class_of

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def label_by_names(project_dir: Path) -> None:
    """What Ada does on the page until all is learned: she labels each image with the first word of its file's name."""
    with Project.open(project_dir) as project:
        if not any(person.name == "Ada" for person in project.store.people()):
            project.store.add_person("Ada")
        person = next(person for person in project.store.people() if person.name == "Ada")
        while not project.advance().finished:
            while (pick := project.store.lease(person)) is not None:
                name = Path(project.item(pick.item).name).stem.split("-")[0]
                project.store.label(person, pick.item, class_of(project, name), uuid.uuid4().hex)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_runs_as_printed(tmp_path, name):
    blocks = blocks_of((ROOT / name).read_text())
    assert blocks
    if "project new" in "".join(block.text for block in blocks) and not has_pretrained():
        pytest.skip("the extra `label` is not installed")
    if name.endswith("scikit-activeml.md"):
        pytest.importorskip("skactiveml", reason="the extra `skactiveml` is not installed")
    reader = Reader(tmp_path, label_by_names)
    there = set()
    for block in blocks:
        if "never" in block.marks or ("long" in block.marks and not LONG):
            continue
        if any(f"import {name}" in block.text and find_spec(name) is None for name in ("pandas", "polars")):
            continue  # a newcomer has them; here scikit-learn would load pandas each time
        for thing in block.things:
            if thing not in there:
                THINGS[thing](tmp_path, reader.session)
                there.add(thing)
        reader.run(block)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_run_or_say_why_not(name):
    for block in blocks_of((ROOT / name).read_text()):
        assert block.language in (*RUN, "yaml"), f"{name}, line {block.line}: a block of {block.language!r}"
        assert block.language != "yaml" or block.title, f"{name}, line {block.line}: which file is it?"
        assert block.marks.get("never", "for a reason"), f"{name}, line {block.line}: why is it never run?"
        assert set(block.things) <= set(THINGS)


PAGE = """
<!-- run: with photos, DATA -->
```sh
accuacl a \\
  --b
# a comment
ls
```

```text
x
```

words
<!-- run: long -->
<!-- run: never, it takes hours -->

```python title="a.py"
x = 1
```
"""


def test_blocks_of_a_page():
    first, second = blocks_of(PAGE)
    assert first.commands == ["accuacl a    --b", "ls"]
    assert (first.output, first.things, first.line) == ("x\n", ["photos", "DATA"], 3)
    assert (second.title, second.text) == ("a.py", "x = 1\n")
    assert second.marks == {"long": "", "never": "it takes hours"}


@pytest.mark.parametrize(
    ("block", "says"),
    [("```python\n1 / 0\n```", "division"), ("```sh\nfalse\n```", "false"), ("```sh\naccuacl run --x\n```", "--x")],
)
def test_what_fails_is_noticed(tmp_path, block, says):
    (found,) = blocks_of(block)
    with pytest.raises((ZeroDivisionError, AssertionError), match=says):
        Reader(tmp_path, label_by_names).run(found)


def test_another_output_is_noticed(tmp_path):
    (found,) = blocks_of("```sh\necho a 1\necho b\n```\n```text\na 2\nc\n```")
    with pytest.raises(AssertionError, match="line 1 printed"):
        Reader(tmp_path, label_by_names).run(found)
    assert agrees("a 2\nb", "a  1\nb\n")
    assert not agrees("a\n...\nb", "a\nc")

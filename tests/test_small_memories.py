"""The table of queries and memory policies over data, labels and memories: pairs, rows, and what is not done yet."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import cell
import small_memories
from paired import show, signed

ROOT = Path(__file__).parents[1]


def rows(policy, accuracies, labels=100, memory=20, strategy="uniform"):
    """A run for each accuracy, which is that of the seed."""
    usual = {"benchmark": "digits", "learner": "er", "labels": labels, "memory": memory}
    run = usual | {"strategy": strategy, "memory_policy": policy, "forgetting": 5.0}
    return [run | {"seed": i, "average_accuracy": float(a)} for i, a in enumerate(accuracies) if a is not None]


def test_rows_columns_and_differences_by_hand():
    given = rows("coverage", [12, 13, 17]) + rows("paper", [10, 12, 14])
    given += rows("paper", [20, 22, 24], memory=200) + rows("coverage", [19, None, 23], memory=200)
    done, values, differences = small_memories.page(given, 24).split("\n\n")
    assert done == "11 of 24 runs are done."
    head, _, *lines = values.splitlines()
    assert head == "| data | learner | labels a task | memory | uniform/paper | uniform/coverage | seeds |"
    assert lines == [
        "| digits | er | 100 | 20 | 12.0 / 5.0 | 14.0 / 5.0 | 3 |",
        "| digits | er | 100 | 200 | 22.0 / 5.0 | 21.0 / 5.0 | 2 to 3 |",
    ]
    (line,) = differences.splitlines()[2:]
    # +2, +1, +3 and -1, nothing, -1: by seed +0.5, +1, +1
    assert line == "| uniform/coverage | +0.8 | cannot tell | +0.0 | cannot tell | 3 | 1 of 2 | -1.0 | +2.0 |"


def test_rows_that_share_a_seed_count_once():
    """By seed -0.5, +1, ... +1: 4 of 128 choices of signs have a sum of at least 5.5 or at most -5.5."""
    given = rows("paper", [0] * 7) + rows("coverage", [-2, 0, 0, 0, 0, 0, 0])
    given += rows("paper", [0] * 7, memory=200) + rows("coverage", [1, 2, 2, 2, 2, 2, 2], memory=200)
    line = small_memories.page(given, 28).split("\n\n")[2].splitlines()[2]
    assert line.startswith("| uniform/coverage | +0.8 | 0.031 | +0.0 | 1.000 | 7 | 1 of 2 |")


def test_p_is_corrected_for_the_number_of_columns():
    given = rows("paper", range(8)) + rows("coverage", range(1, 9)) + rows("paper", range(8), strategy="coverage")
    lines = small_memories.page(given, 24).split("\n\n")[2].splitlines()[2:]
    assert [line.split(" | ")[2] for line in lines] == ["1.000", "0.016"]  # coverage/paper, then twice 2 / 2^8


def test_what_is_not_measured_is_said_between_the_marks(tmp_path):
    assert small_memories.page([], 144) == "Not measured yet: none of 144 runs is done."
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- b -->\nafter\n")
    show(small_memories.page([], 3), page, "<!-- a -->", "<!-- b -->")
    expected = "before\n<!-- a -->\n\nNot measured yet: none of 3 runs is done.\n\n<!-- b -->\nafter\n"
    assert page.read_text() == expected


@pytest.mark.parametrize(("name", "runs"), [("scratch", 144), ("memories-choose", 250)])
def test_the_runs_of_a_sweep_file_are_counted(name, runs):
    spec = yaml.safe_load((ROOT / "docs/results/study" / f"{name}.yaml").read_text())
    assert small_memories.planned(spec) == runs


def test_a_difference_that_is_nothing_has_no_minus():
    assert [signed(change) for change in (-0.04, -0.06, 0.04, 2)] == ["+0.0", "-0.1", "+0.0", "+2.0"]
    cells = {row: {0: {"A": 30 - 0.01 * i, "F": 5.0}} for i, row in enumerate(cell.ROWS)}
    texts = cell.sentence(cells, "as said"), cell.changes({key: {} for key in cell.SCALES} | {cell.PAPER: cells})
    assert all("+0.0" in text and "-0.0" not in text for text in texts)


def test_every_page_has_the_marks_that_its_command_writes_between():
    for path, marks in (
        ("docs/strategies.md", [f"benchmarks/small_memories.py, {mark}" for mark in ("small memories", "few labels")]),
        ("REPRODUCIBILITY.md", ["benchmarks/cell.py", "benchmarks/suspects.py"]),
        ("docs/theory.md", ["benchmarks/predictions.py"]),
    ):
        text = (ROOT / path).read_text()
        for mark in marks:
            assert text.count(mark + ", from here -->") + text.count(mark + " writes from here -->") == 1, mark
            assert text.count(f"<!-- to here, {mark} -->") == 1, mark

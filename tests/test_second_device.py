"""Everything that names a device does the same on a second one: what is left behind on the CPU would fail there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).with_name("second_device.py")
NAMES = [
    *("predict", "a frozen network", "features of a loader", "features of tensors", "a run"),
    *("a run with badge and der++", "a run with the kernel learner", "a project", "a project with er and mlp"),
    *("a project with its own network", "a project that trains its network"),
]


@pytest.fixture(scope="module")
def found():
    pytest.importorskip("torch.utils.backend_registration")
    if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this version of torch cannot have devices that are written in Python")
    done = subprocess.run([sys.executable, FILE], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_it_does_the_same_on_a_second_device(found, name):
    assert found.pop(name) == ""


def test_so_do_all_learners_and_memory_policies(found):
    assert {name: fault for name, fault in found.items() if fault} == {}
    assert len(found) >= 20


def test_a_tensor_that_is_left_behind_would_be_noticed():
    code = f"""
import sys
sys.path.insert(0, {str(FILE.parent)!r})
import torch, second_device
kept = second_device.register()
there, here = torch.ones(3).to("second"), torch.ones(3)
assert (there + there).cpu().tolist() == [2.0, 2.0, 2.0]
for wrong in (lambda: there + here, lambda: there.numpy(), lambda: torch.nn.Linear(3, 2)(there)):
    try:
        wrong()
    except (RuntimeError, TypeError):
        continue
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr

"""Our SGD is torch's, to the bit."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch

from accuacl.experiments.learners.round import SGD


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("weight_decay", [0.0, 1e-2])
def test_the_same_bits_as_torch(momentum, weight_decay):
    torch.manual_seed(0)
    ours = torch.nn.Sequential(
        torch.nn.Conv2d(3, 5, 3), torch.nn.BatchNorm2d(5), torch.nn.Flatten(), torch.nn.Linear(180, 4)
    )
    ours[0].bias.requires_grad_(False)
    theirs = copy.deepcopy(ours)
    mine = SGD(ours.parameters(), momentum, weight_decay)
    reference = torch.optim.SGD(theirs.parameters(), lr=1.0, momentum=momentum, weight_decay=weight_decay)
    for step in range(6):
        x, y, lr = torch.randn(7, 3, 8, 8), torch.randint(0, 4, (7,)), 0.1 / (1 + step)
        for model in (ours, theirs):
            model.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
        mine.step(lr)
        reference.param_groups[0]["lr"] = lr
        reference.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)
    mine.zero_grad()
    assert all(parameter.grad is None for parameter in mine.parameters)


def test_training_does_not_import_the_compiler():
    code = (
        "import sys, torch; from accuacl.experiments.learners.round import SGD\n"
        "w = torch.ones(3, requires_grad=True); (w * w).sum().backward(); SGD([w], 0.9, 0.1).step(0.1)\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0

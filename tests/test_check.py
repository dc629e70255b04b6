"""`accuacl check`: each contract that a plugin breaks is named with its line, and what keeps them all passes."""

from __future__ import annotations

import pytest

from accuacl.experiments.checks import check_memory_policy
from accuacl.experiments.memory import POLICIES
from commands import accuacl

BEGIN = "import numpy as np\nfrom accuacl.strategies import Query, Selection, register\n\n\n"
STRATEGIES = {  # by what the sentence must say: the body of a strategy
    "picked 0 rows; pick query.count": "return Selection(np.arange(0), {})",
    "its indices are int32; give int64": "return Selection(np.arange(query.count, dtype=np.int32), {})",
    "it raised AttributeError (": "return Selection(np.arange(query.count + 0 * query.memory.d), {})",
    "where embeddings are zero": (
        "h = query.pool.embeddings\n"
        "    return Selection(np.arange(query.count), {'norm': (1 / np.linalg.norm(h, axis=1))[: query.count]})"
    ),
    "it picks differently; use np.random.default_rng(query.seed)": (
        "return Selection(np.random.default_rng().permutation(len(query.pool))[: query.count], {})"
    ),
    "it draws from np.random, which is not seeded": (
        "return Selection(np.random.permutation(len(query.pool))[: query.count], {})"
    ),
    "it writes into the query's arrays (": (
        "query.pool.embeddings[:1] *= 2\n    return Selection(np.arange(query.count), {})"
    ),
    "its picks change with chunk=1": "return Selection((np.arange(query.count) + query.chunk) % len(query.pool), {})",
    "it picks different examples when the pool is reordered": "return Selection(np.arange(query.count), {})",
    "its progress ends at 1 of 9": "query.ticker(9)(1)\n    return Selection(np.arange(query.count), {})",
    "its progress falls": (
        "tell = query.ticker(9)\n    [tell(more) for more in (5, -2, 6)]\n"
        "    return Selection(np.arange(query.count), {})"
    ),
    "where embeddings are huge": (
        "huge = bool(np.abs(query.pool.embeddings).max() > 1e9)\n"
        "    return Selection(np.arange(query.count + huge), {})"
    ),
}
LEARNER = """
from accuacl.experiments.learners import Learner, register
from accuacl.experiments.memory import Memory
from torch.nn.functional import cross_entropy
import numpy as np
import torch

@register("mine")
class Mine(Learner):
    def observe(self, rows):
        x, y = self.round.augmented(rows)
        {observe}

    def remember(self):
        {remember}
"""
STEP = "return self.round.step(cross_entropy(self.round.logits(x), y))"
LEARNERS = {
    "draws from torch's global generator": (f"torch.rand(1)\n        {STEP}", "return self.buffer"),
    "training does not change the model": ("return cross_entropy(self.round.logits(x), y)", "return self.buffer"),
    "its memory has 40 examples, but self.round.training.capacity is 12": (STEP, "return self.keep_all()"),
    "its memory has an example that nobody labelled": (STEP, "return Memory(np.array([999]), np.array([0]))"),
    "labels that its examples do not have": (STEP, "m = self.keep_all(); return Memory(m.ids[:2], m.labels[:2] + 1)"),
    "it keeps the same examples whatever the policy": (STEP, "return self.buffer"),
    "`remember` of Mine": (STEP, "return None"),
    "of the model differs": (f"self.round.model.head.bias.data += id(self) % 97; {STEP}", "return self.buffer"),
    "its memories differ": (
        STEP,
        "m = self.keep_all(); return m.take(np.random.default_rng().permutation(len(m))[:12])",
    ),
    "its memory has an example twice": (STEP, "m = self.keep_all(); return m.take(np.zeros(2, np.int64))"),
    "it writes into the previous task's memory": (STEP, "self.buffer.ids[::-1].sort(); return self.keep_all()"),
    "what only `train` knows": (
        f"self.last = rows.tolist(); {STEP}",
        "return self.keep_all().take(np.arange(len(getattr(self, 'last', []))))",
    ),
    "parameters with requires_grad=False change": (
        f"[weight.data.mul_(0.9) for weight in self.round.model.parameters()]; {STEP}",
        "return self.buffer",
    ),
}
POLICY = """
from accuacl.experiments.memory import Memory, register
import numpy as np

@register("mine")
def mine(memory, ids, labels, features, capacity, seed, logits=None):
    {body}
"""
BOTH = "i, l = np.append(memory.ids, ids), np.append(memory.labels, labels); "
KEPT = {
    "keep at most `capacity` of them, here 0": f"{BOTH}return Memory(i, l)",
    "it keeps 0 of 60 examples": "return Memory.empty()",
    "labels and ids of what it keeps do not belong together": f"{BOTH}return Memory(i[:capacity], l[1:][:capacity])",
    "logits are lost": f"{BOTH}return Memory(i[:capacity], l[:capacity])",
    "it writes into what it is given (": "ids[:] = 0; return Memory.empty()",
    "it raised ZeroDivisionError (": "return 1 / 0",
    "it keeps other examples; use np.random.default_rng(seed)": (
        f"{BOTH}r = np.random.default_rng().permutation(len(i))[:capacity]; return Memory(i[r], l[r])"
    ),
}


def checked(folder, text):
    (folder / "mine.py").write_text(text)
    ended = accuacl("check", folder / "mine.py", width=10_000)
    assert ended.stderr == ""
    return ended


@pytest.mark.parametrize("says", STRATEGIES)
def test_a_strategy_that_breaks_its_contract(tmp_path, says):
    body = STRATEGIES[says]
    ended = checked(tmp_path, f'{BEGIN}@register("mine")\ndef mine(query: Query) -> Selection:\n    {body}\n')
    line = next(line for line in ended.stdout.splitlines() if says in line)
    remark = "reordered" in says
    assert line.split()[0] == ("ok" if remark else "BROKEN")
    assert ended.returncode == (0 if remark else 1)
    if says.endswith("("):
        assert f"{tmp_path / 'mine.py'}, line 7)" in line


@pytest.mark.parametrize("says", LEARNERS)
def test_a_learner_that_breaks_its_contract(tmp_path, says):
    observe, remember = LEARNERS[says]
    ended = checked(tmp_path, LEARNER.format(observe=observe, remember=remember))
    assert ended.returncode == 1
    assert any("BROKEN" in line and says in line for line in ended.stdout.splitlines()), ended.stdout


@pytest.mark.parametrize("says", KEPT)
def test_a_memory_policy_that_breaks_its_contract(tmp_path, says):
    ended = checked(tmp_path, POLICY.format(body=KEPT[says]))
    assert ended.returncode == 1
    assert any("BROKEN" in line and says in line for line in ended.stdout.splitlines()), ended.stdout


@pytest.mark.parametrize("name", POLICIES)
def test_our_memory_policies_keep_the_contract(name):
    assert [outcome for outcome in check_memory_policy(name) if outcome.fault] == []


def test_what_keeps_it_passes_and_streams_are_not_checked(tmp_path):
    (tmp_path / "mine.py").write_text(
        f'{BEGIN}@register("mine")\ndef mine(query: Query) -> Selection:\n'
        "    order = np.argsort(np.asarray(query.pool.probabilities, np.float64).max(axis=1), kind='stable')\n"
        "    return Selection(order[: query.count], {})\n\n\n"
        "from accuacl.experiments import data\n\n\n@data.register('backwards')\n"
        "def backwards(dataset, seed):\n    return []\n"
    )
    ended = accuacl("check", tmp_path / "mine.py", width=10_000)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "11 checks passed."
    assert "not checked" in ended.stdout


@pytest.mark.parametrize(
    ("text", "says"), [(None, "there is no Python file"), ("x = 1", "registers nothing; put @accuacl.register")]
)
def test_a_file_without_anything_to_check(tmp_path, text, says):
    if text:
        (tmp_path / "mine.py").write_text(text)
    ended = accuacl("check", tmp_path / "mine.py")
    assert ended.returncode == 2
    assert says in " ".join(ended.stderr.split())

"""Plugins: what is a user's own and not as it must be gets one sentence with its file and line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from accuacl import select, strategies
from accuacl.base.errors import InputError
from accuacl.base.userfile import load_file
from accuacl.experiments import canonical, data, learners, make, memory, open_stream
from accuacl.features import Features
from accuacl.strategies import REGISTRY, load_plugins, register
from commands import SMALL, accuacl, forgetting

POOL = Features(np.eye(5, 2), np.full((5, 2), 0.5))
BEGIN = "import numpy as np\nfrom accuacl.strategies import Selection, register\n\n\n"


@pytest.fixture(autouse=True)
def _forget():
    """Forget what a test registers."""
    with forgetting():
        yield


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("[0, 1]", "gave a list; return Selection(indices, scores)"),
        ("None", "gave a NoneType; return Selection"),
        ("np.arange(2)", "gave an ndarray; return Selection"),
        ("Selection([0, 1], {})", "gave indices that are a list; give whole numbers"),
        ("Selection(np.zeros(2), {})", "indices that are an ndarray of float64, shape (2,); give whole numbers"),
        ("Selection(np.zeros((1, 2), int), {})", "shape (1, 2)"),
        ("Selection(np.array([True, False]), {})", "of bool"),
        ("Selection(np.arange(1), {})", "picked 1 rows; pick query.count of them, here 2"),
        ("Selection(np.arange(3), {})", "picked 3 rows; pick query.count of them, here 2"),
        ("Selection(np.array([1, 1]), {})", "picked row 1 2 times; pick different rows"),
        ("Selection(np.array([1, 5]), {})", "picked row 5, but the pool has the rows 0 to 4"),
        ("Selection(np.array([1, -1]), {})", "picked row -1, but"),
        ("Selection(np.arange(2), None)", "gave scores that are a NoneType; give a dict of arrays"),
        ("Selection(np.arange(2), {'a': [1, 2]})", "the score 'a' as a list; give an array"),
        ("Selection(np.arange(2), {'a': np.ones(5)})", "as an ndarray of float64, shape (5,); give an array"),
        ("Selection(np.arange(2), {'a': np.array([1, np.nan])})", "the score 'a' of pick 1 as nan; all must be finite"),
    ],
)
def test_a_wrong_answer_names_the_file_and_the_line(tmp_path, answer, says):
    file = tmp_path / "mine.py"
    file.write_text(f'{BEGIN}@register("mine")\ndef mine(query):\n    return {answer}\n')
    assert load_plugins([file]) == ["mine"]
    with pytest.raises(InputError) as refused:
        select("mine", pool=POOL, budget=2)
    assert f"the strategy mine ({file}, line 5) " in str(refused.value)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("def mine(query, power):", "has a required argument power; give it a default"),
        ("def mine(query, *, power):", "has a required argument power"),
        ("def mine():", "takes no query"),
    ],
)
def test_a_strategy_that_cannot_be_called_is_refused_when_it_is_registered(tmp_path, head, says):
    file = tmp_path / "mine.py"
    file.write_text(f'{BEGIN}@register("mine")\n{head}\n    ...\n')
    with pytest.raises(InputError) as refused:
        load_plugins([file])
    assert says in str(refused.value)
    assert "mine.py, line 5" in str(refused.value)
    assert "mine" not in REGISTRY


def test_what_is_no_function_is_refused():
    with pytest.raises(InputError, match="the strategy mine is an int; register a function"):
        register("mine")(3)


def test_options_with_defaults_and_any_number_of_them_are_fine():
    register("mine")(lambda query, power=2, *more, **others: REGISTRY["uniform"](query))
    assert len(select("mine", pool=POOL, budget=2, power=3)) == 2


def test_the_errors_of_a_plugin_keep_their_traceback(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f'{BEGIN}@register("mine")\ndef mine(query):\n    return [][1]\n')
    load_plugins([file])
    with pytest.raises(IndexError) as raised:
        select("mine", pool=POOL, budget=2)
    assert raised.traceback[-1].path == file


SEED = """
from accuacl.strategies import register, select

@register("old-numpy")
def old_numpy(query):
    import numpy as np
    seed = int(np.random.RandomState(query.seed).randint(9))
    return select("uniform", pool=query.pool, budget=query.budget, seed=seed)
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f(:\n", "SyntaxError: "),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'\n"),
        ("def half():\n    return 1 / 0\n\nhalf()\n", "ZeroDivisionError: division by zero\n"),
    ],
)
def test_the_author_of_a_broken_file_sees_that_file_alone(tmp_path, text, says):
    (tmp_path / "mine.py").write_text(text)
    ended = accuacl("run", "--plugin", "mine.py", cwd=tmp_path)
    assert ended.returncode == 1
    assert says in ended.stderr
    files = re.findall(r'File "(.*)", line', ended.stderr)
    assert {Path(file).name for file in files} == {"mine.py"}


def test_a_strategy_that_ends_the_program_is_named(tmp_path):
    (tmp_path / "mine.py").write_text(f'import sys\n{BEGIN}@register("mine")\ndef mine(query):\n    sys.exit(0)\n')
    ended = accuacl("run", "--plugin", "mine.py", "--strategy", "mine", "--out", "a", "--tasks", 1, cwd=tmp_path)
    assert ended.returncode == 2
    assert re.fullmatch(r"accuacl: .*mine.py, line 8 ended the whole program, with exit code 0;.*\n", ended.stderr)


def test_a_plugins_seed_is_one_that_numpy_takes(tmp_path):
    (tmp_path / "mine.py").write_text(SEED)
    options = [f"--{key}={value}" for key, value in SMALL.items()]
    ended = accuacl("run", *options, "--strategy=old-numpy", "--plugin=mine.py", "--out=out", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


OTHERS = """
from accuacl.experiments import learners, memory
from accuacl.experiments.learners import Learner
from accuacl.experiments.learners.er import ER

@learners.register("er-again")
class Mine(ER):
    '''ER under another name.'''

@memory.register("none-new")
def none_new(memory, ids, labels, features, capacity, seed, logits=None):
    return memory
"""


def test_learners_and_memory_policies_can_be_plugged_in(tmp_path):
    (tmp_path / "mine.py").write_text(OTHERS)
    options = [f"--{key}={value}" for key, value in SMALL.items()]
    ended = accuacl("run", *options, "--learner=er-again", "--plugin=mine.py", "--out=a", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    same = accuacl("run", *options, "--learner=er", "--out=b", cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    first, second = (json.loads((tmp_path / out / "result.json").read_text()) for out in "ab")
    assert first["accuracy_matrix"] == second["accuracy_matrix"]
    load_file(tmp_path / "mine.py")
    assert make({"memory_policy": "none-new"}).memory_policy == "none-new"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("5", "gave an int; return a Memory"),
        ("Memory(ids, labels)", "kept 4 examples; keep at most `capacity` of them, here 3"),
        ("Memory(ids[[0, 0]], labels[[0, 0]])", "kept an example twice"),
        ("Memory(ids[:1] + 99, labels[:1])", "kept the id 103"),
        ("Memory(ids[1:], labels[1:])", ""),
        ("Memory(memory.ids, memory.labels)", ""),
    ],
)
def test_a_wrong_memory_names_the_file_and_the_line(tmp_path, answer, says):
    file = tmp_path / "mine.py"
    file.write_text(
        "from accuacl.experiments.memory import Memory, register\n\n\n@register('mine')\n"
        f"def mine(memory, ids, labels, features, capacity, seed, logits=None):\n    return {answer}\n"
    )
    load_plugins([file])
    policy, past, ids = memory.POLICIES["mine"], memory.Memory(np.arange(2), np.arange(2)), np.arange(4, 8)
    kept = policy(past, ids, ids, np.ones((6, 2)), 3, 0)
    if says:
        with pytest.raises(InputError) as refused:
            memory.check_kept("mine", policy, kept, past, ids, 3)
        assert f"the memory policy mine ({file}, line 4) {says}" in str(refused.value)
    else:
        assert memory.check_kept("mine", policy, kept, past, ids, 3) is kept


def test_a_run_checks_what_a_memory_policy_keeps(tmp_path):
    (tmp_path / "mine.py").write_text(OTHERS.replace("return memory", "return 5"))
    options = [f"--{key}={value}" for key, value in SMALL.items()]
    ended = accuacl("run", *options, "--memory-policy=none-new", "--plugin=mine.py", cwd=tmp_path)
    assert ended.returncode == 2
    assert "the memory policy none-new" in ended.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "class Mine: ...",
            "must take one argument, the Round; register a class that inherits from accuacl.experiments.learners.",
        ),
        ("def mine(): return 3", "must take one argument, the Round;"),
        ("class Mine:\n    def __init__(self, round): ...", "is a Mine, which cannot `train` and `remember`; register"),
        ("class Mine:\n    def __init__(self, round): ...\n    remember = print", "is a Mine, which cannot `train`; "),
        ("class Mine(learners.Learner): ...", "has no `observe`; say there how"),
    ],
)
def test_a_learner_that_cannot_learn_is_refused_when_it_is_registered(tmp_path, text, says):
    file = tmp_path / "mine.py"
    file.write_text(f"from accuacl.experiments import learners\n\n\n@learners.register('mine')\n{text}\n")
    with pytest.raises(InputError) as refused:
        load_plugins([file])
    assert f"the learner mine ({file}, line 4) {says}" in str(refused.value)
    assert "mine" not in learners.REGISTRY


def test_a_function_that_makes_no_learner_names_the_file_and_the_line(tmp_path):
    file = tmp_path / "mine.py"
    text = "def mine(round): return 5"
    file.write_text(f"from accuacl.experiments import learners\n\n\n@learners.register('mine')\n{text}\n")
    load_plugins([file])
    with pytest.raises(InputError) as refused:
        learners.start("mine", SimpleNamespace(training=SimpleNamespace(policy="paper")))
    assert f"the learner mine ({file}, line 4) is an int, which cannot `train` and `remember`" in str(refused.value)


ANSWERS = """
from accuacl.experiments import learners

@learners.register("mine")
class Mine(learners.Learner):
    def observe(self, rows):
        return {loss}

    def remember(self):
        return {memory}
"""


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"loss": None}, "`observe` of Mine ({file}, line 4) gave a NoneType; return the mean loss of the batch, one"),
        ({"loss": "rows * 1.0"}, "`observe` of Mine ({file}, line 4) gave a tensor of shape (4,); return the mean"),
        ({"memory": None}, "`remember` of Mine ({file}, line 4) gave a NoneType; return a Memory, such as self.b"),
        ({"memory": "[1, 2]"}, "`remember` of Mine ({file}, line 4) gave a list; return a Memory"),
    ],
)
def test_a_run_checks_what_a_learner_gives(tmp_path, answers, says):
    file = tmp_path / "mine.py"
    file.write_text(ANSWERS.format(**{"loss": "0.0", "memory": "self.buffer"} | answers))
    options = [f"--{key}={value}" for key, value in SMALL.items()]
    ended = accuacl("run", *options, "--learner=mine", "--plugin=mine.py", cwd=tmp_path)
    assert ended.returncode == 2
    assert says.format(file=file) in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("head", ["def mine(): ...", "def mine(memory, ids, labels): ...", "class Mine: ..."])
def test_a_memory_policy_that_cannot_be_called_is_refused_when_it_is_registered(tmp_path, head):
    file = tmp_path / "mine.py"
    file.write_text(f"from accuacl.experiments import memory\n\n\n@memory.register('mine')\n{head}\n")
    with pytest.raises(InputError) as refused:
        load_plugins([file])
    says = "must take 7 arguments: memory, ids, labels, features, capacity, seed, logits."
    assert f"the memory policy mine ({file}, line 4) {says}" == str(refused.value)
    assert "mine" not in memory.POLICIES


@pytest.mark.parametrize("place", [strategies, learners, memory, data])
@pytest.mark.parametrize("name", ["", 3, None, "a b", "a/b", "a\\b", "a\n", b"a", ["a"], print])
def test_a_name_that_cannot_be_typed_is_refused(place, name):
    with pytest.raises(InputError, match=r"^an? .* cannot be called .*, (as text|with its name as text)\.$"):
        place.register(name)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (strategies, "full"),
        (strategies, "badge"),
        (learners, "er"),
        (memory, "paper"),
        (memory, "agreement"),
        (memory, "herding"),
        (data, "given"),
    ],
)
def test_a_name_that_is_taken_is_refused(place, name):
    with pytest.raises(InputError, match=f"cannot be called '{name}'; give it a name that is not taken"):
        place.register(name)


@pytest.mark.parametrize("place", [strategies, learners, memory, data])
def test_types_written_in_c_are_refused(place):
    with pytest.raises(InputError):
        place.register("mine")(int)


def test_the_page_has_a_learner_and_a_memory_policy_that_work(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text()
    (code,) = re.findall(r"```python\n(# my_learner.py\n.*?)```", page, re.DOTALL)
    (tmp_path / "my_learner.py").write_text(code)
    options = [f"--{key}={value}" for key, value in SMALL.items()]
    for choice in ("--learner=new-only", "--memory-policy=latest"):
        ended = accuacl("run", *options, choice, "--plugin=my_learner.py", "--out", choice, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("place", [learners, memory])
def test_what_cannot_be_called_is_refused_when_it_is_registered(place):
    with pytest.raises(InputError, match="mine is an int; register a"):
        place.register("mine")(3)


STREAM = """
import numpy as np
from accuacl.experiments import data

@data.register("by-ink")
def by_ink(dataset, seed):
    ink = dataset.train.inputs.reshape(len(dataset.train), -1).sum(axis=1)
    return np.argsort(np.argsort(ink, kind="stable")) * 3 // len(ink)
"""


def test_a_stream_can_be_plugged_in(tmp_path):
    (tmp_path / "mine.py").write_text(STREAM)
    options = [f"--{key}={value}" for key, value in (SMALL | {"tasks": 0}).items()]
    words = ("run", *options, "--arrival=by-ink", "--plugin=mine.py", "--out=a")
    ended = accuacl(*words, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    assert len(result["accuracy_matrix"]) == 3
    assert result["config"]["arrival"] == "by-ink"
    load_file(tmp_path / "mine.py")
    stream = open_stream(make({"arrival": "by-ink", "blur": 0.1}), None, False)
    ink = stream.dataset.train.inputs.reshape(len(stream.dataset.train), -1).sum(axis=1)
    means = [ink[task.train].mean() for task in stream]
    assert means == sorted(means)
    rows = np.concatenate([task.train for task in stream])
    assert len(np.unique(rows)) == len(rows) == len(ink)
    assert sum(len(task.classes) for task in stream) > 10, "classes come back"
    again = accuacl(*words[:-1], "--out=b", "--classes-per-task=2", cwd=tmp_path)
    assert (again.returncode, "by-ink makes the tasks, so leave out --classes-per-task" in again.stderr) == (2, True)


def test_a_streams_own_test_rows_are_taken_and_its_seed_is_the_streams():
    seeds = []

    @data.register("halves")
    def halves(dataset, seed):
        seeds.append(seed)
        return np.arange(len(dataset.train)) % 2, np.full(len(dataset.test), 1)

    with pytest.raises(InputError, match=r"task 1 .* 0 test examples"):
        open_stream(make({"arrival": "halves", "seed": 4, "stream_seed": 5}), None, False)
    assert seeds == [5]
    settings = make({"arrival": "halves", "stream_seed": 5}).model_dump()
    assert canonical(settings)["stream_seed"] == 5, "another seed may make another stream"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("[0, 1]", "gave a list, but there are 1201 training rows; give an array"),
        ("np.zeros(1201)", "gave an array of float64, shape (1201,)"),
        ("np.zeros(7, int)", "shape (7,), but there are 1201 training rows"),
        ("np.full(1201, -2)", "gave a row to task -2; number tasks from 0 on"),
        ("np.full(1201, -1)", "gave no training row to task 0"),
        ("np.full(1201, 1)", "gave no training row to task 0"),
        ("(np.zeros(1201, int), np.zeros(3, int))", "shape (3,), but there are 596 test rows"),
        ("(1, 2, 3)", "gave 3 arrays"),
    ],
)
def test_a_wrong_stream_names_the_file_and_the_line(tmp_path, answer, says):
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\nfrom accuacl.experiments import data\n\n\n"
        f"@data.register('mine')\ndef mine(dataset, seed):\n    return {answer}\n"
    )
    load_plugins([file])
    with pytest.raises(InputError) as refused:
        open_stream(make({"arrival": "mine"}), None, False)
    assert f"the stream mine ({file}, line 5) " in str(refused.value)
    assert says in str(refused.value)


@pytest.mark.parametrize("stream", [3, lambda dataset: 0, lambda dataset, seed, more: 0])
def test_a_stream_that_cannot_be_called_is_refused_when_it_is_registered(stream):
    with pytest.raises(InputError, match="must take two arguments, the data set and a seed"):
        data.register("mine")(stream)


def test_a_file_that_registers_nothing_is_told(tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="registers nothing; put @accuacl"):
        load_plugins([tmp_path / "mine.py"])

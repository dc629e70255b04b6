"""The engine of local processes: results, errors, deaths, and what is left behind."""

from __future__ import annotations

import functools
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from accuacl import engines
from accuacl.engines import Failure, Local
from effort import gone, wait_until
from engine_items import dies, double, fails, slow_or_quick, who, who_with_another


@pytest.fixture(scope="module")
def engine():
    with Local(2) as engine:
        yield engine


def test_all_items_once(engine):
    told = []
    done = list(engine.map(double, range(25), lambda index, p: told.append((index, p.share, p.text))))
    assert sorted((end.index, end.value) for end in done) == [(i, 2 * i) for i in range(25)]
    assert sorted(told) == [(i, 0.5, f"at {i}") for i in range(25)]
    assert list(engine.map(double, [])) == []


def test_failures_are_values_and_stop_nothing(engine):
    done = {end.index: end for end in engine.map(fails, range(6))}
    assert done[1].failure == Failure("input", "one is wrong")
    bug = done[2].failure
    assert (bug.kind, bug.message) == ("bug", "RuntimeError: two is a fault")
    assert 'raise RuntimeError("two is a fault")' in bug.traceback  # where it happened
    assert [done[i].value for i in (0, 3, 4, 5)] == [0, 3, 4, 5]


def test_items_are_made_when_their_turn_comes(engine):
    class Items(list):
        now = 0

        def __getitem__(self, index):
            return self.now

    items, seen = Items(range(30)), []
    for end in engine.map(double, items):
        items.now += 1
        seen.append(end.value)
    assert max(seen) >= 40  # the last ones saw how far the others were


@pytest.mark.parametrize("often", [1, 2])
def test_a_killed_worker_is_replaced_and_its_item_done_again(engine, tmp_path, often):
    done = list(engine.map(functools.partial(dies, tmp_path, often), range(12)))
    assert sorted(end.value for end in done) == list(range(12))


def test_an_item_that_kills_again_and_again_has_failed(engine, tmp_path):
    done = {end.index: end for end in engine.map(functools.partial(dies, tmp_path, 99), range(6))}
    assert done[3].failure == Failure("death", "its process died 3 times (killed by SIGKILL).")
    assert [done[i].value for i in (0, 1, 2, 4, 5)] == [0, 1, 2, 4, 5]


def test_workers_stay_within_a_block_and_have_one_thread(engine, tmp_path):
    first = {end.value for end in engine.map(functools.partial(who_with_another, tmp_path), range(8))}
    assert len(first) == 2
    assert {threads for _, threads in first} == {"1"}
    with engine:
        pass
    assert {end.value for end in engine.map(who, range(8))} <= first


def test_without_a_block_they_end_with_the_map():
    pids = {end.value[0] for end in Local(1).map(who, range(2))}
    wait_until(lambda: all(gone(pid) for pid in pids))


def test_stopping_early_ends_them_at_once(tmp_path):
    with Local(2) as engine:
        running = engine.map(slow_or_quick, [(True, tmp_path / "a"), (False, tmp_path / "a")])
        assert next(running).index == 1
        running.close()
    wait_until(lambda: gone(int((tmp_path / "a").read_text())))


@pytest.mark.posix
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path, how):
    code = (
        "import sys\nsys.path.insert(0, sys.argv[1])\n"
        "from accuacl.engines import Local\nimport engine_items as t\n"
        "if __name__ == '__main__':\n    list(Local(2).map(t.slow, sys.argv[2:]))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    places = [tmp_path / "a", tmp_path / "b"]
    parent = subprocess.Popen(
        [sys.executable, script, str(Path(__file__).parent), *map(str, places)], stderr=subprocess.PIPE
    )
    wait_until(lambda: all(place.exists() and place.read_text() for place in places))
    parent.send_signal(how)
    parent.communicate(timeout=300)
    wait_until(lambda: all(gone(int(place.read_text())) for place in places))


def test_a_script_without_a_guard_is_told_about_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from accuacl.engines import Local\nprint(list(Local(1).map(abs, [1])))\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert done.returncode
    assert "a script that uses several processes must do so under `if __name__" in done.stderr


def test_wrong_names_and_numbers():
    with pytest.raises(ValueError, match="workers is -1; give a number of processes"):
        Local(-1)
    with pytest.raises(ValueError, match="there is no engine 'dask'; give local or ray"):
        engines.get("dask")
    with pytest.raises(ValueError, match="the engine is local; give --engine ray"):
        engines.get("local", address="10.0.0.1:6379")


def test_a_worker_cannot_be_interrupted_before_it_ignores_that():
    """Also the first one, with which Python starts a helper of its own."""
    program = (
        "from accuacl.engines.engine import _Worker\n"
        "worker = _Worker()\n"
        "print(open(f'/proc/{worker.process.pid}/status').read())\n"
        "worker.close(), worker.end()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    blocked = int(re.search(r"SigBlk:\s*(\w+)", done.stdout).group(1), 16)
    assert blocked >> (signal.SIGINT - 1) & 1

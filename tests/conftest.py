"""For all tests."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile

import hypothesis
import pytest

from accuacl.base.userfile import PREFIX
from effort import LONG, wait_until

# A busy machine is no fault, and the same commit tries the same problems; `make test-long` draws new ones each time.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=not LONG)
hypothesis.settings.load_profile("steady")

# A shell that starts a job in the background has it ignore Ctrl-C, and all that it starts; tests send Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Which models' files a user trusts is remembered in the user's own folder; tests have another.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="accuacl-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# Where memory can be used as a disk, tests write there: they wait for the disk thousands of times, and none of them
# shows what happens when it loses power.
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free >> 32:
    os.environ["PYTEST_DEBUG_TEMPROOT"] = "/dev/shm"


def pytest_collection_modifyitems(items):
    """Leave out what is marked as needing POSIX (signals, links, permissions, /proc) where the system has none."""
    for item in items:
        if os.name != "posix" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="needs POSIX"))


@pytest.fixture
def ada(store):
    """Who labels in the `store` of a test."""
    return store.person_of(store.add_person("Ada"))


@pytest.fixture
def bob(store):
    return store.person_of(store.add_person("Bob"))


# The page, over HTTP and in a browser. A module's PROJECT has the settings of its project: see `image_project`.


@pytest.fixture(scope="module")
def chromium():
    from web_browser import browser

    with browser() as launched:
        yield launched


@pytest.fixture
def watch():
    """Pages whose complaints make the test fail."""
    from web_browser import Watch

    watch = Watch()
    yield watch
    assert watch.complaints == []


@pytest.fixture
def project(request, tmp_path):
    from web_project import image_project

    with image_project(tmp_path, **getattr(request.module, "PROJECT", {})) as project:
        yield project


@pytest.fixture
def trainer(project):
    from web_project import TestTrainer

    return TestTrainer(project)


@pytest.fixture
def server(project, trainer):
    """The address at which the project is served; its first round has been chosen."""
    from web_project import running

    with running(project, trainer=trainer) as address:
        wait_until(trainer.has_chosen)
        yield address


@pytest.fixture
def client(server, project):
    """Ada, who leads the project and is logged in."""
    from web_project import browse, log_in

    with browse(server) as client:
        log_in(client, project, "Ada")
        yield client


def pytest_collection_finish():
    """What has been collected stays until the end: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Forget the users' files that were imported, or every worker of a later test would import them, or miss them."""
    goes_on = nextitem is not None and nextitem.path == item.path
    for name in [name for name in list(sys.modules) if name.startswith(PREFIX)]:
        if not goes_on or not os.path.exists(sys.modules[name].__file__):
            del sys.modules[name]

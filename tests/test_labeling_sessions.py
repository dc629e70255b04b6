"""Getting in: invitations are used once and expire, sessions end unused, at log-out and when access is revoked."""

from __future__ import annotations

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Store
from accuacl.labeling.store import INVITATION, SESSION

DAY = 24 * 3600.0


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with Store(tmp_path / "labels.sqlite", clock, clock) as store:
        yield store


def whose(store, session):
    return store.person_of_session(session)[0]


def test_an_invitation_is_used_once(store, tmp_path):
    token = store.add_person("Ada")
    session = store.enter(token)
    assert whose(store, session).name == "Ada"
    assert store.enter(token) is None
    assert store.person_of(token) is None
    assert whose(store, token) is None  # an invitation is not a session
    assert store.enter(session) is None
    for secret in (token, session):
        assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_an_invitation_expires_and_a_new_one_ends_it(store, clock):
    first = store.add_person("Ada")
    second = store.invite("Ada")
    assert store.enter(first) is None
    clock.now += INVITATION + 1
    assert store.enter(second) is None
    assert whose(store, store.enter(store.invite("Ada"))).id == 0
    with pytest.raises(InputError, match="there is no person 'Bob' with access"):
        store.invite("Bob")


def test_a_session_lasts_while_it_is_used(store, clock):
    session = store.enter(store.add_person("Ada"))
    for _ in range(4):
        clock.now += SESSION - DAY
        assert [store.person_of_session(session)[1] for _ in range(2)] == [True, False]  # prolonged once a day
    clock.now += SESSION + 1
    assert whose(store, session) is None


def test_a_session_ends_at_log_out_alone_and_with_all_others_when_revoked(store):
    sessions = [store.enter(store.add_person("Ada"))]
    sessions += [store.enter(store.invite("Ada")) for _ in range(2)]
    other = store.enter(store.add_person("Bob"))
    left = store.invite("Ada")
    store.leave(sessions[0])
    assert [whose(store, session) is None for session in sessions] == [True, False, False]
    store.revoke("Ada")
    assert [whose(store, session) is None for session in sessions] == [True, True, True]
    assert store.enter(left) is None
    assert whose(store, other).name == "Bob"


def test_the_first_person_leads_and_somebody_always_does(store):
    for name in ("Ada", "Bob"):
        store.add_person(name)
    store.add_person("Cleo", lead=True)
    assert [person.lead for person in store.people()] == [True, False, True]
    store.set_role("Ada", lead=False)
    with pytest.raises(InputError, match="'Cleo' is the only lead"):
        store.set_role("Cleo", lead=False)
    store.set_role("Bob", lead=True)
    assert [person.lead for person in store.people()] == [False, True, True]
    assert whose(store, store.enter(store.invite("Bob"))).lead

"""Second opinions that a round waits for."""

from __future__ import annotations

import math

from accuacl.labeling.store import people
from accuacl.labeling.store.database import Transaction

ABSENT = 600.0  # seconds without a lease after which nobody waits for a person's opinion
OWN = "own"  # the text of a correction by somebody who may change only their own answers: it settles no dispute
NOT_OWN = (  # the person has neither answered nor corrected the item
    "NOT EXISTS (SELECT 1 FROM events o WHERE o.item = s.item AND o.person = ? AND o.kind IN "
    "('label', 'opinion', 'correct') AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = o.id))"
)
PENDING = (  # of a round: labelled by one person, while another one is still to be asked
    "FROM picks p INDEXED BY picks_of_several JOIN state s ON s.item = p.item WHERE p.task = ? AND p.round = ? "
    "AND p.people > 1 AND s.answer IS NOT NULL AND NOT s.skipped AND s.opinions < p.people - 1"
)


def waited_for(tx: Transaction, task: int, round: int) -> int:
    """How many second opinions the round waits for: those that somebody who is there can give.

    Whoever has logged out, or had nothing to label for ten minutes, holds up nobody, and a person alone is not asked
    twice.
    """
    if tx.one(f"SELECT 1 {PENDING} LIMIT 1", task, round) is None:
        return 0
    can: set[int] = set()
    for person in people.everyone(tx):
        if not person.revoked and _is_there(tx, person.id):
            can |= {item for (item,) in tx.all(f"SELECT s.item {PENDING} AND {NOT_OWN}", task, round, person.id)}
    return len(can)


def _is_there(tx: Transaction, person: int) -> bool:
    """Whoever labels has leases, which are renewed while they look at an item; whoever logs out has left."""
    latest = "SELECT id, time FROM events WHERE kind = ? AND person = ? ORDER BY id DESC LIMIT 1"
    lease, renewal, left = (tx.one(latest, kind, person) or (0, -math.inf) for kind in ("lease", "renew", "leave"))
    last = max(lease, renewal)
    return bool(last > left and last[1] > tx.now - ABSENT)

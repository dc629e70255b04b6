"""Fair shares: whoever finds nothing free is given of what others hold beyond their share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from accuacl.labeling.store import rounds
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.pending import NOT_OWN
from accuacl.labeling.store.records import Person, Pick

SHOWN = "EXISTS (SELECT 1 FROM events g WHERE g.item = s.item AND g.kind = 'guess' AND g.person = s.person)"


@dataclass(frozen=True)
class Spare:
    """An item that somebody holds and another person may be given instead."""

    pick: Pick
    holder: int


def spare(tx: Transaction, person: Person, current: tuple[int, int], most: int) -> list[Spare]:
    """Up to `most` items of the round that others hold, one after another from whoever holds most, until the person
    has as many as each would have.

    Everybody keeps their share, one item at least, and the one that they work on: the last that was leased or renewed.
    Of the others those go first that they have not been shown, then those that they have left alone the longest.
    """
    rows = tx.all(
        f"SELECT s.person, s.lease, {NOT_OWN}, {rounds.PICK} FROM state s JOIN picks p ON p.item = s.item "
        "WHERE s.task = ? AND s.round = ? AND s.lease IS NOT NULL AND s.until > ? "
        "AND (s.answer IS NULL OR (NOT s.skipped AND s.opinions < p.people - 1)) "
        f"ORDER BY {SHOWN}, s.lease",
        *(person.id, *current, tx.now),
    )
    held = Counter(holder for holder, *_ in rows)
    own = held.pop(person.id, 0)
    share = -(-len(rows) // (len(held) + 1))
    latest = {holder: lease for holder, lease, *_ in sorted(rows, key=lambda row: row[1])}
    able: dict[int, list[Pick]] = {holder: [] for holder in held}
    for holder, lease, may_have, *pick in rows:
        if holder != person.id and may_have and lease != latest[holder]:
            able[holder].append(rounds.pick(pick))
    found: list[Spare] = []
    while len(found) < min(most, share - own):
        rich = [holder for holder, picks in able.items() if picks and held[holder] > share]
        if not rich:
            break
        holder = max(rich, key=lambda holder: held[holder])
        found.append(Spare(able[holder].pop(0), holder))
        held[holder] -= 1
    return found


def take(tx: Transaction, person: Person, spares: list[Spare], seconds: float) -> list[Pick]:
    """Give the person what others can spare; the items, now leased to them."""
    for one in spares:
        tx.event("release", person=one.holder, item=one.pick.item)
        tx.event("lease", person=person.id, item=one.pick.item, until=tx.now + seconds)
    return [one.pick for one in spares]

"""The tables of `labels.sqlite`, their version, and how a file of an older version is brought to this one.

The version is SQLite's `user_version`. A new version is one more entry at the end of MIGRATIONS; entries never change.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from accuacl.base.databases import table_version

WAIT = 60.0  # seconds for another process to finish its write
TABLES = """
CREATE TABLE IF NOT EXISTS people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, token TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS classes (id INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS rounds (
    task INTEGER NOT NULL, round INTEGER NOT NULL, PRIMARY KEY (task, round)
);
CREATE TABLE IF NOT EXISTS closed (
    task INTEGER NOT NULL, round INTEGER NOT NULL, snapshot TEXT NOT NULL, PRIMARY KEY (task, round),
    FOREIGN KEY (task, round) REFERENCES rounds (task, round)
);
CREATE TABLE IF NOT EXISTS picks (
    item INTEGER PRIMARY KEY, task INTEGER NOT NULL, round INTEGER NOT NULL, rank INTEGER NOT NULL,
    scores TEXT NOT NULL, guess INTEGER, confidence REAL,
    UNIQUE (task, round, rank), FOREIGN KEY (task, round) REFERENCES rounds (task, round)
);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL,
    person INTEGER REFERENCES people (id), item INTEGER REFERENCES picks (item),
    class INTEGER REFERENCES classes (id), until REAL, undoes INTEGER REFERENCES events (id),
    request TEXT, text TEXT
);
CREATE INDEX IF NOT EXISTS events_of_item ON events (item, id) WHERE item IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_of_kind ON events (kind, person, id);
CREATE UNIQUE INDEX IF NOT EXISTS undone_once ON events (undoes) WHERE undoes IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS requested_once ON events (request) WHERE request IS NOT NULL;
CREATE VIEW IF NOT EXISTS standing AS  -- labels, skips and corrections that have not been undone
    SELECT * FROM events e WHERE kind IN ('label', 'skip', 'correct')
    AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id);
CREATE VIEW IF NOT EXISTS answers AS  -- the last of these for each item
    SELECT * FROM standing s
    WHERE NOT EXISTS (SELECT 1 FROM standing later WHERE later.item = s.item AND later.id > s.id);
CREATE VIEW IF NOT EXISTS holders AS  -- who holds the lease of an item, if it has not expired by now
    SELECT p.item, p.task, p.round, p.rank, e.id, e.person, e.until FROM picks p JOIN events e ON e.id = (
        SELECT id FROM events WHERE item = p.item AND kind IN ('lease', 'renew', 'release', 'label', 'skip')
        ORDER BY id DESC LIMIT 1
    ) WHERE e.kind IN ('lease', 'renew');
"""
APPEND_ONLY = [
    f"CREATE TRIGGER IF NOT EXISTS {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'nothing here is ever changed or removed'); END"
    for table in ("people", "classes", "rounds", "closed", "picks", "events")
    for verb in ("UPDATE", "DELETE")
]
ENTRY = """
CREATE TABLE invitations (
    hash TEXT PRIMARY KEY, person INTEGER NOT NULL REFERENCES people (id), until REAL NOT NULL
);
CREATE TABLE sessions (hash TEXT PRIMARY KEY, person INTEGER NOT NULL REFERENCES people (id), until REAL NOT NULL);
"""
# What follows from the events of each item, so that nobody has to go through them: its answer that stands, and who
# holds its lease. Triggers keep it, in the transaction of the event.
STATE = """
CREATE TABLE state (
    item INTEGER PRIMARY KEY REFERENCES picks (item), task INTEGER NOT NULL, round INTEGER NOT NULL,
    rank INTEGER NOT NULL, answer INTEGER REFERENCES events (id), skipped INTEGER NOT NULL DEFAULT 0,
    lease INTEGER REFERENCES events (id), person INTEGER, until REAL
);
CREATE INDEX state_open ON state (task, round, rank) WHERE answer IS NULL;
CREATE INDEX state_round ON state (task, round, skipped) WHERE answer IS NOT NULL;
CREATE INDEX state_leased ON state (person) WHERE lease IS NOT NULL;
INSERT INTO state (item, task, round, rank) SELECT item, task, round, rank FROM picks;
UPDATE state SET answer = (SELECT id FROM answers a WHERE a.item = state.item);
UPDATE state SET skipped = 1 WHERE answer IN (SELECT id FROM events WHERE kind = 'skip');
UPDATE state SET lease = h.id, person = h.person, until = h.until FROM holders h WHERE h.item = state.item;
DROP VIEW answers;
DROP VIEW holders;
CREATE VIEW answers AS SELECT e.* FROM state s JOIN events e ON e.id = s.answer;
CREATE VIEW holders AS
    SELECT item, task, round, rank, lease AS id, person, until FROM state WHERE lease IS NOT NULL;
"""
TRIGGERS = [
    "CREATE TRIGGER state_of_pick AFTER INSERT ON picks BEGIN INSERT INTO state (item, task, round, rank) "
    "VALUES (NEW.item, NEW.task, NEW.round, NEW.rank); END",
    "CREATE TRIGGER state_of_answer AFTER INSERT ON events WHEN NEW.kind IN ('label', 'skip') BEGIN UPDATE state "
    "SET answer = NEW.id, skipped = NEW.kind = 'skip', lease = NULL, person = NULL, until = NULL "
    "WHERE item = NEW.item; END",
    "CREATE TRIGGER state_of_correction AFTER INSERT ON events WHEN NEW.kind = 'correct' BEGIN UPDATE state "
    "SET answer = NEW.id, skipped = 0 WHERE item = NEW.item; END",
    "CREATE TRIGGER state_of_undo AFTER INSERT ON events WHEN NEW.kind = 'undo' BEGIN UPDATE state "
    "SET answer = (SELECT MAX(id) FROM standing WHERE item = NEW.item), skipped = COALESCE((SELECT kind = 'skip' "
    "FROM standing WHERE item = NEW.item ORDER BY id DESC LIMIT 1), 0) WHERE item = NEW.item; END",
    "CREATE TRIGGER state_of_lease AFTER INSERT ON events WHEN NEW.kind IN ('lease', 'renew') BEGIN UPDATE state "
    "SET lease = NEW.id, person = NEW.person, until = NEW.until WHERE item = NEW.item; END",
    "CREATE TRIGGER state_of_release AFTER INSERT ON events WHEN NEW.kind = 'release' BEGIN UPDATE state "
    "SET lease = NULL, person = NULL, until = NULL WHERE item = NEW.item; END",
]
# Opinions: labels that do not count, but are compared with those that do. `people`: how many are asked about a pick.
OPINIONS = """
ALTER TABLE picks ADD COLUMN people INTEGER NOT NULL DEFAULT 1;
ALTER TABLE state ADD COLUMN opinions INTEGER NOT NULL DEFAULT 0;
CREATE INDEX picks_of_several ON picks (task, round) WHERE people > 1;
CREATE TABLE gold (item INTEGER PRIMARY KEY, class INTEGER NOT NULL REFERENCES classes (id));
CREATE VIEW given AS  -- what people have answered by themselves, and not undone
    SELECT * FROM events e WHERE kind IN ('label', 'opinion')
    AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id);
"""
OPINION_TRIGGERS = [
    "CREATE TRIGGER state_of_opinion AFTER INSERT ON events WHEN NEW.kind = 'opinion' BEGIN UPDATE state "
    "SET opinions = opinions + 1, lease = NULL, person = NULL, until = NULL WHERE item = NEW.item; END",
    "CREATE TRIGGER state_of_opinion_undone AFTER INSERT ON events WHEN NEW.kind = 'undo' BEGIN UPDATE state "
    "SET opinions = (SELECT COUNT(*) FROM given WHERE item = NEW.item AND kind = 'opinion') "
    "WHERE item = NEW.item; END",
]
# How many picks of a round have an answer, so that nobody has to count them for every label.
TALLY = """
CREATE TABLE tally (
    task INTEGER NOT NULL, round INTEGER NOT NULL, total INTEGER NOT NULL, answered INTEGER NOT NULL,
    skipped INTEGER NOT NULL, PRIMARY KEY (task, round)
);
INSERT INTO tally SELECT task, round, COUNT(*), COUNT(answer), SUM(answer IS NOT NULL AND skipped)
    FROM state GROUP BY task, round;
"""
TALLY_TRIGGERS = [
    "CREATE TRIGGER tally_of_pick AFTER INSERT ON state BEGIN INSERT INTO tally VALUES (NEW.task, NEW.round, 1, 0, 0) "
    "ON CONFLICT (task, round) DO UPDATE SET total = total + 1; END",
    "CREATE TRIGGER tally_of_answer AFTER UPDATE OF answer, skipped ON state BEGIN UPDATE tally "
    "SET answered = answered + (NEW.answer IS NOT NULL) - (OLD.answer IS NOT NULL), "
    "skipped = skipped + (NEW.answer IS NOT NULL AND NEW.skipped) - (OLD.answer IS NOT NULL AND OLD.skipped) "
    "WHERE task = NEW.task AND round = NEW.round; END",
    "CREATE TRIGGER tally_of_forgotten AFTER DELETE ON state BEGIN UPDATE tally SET total = total - 1, "
    "answered = answered - (OLD.answer IS NOT NULL), "
    "skipped = skipped - (OLD.answer IS NOT NULL AND OLD.skipped) "
    "WHERE task = OLD.task AND round = OLD.round; END",
]
MIGRATIONS = [  # the statements that bring a file of version i to version i + 1
    [*TABLES.strip().split(";\n"), *APPEND_ONLY],  # version 0: a new file, or one from before versions were recorded
    # version 1: people had one token each and no role, and every question went through the events
    [*ENTRY.strip().split(";\n"), *STATE.strip().split(";\n"), *TRIGGERS],
    # version 2: one person labelled each item
    [*OPINIONS.strip().split(";\n"), *OPINION_TRIGGERS],
    # version 3: answers were counted for every label
    [*TALLY.strip().split(";\n"), *TALLY_TRIGGERS],
]
VERSION = len(MIGRATIONS)


def upgrade(db: sqlite3.Connection, path: Path) -> None:
    """Bring the file to this version, or refuse one of a newer version. A file of this version is not written to."""
    if table_version(db, path, VERSION) == VERSION:
        return
    _write_ahead(db)
    db.execute("BEGIN IMMEDIATE")
    try:
        version = table_version(db, path, VERSION)  # another process may have upgraded it meanwhile
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _write_ahead(db: sqlite3.Connection) -> None:
    """Set SQLite's write-ahead log. For this one statement SQLite does not wait while another process uses the file."""
    give_up = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)

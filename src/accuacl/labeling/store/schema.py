"""The tables of `labels.sqlite`, and which of them are derived from which.

Everything that people do is a row of `events`, which is never changed or removed. Triggers update what follows from it,
in the transaction of the event, so that no question needs a scan of all events:

- `state` of an item follows from `events`: the answer that counts, the lease, the number of second opinions.
- `tally` of a round follows from `state`: how many picks it has, how many are answered, how many of these skipped.

| kinds of events | columns that they use beside time and person |
|---|---|
| person, role, revoke, leave | text: the name, the role |
| name, merge | class, text: its name, or the number of the class that it is merged into |
| unclass | undoes: a name or a merge |
| guide | class, text: JSON of the guideline and its examples |
| propose; settle | text: the name; undoes: the proposal, class: the new class, if any |
| open, close, enough, seal | text: JSON of [task, round] or [task]; of seal the task |
| lease, renew; release | item, until; item |
| label, skip, opinion, correct | item, class (none: skipped), request; text: "own", "decision" or a reason |
| undo | item, request, undoes: one of these four |
| guess | item, class: the model's guess that the person was shown |
| comment, flag; unflag | item, text, request; item |
| gold | item and class, or text: JSON of a list of items |
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from accuacl.base.databases import table_version
from accuacl.base.errors import InputError

VERSION = 4  # SQLite's `user_version`: 4 is format 1, that of the first release; smaller numbers are older files
WAIT = 60.0  # seconds for another process to finish its write

TABLES = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, token TEXT NOT NULL);  -- token: '', not used

-- How people get in. Only hashes are kept; what is used up or over is deleted.
CREATE TABLE invitations (
    hash TEXT PRIMARY KEY, person INTEGER NOT NULL REFERENCES people (id), until REAL NOT NULL
);
CREATE TABLE sessions (hash TEXT PRIMARY KEY, person INTEGER NOT NULL REFERENCES people (id), until REAL NOT NULL);

CREATE TABLE classes (id INTEGER PRIMARY KEY);  -- their names are events

CREATE TABLE rounds (task INTEGER NOT NULL, round INTEGER NOT NULL, PRIMARY KEY (task, round));

-- The labels that a round was closed with: JSON of [[item, class or -1], ...].
CREATE TABLE closed (
    task INTEGER NOT NULL, round INTEGER NOT NULL, snapshot TEXT NOT NULL, PRIMARY KEY (task, round),
    FOREIGN KEY (task, round) REFERENCES rounds (task, round)
);

-- What is to be labelled. people: how many are asked about it.
CREATE TABLE picks (
    item INTEGER PRIMARY KEY, task INTEGER NOT NULL, round INTEGER NOT NULL, rank INTEGER NOT NULL,
    scores TEXT NOT NULL, guess INTEGER, confidence REAL, people INTEGER NOT NULL DEFAULT 1,
    UNIQUE (task, round, rank), FOREIGN KEY (task, round) REFERENCES rounds (task, round)
);
CREATE INDEX picks_of_several ON picks (task, round) WHERE people > 1;

-- Items whose answers are known.
CREATE TABLE gold (item INTEGER PRIMARY KEY, class INTEGER NOT NULL REFERENCES classes (id));

CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL,
    person INTEGER REFERENCES people (id), item INTEGER REFERENCES picks (item),
    class INTEGER REFERENCES classes (id), until REAL, undoes INTEGER REFERENCES events (id),
    request TEXT, text TEXT
);
CREATE INDEX events_of_item ON events (item, id) WHERE item IS NOT NULL;
CREATE INDEX events_of_kind ON events (kind, person, id);
CREATE UNIQUE INDEX undone_once ON events (undoes) WHERE undoes IS NOT NULL;
CREATE UNIQUE INDEX requested_once ON events (request) WHERE request IS NOT NULL;

-- What follows from the events of a pick. answer: the event of the label, skip or correction that counts.
-- lease: the event that leased it last, if nobody has answered or released it since; it is over at `until`.
CREATE TABLE state (
    item INTEGER PRIMARY KEY REFERENCES picks (item), task INTEGER NOT NULL, round INTEGER NOT NULL,
    rank INTEGER NOT NULL, answer INTEGER REFERENCES events (id), skipped INTEGER NOT NULL DEFAULT 0,
    lease INTEGER REFERENCES events (id), person INTEGER, until REAL, opinions INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX state_open ON state (task, round, rank) WHERE answer IS NULL;
CREATE INDEX state_round ON state (task, round, skipped) WHERE answer IS NOT NULL;
CREATE INDEX state_leased ON state (person) WHERE lease IS NOT NULL;

-- What follows from the state of the picks of a round.
CREATE TABLE tally (
    task INTEGER NOT NULL, round INTEGER NOT NULL, total INTEGER NOT NULL, answered INTEGER NOT NULL,
    skipped INTEGER NOT NULL, PRIMARY KEY (task, round)
);

-- Labels, skips and corrections that have not been undone.
CREATE VIEW standing AS
    SELECT * FROM events e WHERE kind IN ('label', 'skip', 'correct')
    AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id);

-- Labels and second opinions that have not been undone: what people said without knowing what others had.
CREATE VIEW given AS
    SELECT * FROM events e WHERE kind IN ('label', 'opinion')
    AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id);

-- The answer that counts, for each item that has one.
CREATE VIEW answers AS SELECT e.* FROM state s JOIN events e ON e.id = s.answer;

-- The leases, also those that have expired.
CREATE VIEW holders AS
    SELECT item, task, round, rank, lease AS id, person, until FROM state WHERE lease IS NOT NULL;
"""

TRIGGERS = """
-- A pick begins without an answer and without a lease.
CREATE TRIGGER state_of_pick AFTER INSERT ON picks BEGIN
    INSERT INTO state (item, task, round, rank) VALUES (NEW.item, NEW.task, NEW.round, NEW.rank);
END;

-- A label or a skip is the answer, and ends the lease.
CREATE TRIGGER state_of_answer AFTER INSERT ON events WHEN NEW.kind IN ('label', 'skip') BEGIN
    UPDATE state SET answer = NEW.id, skipped = NEW.kind = 'skip', lease = NULL, person = NULL, until = NULL
    WHERE item = NEW.item;
END;

-- A correction is the answer; whoever holds the item for a second opinion keeps it.
CREATE TRIGGER state_of_correction AFTER INSERT ON events WHEN NEW.kind = 'correct' BEGIN
    UPDATE state SET answer = NEW.id, skipped = 0 WHERE item = NEW.item;
END;

-- A second opinion ends the lease and leaves the answer.
CREATE TRIGGER state_of_opinion AFTER INSERT ON events WHEN NEW.kind = 'opinion' BEGIN
    UPDATE state SET opinions = opinions + 1, lease = NULL, person = NULL, until = NULL WHERE item = NEW.item;
END;

-- After an undo the answer is the last that still stands, if any,
CREATE TRIGGER state_of_undo AFTER INSERT ON events WHEN NEW.kind = 'undo' BEGIN
    UPDATE state SET
        answer = (SELECT MAX(id) FROM standing WHERE item = NEW.item),
        skipped = COALESCE(
            (SELECT kind = 'skip' FROM standing WHERE item = NEW.item ORDER BY id DESC LIMIT 1), 0
        )
    WHERE item = NEW.item;
END;
-- and opinions are counted again.
CREATE TRIGGER state_of_opinion_undone AFTER INSERT ON events WHEN NEW.kind = 'undo' BEGIN
    UPDATE state SET opinions = (SELECT COUNT(*) FROM given WHERE item = NEW.item AND kind = 'opinion')
    WHERE item = NEW.item;
END;

-- The last lease holds the item until it is released or answered.
CREATE TRIGGER state_of_lease AFTER INSERT ON events WHEN NEW.kind IN ('lease', 'renew') BEGIN
    UPDATE state SET lease = NEW.id, person = NEW.person, until = NEW.until WHERE item = NEW.item;
END;
CREATE TRIGGER state_of_release AFTER INSERT ON events WHEN NEW.kind = 'release' BEGIN
    UPDATE state SET lease = NULL, person = NULL, until = NULL WHERE item = NEW.item;
END;

-- The tally of a round counts picks as they come, are answered or skipped, and are forgotten.
CREATE TRIGGER tally_of_pick AFTER INSERT ON state BEGIN
    INSERT INTO tally VALUES (NEW.task, NEW.round, 1, 0, 0) ON CONFLICT (task, round) DO UPDATE SET total = total + 1;
END;
CREATE TRIGGER tally_of_answer AFTER UPDATE OF answer, skipped ON state BEGIN
    UPDATE tally SET
        answered = answered + (NEW.answer IS NOT NULL) - (OLD.answer IS NOT NULL),
        skipped = skipped + (NEW.answer IS NOT NULL AND NEW.skipped) - (OLD.answer IS NOT NULL AND OLD.skipped)
    WHERE task = NEW.task AND round = NEW.round;
END;
CREATE TRIGGER tally_of_forgotten AFTER DELETE ON state BEGIN
    UPDATE tally SET
        total = total - 1,
        answered = answered - (OLD.answer IS NOT NULL),
        skipped = skipped - (OLD.answer IS NOT NULL AND OLD.skipped)
    WHERE task = OLD.task AND round = OLD.round;
END;
"""

APPEND_ONLY = {  # triggers by name that forbid changes; `rounds.forget` drops them for the time of its transaction
    f"{table}_no_{verb.lower()}": f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'nothing here is ever changed or removed'); END;"
    for table in ("people", "classes", "rounds", "closed", "picks", "events")
    for verb in ("UPDATE", "DELETE")
}


def create_tables(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file. A file that has them is not written to; one of another version is refused."""
    if _has_tables(db, path):
        return
    _write_ahead(db)
    triggers = "\n".join(APPEND_ONLY.values())
    try:
        db.executescript(f"BEGIN IMMEDIATE; {TABLES} {TRIGGERS} {triggers} PRAGMA user_version = {VERSION}; COMMIT;")
    except sqlite3.OperationalError:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if not _has_tables(db, path):  # otherwise another process has made them meanwhile
            raise


def _has_tables(db: sqlite3.Connection, path: Path) -> bool:
    version = table_version(db, path, VERSION)
    if version < VERSION and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise InputError(
            f"{path} was written before the first release of accuacl (its tables have version {version}, this program "
            f"reads version {VERSION}); export its labels with the program that wrote it, and make a new project."
        )
    return version == VERSION


def _write_ahead(db: sqlite3.Connection) -> None:
    """Turn on the write-ahead log. SQLite itself does not wait here while another process uses the file."""
    give_up = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)

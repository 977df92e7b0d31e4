"""A learner's progress in one SQLite file: every review, where each card stands, and sittings such as a mock paper.

Reviews are the truth. Where a card stands follows from them, and is kept beside them so that the next card is found at once.
Each change is one transaction: two windows wait for each other, and a process that is killed leaves the change whole or undone.
A sitting counts how often it was kept, so that of two windows on one paper the later notices that the other has gone on.
"""

import contextlib
import json
import sqlite3
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

import platformdirs
from pydantic import TypeAdapter

from .schedule import after

VERSION = 2
WAIT_SECONDS = 30
TABLES = """
CREATE TABLE review (uid TEXT PRIMARY KEY, card TEXT, at REAL, rating INTEGER, share REAL, seconds REAL, mode TEXT, draw TEXT);
CREATE INDEX review_of_card ON review (card, at);
CREATE TABLE card (name TEXT PRIMARY KEY, due REAL, state TEXT);
CREATE TABLE sitting (uid TEXT PRIMARY KEY, kind TEXT, at REAL, body TEXT, version INTEGER);
"""
# what makes a file of an earlier version one of this; 0 is an empty one
UPGRADES = {0: TABLES, 1: "ALTER TABLE sitting ADD COLUMN version INTEGER DEFAULT 0"}


class StoreError(ValueError):
    """A file of progress that cannot be used."""


class Overtaken(Exception):
    """A sitting that another window has kept since this one read it."""


@dataclass(frozen=True)
class Review:
    """A card answered: `card` is an exercise's id, or `id/part/mistake` for a misconception; `draw` says which numbers it had."""

    card: str
    at: float
    rating: int
    share: float
    seconds: float = 0.0
    mode: str = "practice"
    draw: str = ""
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass
class Sitting:
    """A mock paper or interview, kept as it goes: `body` is plain data, `version` how often it was kept."""

    kind: str
    at: float
    body: dict
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)
    version: int = 0


def default_path():
    """The file in this user's own data folder."""
    return Path(platformdirs.user_data_dir("sixteen-psi", appauthor=False)) / "drills.sqlite"


class Store:
    """Progress in the file at `path`, made if it is not there. Raises StoreError if the file is something else."""

    def __init__(self, path=None):
        self.path = Path(path) if path else default_path()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._told():
            self._db = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        self._run("PRAGMA journal_mode=WAL")
        with self._change():
            ((version,),) = self._run("PRAGMA user_version")
            if version in UPGRADES:
                for statement in filter(str.strip, UPGRADES[version].split(";")):
                    self._run(statement)
                self._run(f"PRAGMA user_version={VERSION}")
        if version > VERSION:
            raise StoreError(f"{self.path} was written by a newer version of this program (format {version}, known is {VERSION})")

    @contextlib.contextmanager
    def _told(self):
        """Say what went wrong with the file, and what to do about it."""
        try:
            yield
        except sqlite3.OperationalError as error:  # locked, read-only, no space left: the file itself is whole
            raise StoreError(
                f"{self.path} cannot be used now ({error}); what it has is kept. Put that right, or name another with --store"
            ) from None
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"{self.path} is not a file of progress, or damaged ({error}); move it away, or name another with --store"
            ) from None

    def _run(self, statement, values=()):
        """The rows that a statement gives."""
        with self._told():
            return self._db.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _change(self):
        """One transaction, begun before anything is read, so that nothing changes between reading and writing."""
        self._run("BEGIN IMMEDIATE")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk ends it by itself
                self._db.rollback()
            raise

    def close(self):
        self._db.close()

    # --- reviews and cards

    def record(self, *reviews):
        """Keep the reviews, all or none, and move their cards on."""
        with self._change():
            for review in reviews:
                self._insert(review)
                self._move_on(review)

    def _insert(self, review):
        self._run("INSERT INTO review VALUES (:uid, :card, :at, :rating, :share, :seconds, :mode, :draw)", asdict(review))

    def _move_on(self, review):
        rows = self._run("SELECT state FROM card WHERE name = ?", (review.card,))
        state, due = after(rows[0][0] if rows else None, review.rating, review.at)
        self._run("INSERT OR REPLACE INTO card VALUES (?, ?, ?)", (review.card, due, state))

    def due(self):
        """{card: when it is due, in seconds since 1970} of every card seen so far."""
        return dict(self._run("SELECT name, due FROM card"))

    def reviews(self):
        """Every Review, oldest first."""
        rows = self._run("SELECT card, at, rating, share, seconds, mode, draw, uid FROM review ORDER BY at, uid")
        return [Review(*row) for row in rows]

    # --- sittings

    def keep(self, sitting):
        """Keep a sitting, in place of what was kept of it before. Raises Overtaken where that was not kept by this window."""
        with self._change():
            if self._version(sitting.uid) != sitting.version:
                raise Overtaken
            self._keep(sitting)
        sitting.version += 1

    def _version(self, uid):
        return next((version for (version,) in self._run("SELECT version FROM sitting WHERE uid = ?", (uid,))), 0)

    def _keep(self, sitting):
        row = (sitting.uid, sitting.kind, sitting.at, json.dumps(sitting.body, ensure_ascii=False), self._version(sitting.uid) + 1)
        self._run("INSERT OR REPLACE INTO sitting VALUES (?, ?, ?, ?, ?)", row)

    def sitting(self, uid):
        """The sitting as it was last kept."""
        return next(sitting for sitting in self._every_sitting() if sitting.uid == uid)

    def sittings(self, kind):
        """The sittings of that kind, oldest first."""
        rows = self._run("SELECT kind, at, body, uid, version FROM sitting WHERE kind = ? ORDER BY at", (kind,))
        return [Sitting(kind, at, json.loads(body), *more) for kind, at, body, *more in rows]

    # --- taking it along

    def export(self):
        """All there is, as plain data."""
        return {"format": VERSION, "reviews": [asdict(r) for r in self.reviews()], "sittings": [asdict(s) for s in self._every_sitting()]}

    def _every_sitting(self):
        return [sitting for (kind,) in self._run("SELECT DISTINCT kind FROM sitting") for sitting in self.sittings(kind)]

    def merge(self, data):
        """Add what another store exported; what is here already is not added twice, and a sitting that got further stays.

        Returns how many reviews were new. Raises StoreError if it is no export of ours; nothing is changed then.
        """
        reviews, sittings = _read(data)
        with self._change():
            known = {uid for (uid,) in self._run("SELECT uid FROM review")}
            new = [review for review in reviews if review.uid not in known]
            for review in new:
                self._insert(review)
            for name in {review.card for review in new}:
                self._replay(name)
            here = {sitting.uid: _how_far(sitting) for sitting in self._every_sitting()}
            for sitting in sittings:
                if sitting.uid not in here or _how_far(sitting) > here[sitting.uid]:
                    self._keep(sitting)
        return len(new)

    def _replay(self, name):
        """Where a card stands, from its reviews in the order they happened."""
        self._run("DELETE FROM card WHERE name = ?", (name,))
        rows = self._run("SELECT card, at, rating, share FROM review WHERE card = ? ORDER BY at, uid", (name,))
        for row in rows:
            self._move_on(Review(*row))


def _how_far(sitting):
    return sitting.body["finished"], sum(question["answers"] is not None for question in sitting.body["questions"])


def _read(data):
    """The reviews and sittings of an export. Raises StoreError if it is none."""
    try:
        reviews, sittings = REVIEWS.validate_python(data["reviews"]), SITTINGS.validate_python(data["sittings"])
        for review in reviews:
            after(None, review.rating, review.at)
        for sitting in sittings:
            BODY.validate_python(sitting.body)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        why = "; ".join(str(error).splitlines()[:3])
        raise StoreError(f"this is not progress that `psi drill export` wrote: {type(error).__name__} {why}") from None
    return reviews, sittings


@dataclass
class _Question:
    exercise: str
    draw: str
    answers: dict | None
    seconds: float


@dataclass
class _Body:
    """What the body of a sitting has at least."""

    minutes: float
    questions: list[_Question]
    finished: bool


REVIEWS, SITTINGS, BODY = TypeAdapter(list[Review]), TypeAdapter(list[Sitting]), TypeAdapter(_Body)

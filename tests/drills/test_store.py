"""Progress on disk: two windows, a process that is killed, taking it along, and files that are something else."""

import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.drills.schedule import after
from autograder.drills.store import Overtaken, Review, Sitting, Store, StoreError

WRITER = [sys.executable, "-m", "tests.drills.write_forever"]
ROOT = Path(__file__).resolve().parents[2]
DAY = 86400.0


def start(path, *count):
    return subprocess.Popen([*WRITER, str(path), *map(str, count)], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def stands(path):
    """{card: (due, state)} as the file has it."""
    with sqlite3.connect(path) as db:
        return {name: (due, state) for name, due, state in db.execute("SELECT name, due, state FROM card")}


def replayed(path):
    """The same from the reviews alone, in the order they were written."""
    found = {}
    with sqlite3.connect(path) as db:
        for card, rating, at in db.execute("SELECT card, rating, at FROM review ORDER BY rowid"):
            state, due = after(found.get(card, (None, None))[1], rating, at)
            found[card] = (due, state)
    return found


def test_wrong_comes_back_sooner_than_right(tmp_path):
    store = Store(tmp_path / "drills.sqlite")
    store.record(Review("wrong", 0.0, 1, 0.0), Review("partly", 0.0, 2, 0.6), Review("right", 0.0, 3, 1.0))
    due = store.due()
    assert 0 < due["wrong"] < due["partly"] < due["right"]


def test_what_is_known_is_asked_ever_later(tmp_path):
    store, at, waits = Store(tmp_path / "drills.sqlite"), 0.0, []
    for _ in range(5):
        store.record(Review("card", at, 3, 1.0))
        waits.append(store.due()["card"] - at)
        at = store.due()["card"]
    assert waits == sorted(waits) and waits[-1] > 10 * DAY


def test_two_windows_lose_no_review(tmp_path):
    path = tmp_path / "drills.sqlite"
    writers = [start(path, 40), start(path, 40)]
    assert [writer.wait(300) for writer in writers] == [0, 0]
    reviews = Store(path).reviews()
    assert len(reviews) == 2 * 2 * 40 and sum(review.card == "shared" for review in reviews) == 80
    assert stands(path) == replayed(path)


@pytest.mark.parametrize("attempt", range(4))
def test_a_kill_in_the_middle_of_writing_loses_nothing_that_was_kept(tmp_path, attempt):
    path, writer = tmp_path / "drills.sqlite", start(tmp_path / "drills.sqlite")
    said = [writer.stdout.readline() for _ in range(random.Random(attempt).randrange(2, 40))]
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    store = Store(path)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    reviews = store.reviews()
    assert len(reviews) % 2 == 0, "a half of a pair was written"
    assert len(reviews) >= 2 * len(said)
    assert stands(path) == replayed(path)
    store.record(Review("after", 0.0, 3, 1.0))
    assert "after" in store.due()


def test_export_and_import_carry_everything_and_add_nothing_twice(tmp_path):
    home, train = Store(tmp_path / "home.sqlite"), Store(tmp_path / "train.sqlite")
    home.record(Review("a", 1.0, 3, 1.0), Review("b", 2.0, 1, 0.0))
    assert train.merge(json.loads(json.dumps(home.export()))) == 2
    home.record(Review("a", 5.0, 1, 0.0))
    train.record(Review("a", 4 * DAY, 3, 1.0))
    assert home.merge(train.export()) == 1
    assert train.merge(home.export()) == 1
    assert home.merge(train.export()) == 0
    assert home.reviews() == train.reviews() and home.due() == train.due()


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        {"reviews": [{}], "sittings": []},
        {"reviews": [{"card": "a", "at": 1e30, "rating": 3, "share": 1}], "sittings": []},
        {"reviews": [{"card": "a", "at": 1, "rating": 3, "share": "much"}], "sittings": []},
        {"reviews": [], "sittings": [{"kind": "paper", "at": 1, "body": {}}]},
    ],
)
def test_what_is_no_export_changes_nothing(tmp_path, data):
    store = Store(tmp_path / "drills.sqlite")
    with pytest.raises(StoreError, match="psi drill export"):
        store.merge(data)
    assert store.reviews() == []


def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 200)
    with pytest.raises(StoreError, match="not a file of progress"):
        Store(path)
    assert path.read_text().startswith("Dear reader")


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "drills.sqlite"
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer version"):
        Store(path)


def test_a_file_of_the_version_before_keeps_what_it_has(tmp_path):
    path = tmp_path / "drills.sqlite"
    with contextlib.closing(Store(path)) as store:
        store.record(Review("a", 1.0, 3, 1.0))
        store.keep(Sitting("paper", 1.0, {"questions": []}, "old"))
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE sitting DROP COLUMN version")
        db.execute("PRAGMA user_version = 1")
    store = Store(path)
    sitting = store.sitting("old")
    store.keep(sitting)
    assert len(store.reviews()) == 1 and store.sitting("old") == sitting


def test_of_two_windows_on_one_sitting_the_later_is_told(tmp_path):
    store = Store(tmp_path / "drills.sqlite")
    store.keep(Sitting("paper", 1.0, {"said": 0}, "one"))
    first, second = store.sitting("one"), store.sitting("one")
    first.body["said"] = 1
    store.keep(first)
    with pytest.raises(Overtaken):
        store.keep(second)
    assert store.sitting("one") == first and first.body["said"] == 1


def test_an_import_does_not_take_a_paper_back_to_where_it_was(tmp_path):
    store = Store(tmp_path / "drills.sqlite")
    body = {"minutes": 15, "questions": [{"exercise": "a", "draw": "0", "answers": None, "seconds": 0.0}], "finished": False}
    sitting = Sitting("paper", 1.0, body)
    store.keep(sitting)
    before = store.export()
    store.keep(replace(sitting, body=body | {"finished": True, "points": 3, "most": 4}))
    after_it = store.export()
    store.merge(before)
    assert store.export() == after_it
    other = Store(tmp_path / "other.sqlite")
    other.merge(before)
    other.merge(after_it)
    assert other.sittings("paper") == store.sittings("paper")


def test_a_full_disk_loses_only_what_did_not_fit(tmp_path):
    store, kept = Store(tmp_path / "drills.sqlite"), 0
    ((pages,),) = store._run("PRAGMA page_count")
    store._run(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match=r"disk is full.*is kept"):
        while True:
            store.record(Review(f"card {kept}", 0.0, 3, 1.0), Review("x" * 200, 0.0, 3, 1.0))
            kept += 1
    store._run(f"PRAGMA max_page_count = {10 * pages}")
    store.record(Review("after", 0.0, 3, 1.0))
    assert len(store.reviews()) == 2 * kept + 1


def test_a_damaged_file_is_told(tmp_path):
    path, other = tmp_path / "drills.sqlite", tmp_path / "damaged.sqlite"
    with contextlib.closing(Store(path)) as store:
        store.record(Review("a", 0.0, 3, 1.0))
    content = path.read_bytes()
    other.write_bytes(content[:4096] + bytes([255]) * (len(content) - 4096))
    with pytest.raises(StoreError, match="damaged"):
        Store(other).due()


def test_a_folder_is_told(tmp_path):
    with pytest.raises(StoreError, match="unable to open"):
        Store(tmp_path)


def test_a_clock_that_goes_back_takes_no_card_away(tmp_path):
    store = Store(tmp_path / "drills.sqlite")
    store.record(Review("a", 9 * DAY, 3, 1.0))
    store.record(Review("a", 2 * DAY, 1, 0.0))
    assert len(store.reviews()) == 2 and 2 * DAY < store.due()["a"] < 9 * DAY

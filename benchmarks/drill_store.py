"""How long opening the store and picking the next card take after many reviews: `python -m benchmarks.drill_store [REVIEWS]`."""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from autograder.bank import Bank
from autograder.drills.deck import Deck
from autograder.drills.schedule import rating
from autograder.drills.store import Review, Store

ROUNDS = 50
BATCH = 500
MISTAKES = 4  # misconceptions an exercise, on average, in the made-up history


def fill(store, names, count):
    """Reviews of exercises and misconceptions, an hour apart."""
    chance = random.Random(0)
    for start in range(0, count, BATCH):
        store.record(*(_review(chance, names, number) for number in range(start, min(count, start + BATCH))))


def _review(chance, names, number):
    name, share = chance.choice(names), chance.choice((0.0, 0.6, 1.0, 1.0))
    card = chance.choice([name, f"{name}/part/mistake_{chance.randrange(MISTAKES)}"])
    return Review(card, 1.7e9 + 3600 * number, rating(share), share)


def measure(path):
    """Milliseconds of opening and picking, ROUNDS times, the bank's index read afresh each time."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        Deck(Bank(), Store(path)).next()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def main(count):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drills.sqlite"
        store = Store(path)
        fill(store, list(Bank()), count)
        times = measure(path)
        size = path.stat().st_size / 1e6
    print(f"{count} reviews, {len(store.due())} cards, {size:.1f} MB")
    print(f"open and pick: median {statistics.median(times):.1f} ms, slowest of {ROUNDS} {max(times):.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

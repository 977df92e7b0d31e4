"""Keep reviewing into the store named on the command line until somebody ends this process. Prints a line for each review kept."""

import itertools
import sys
import time

from autograder.drills.store import Review, Store

if __name__ == "__main__":
    store = Store(sys.argv[1])
    for number in itertools.count() if len(sys.argv) < 3 else range(int(sys.argv[2])):
        store.record(Review(f"E000-TF{number % 5:02d}", time.time(), 1 + number % 3, number % 3 / 2), Review("shared", time.time(), 3, 1.0))
        print(number, flush=True)

"""When something is to be asked again: FSRS, a model of forgetting, kept deterministic so that reviews alone tell where a card stands."""

import json
from datetime import UTC, datetime

from fsrs import Card, Rating, Scheduler

SCHEDULER = Scheduler(enable_fuzzing=False)

# the least share of the points, and the rating it earns
RATINGS = ((0.999, Rating.Good), (0.5, Rating.Hard), (0.0, Rating.Again))
# what a rating is called
VERDICTS = {1: "wrong", 2: "partly", 3: "right"}


def rating(share):
    """FSRS's rating (1 to 4) of an answer that got this share, 0 to 1, of its points."""
    return int(next(name for least, name in RATINGS if share >= least))


def after(state, rated, at):
    """(state, due) of a card once it was `rated` at the time `at`, in seconds since 1970; `state` is None for a new one."""
    card = Card.from_dict(json.loads(state)) if state else Card(card_id=0)
    card, _ = SCHEDULER.review_card(card, Rating(rated), datetime.fromtimestamp(at, UTC))
    return json.dumps(card.to_dict()), card.due.timestamp()

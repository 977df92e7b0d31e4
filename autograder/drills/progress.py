"""How far a learner is: per chapter what was asked, what came out right, and what is due; as a table and as a picture."""

import time

from .. import feedback
from ..exercise import Text
from .deck import exercise_of
from .folding import right
from .wording import say

COLUMNS = (9, 12, 8, 8, 9)  # the widths of the table
SECOND_LOOK = 0.5  # under this share of points an exercise counts as not known yet


def by_chapter(deck):
    """One row for each chapter that has exercises: how many, asked, known (by the last answer), due now, and the mean share of points."""
    due, now, last, shares = deck.store.due(), deck.clock(), {}, {}
    for review in deck.store.reviews():
        if "/" not in review.card and review.card in deck.bank.headers:
            last[review.card] = review.share
            shares.setdefault(deck.bank.headers[review.card].chapter, []).append(review.share)
    chapters = sorted({header.chapter for header in deck.bank.headers.values()})
    return [_row(deck, chapter, {exercise_of(c) for c, at in due.items() if at <= now}, last, shares.get(chapter)) for chapter in chapters]


def _row(deck, chapter, due, last, shares):
    names = {name for name, header in deck.bank.headers.items() if header.chapter == chapter}
    return {
        "chapter": chapter,
        "exercises": len(names),
        "asked": len(names & set(last)),
        "known": sum(last[name] > SECOND_LOOK for name in names & set(last)),
        "due": len(names & due),
        "answers": len(shares or []),
        "share": sum(shares) / len(shares) if shares else None,
    }


def misconceptions(deck, most=5):
    """(card, times met) of the misconceptions met most often, of exercises that the bank still has."""
    met = {}
    for review in deck.store.reviews():
        if "/" in review.card and review.share == 0 and exercise_of(review.card) in deck.bank.headers:
            met[review.card] = met.get(review.card, 0) + 1
    return sorted(met.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


def _hint(deck, card):
    """What is told to whoever shows that misconception; nothing where the exercise does not know it any more."""
    name, part, mistake = card.split("/")
    parts = [one for one in deck.bank[name].parts if one.name == part]
    return next((known.hint for one in parts for known in one.mistakes if known.name == mistake), Text(en="–", zh="–"))


def statistics(deck):
    """Everything that `psi drill stats` tells, as plain data."""
    reviews = [review for review in deck.store.reviews() if "/" not in review.card]
    return {
        "answers": len(reviews),
        "days": len({time.strftime("%Y-%m-%d", time.localtime(review.at)) for review in reviews}),
        "chapters": by_chapter(deck),
        "misconceptions": [{"card": card, "times": times, "hint": _hint(deck, card).model_dump()} for card, times in misconceptions(deck)],
        "sittings": [_sat(sitting) for kind in ("paper", "interview") for sitting in deck.store.sittings(kind)],
    }


def _sat(sitting):
    taken = time.strftime("%Y-%m-%d %H:%M", time.localtime(sitting.at))
    return {"kind": sitting.kind, "taken": taken} | {key: sitting.body.get(key) for key in ("minutes", "points", "most", "finished")}


def write(said, languages=("en",)):
    """The statistics as lines of text."""
    tell = lambda key, **values: say(key, languages, **values)
    yield tell("answered", answers=said["answers"], days=said["days"])
    yield "".join(
        right(say(name, languages[:1]), width)
        for name, width in zip(("chapter", "asked", "known", "due_now", "share"), COLUMNS, strict=True)
    )
    for row in said["chapters"]:
        share = "" if row["share"] is None else f"{row['share']:.0%}"
        cells = (row["chapter"], f"{row['asked']} / {row['exercises']:<2}", row["known"], row["due"], share)
        numbers = "".join(right(str(cell), width) for cell, width in zip(cells, COLUMNS, strict=True))
        yield f"{numbers}   {feedback.title(row['chapter']).say(languages)}"
    yield from (tell("met", **row | {"hint": Text(**row["hint"])}) for row in said["misconceptions"])
    for row in said["sittings"]:
        yield tell(f"{row['kind']}_taken", **row) + tell("result" if row["finished"] else "unfinished", **row)


def picture(said):
    """The statistics as a matplotlib figure: one bar a chapter, what is known, asked and not asked yet."""
    from matplotlib.figure import Figure  # here, since a morning's drill should not wait for it

    rows = said["chapters"]
    names, known = [str(row["chapter"]) for row in rows], [row["known"] for row in rows]
    asked, all_ = [row["asked"] for row in rows], [row["exercises"] for row in rows]
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    for heights, colour, label in ((all_, "#c8ccd0", "not asked yet"), (asked, "#e0a458", "asked"), (known, "#3a7d44", "known")):
        axes.bar(names, heights, color=colour, label=label)
    axes.set(xlabel="chapter", ylabel="exercises", title="Progress")
    axes.legend()
    return figure

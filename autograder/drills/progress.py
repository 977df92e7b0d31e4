"""How far a learner is: per chapter what was asked, what came out right, and what is due; as a table and as a picture."""

import time

from .deck import exercise_of

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
    """(card, times met) of the misconceptions met most often."""
    met = {}
    for review in deck.store.reviews():
        if "/" in review.card and review.share == 0:
            met[review.card] = met.get(review.card, 0) + 1
    return sorted(met.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


def statistics(deck):
    """Everything that `psi drill stats` tells, as plain data."""
    reviews = [review for review in deck.store.reviews() if "/" not in review.card]
    return {
        "answers": len(reviews),
        "days": len({time.strftime("%Y-%m-%d", time.localtime(review.at)) for review in reviews}),
        "chapters": by_chapter(deck),
        "misconceptions": [{"card": card, "times": times} for card, times in misconceptions(deck)],
        "sittings": [_sat(sitting) for kind in ("paper", "interview") for sitting in deck.store.sittings(kind)],
    }


def _sat(sitting):
    taken = time.strftime("%Y-%m-%d %H:%M", time.localtime(sitting.at))
    return {"kind": sitting.kind, "taken": taken} | {key: sitting.body.get(key) for key in ("minutes", "points", "most", "finished")}


def write(said):
    """The statistics as lines of text."""
    yield f"{said['answers']} answers on {said['days']} days"
    yield f"{'chapter':>7}{'asked':>10}{'known':>8}{'due':>6}{'points':>9}"
    for row in said["chapters"]:
        share = "" if row["share"] is None else f"{row['share']:.0%}"
        yield f"{row['chapter']:>7}{row['asked']:>5} / {row['exercises']:<2}{row['known']:>8}{row['due']:>6}{share:>9}"
    yield from (f"misconception met {row['times']}x: {row['card']}" for row in said["misconceptions"])
    for row in said["sittings"]:
        result = f"{row['points']:g} of {row['most']:g} points" if row["finished"] else "not finished"
        yield f"{row['kind']} of {row['taken']}, {row['minutes']:g} minutes: {result}"


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

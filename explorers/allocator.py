"""The allocator sandbox: what a caching allocator holds of a card, event by event, with and without expandable segments."""

from dataclasses import dataclass, field
from itertools import groupby

from formulary import Alternative, Convention

from .control import Choice, Step
from .explorer import Explorer
from .grid import NOTHING, Grid

CARD = 24  # pages of the card that is drawn
FREE, UNMAPPED = "free", "unmapped"
LEGEND = ("tensor that stays", "activation", "held, in no tensor", "asked for", "asked for and refused")
STAYS, ACTIVATION, HELD, ASKED, REFUSED = range(len(LEGEND))

# What a training asks for, event by event: (tensor, pages), with 0 pages where it is given back. Activations are lower-case.
STEADY = [("a", 4), ("b", 4), ("b", 0), ("a", 0)]
LEAKY = [("a", 4), ("OUTPUT {}", 4), ("a", 0)]
SCRIPTS = {
    "changing": [
        *(("WEIGHTS", 6), ("a", 5), ("b", 5), ("c", 5)),
        *(("c", 0), ("GRADIENT 3", 3), ("b", 0), ("GRADIENT 2", 3), ("a", 0), ("GRADIENT 1", 3)),
        *(("d", 5), ("e", 4), ("e", 0)),
    ],
    "steady": [("WEIGHTS", 6), *STEADY, *STEADY, *STEADY],
    "leak": [("WEIGHTS", 6), *((name.format(step), pages) for step in range(4) for name, pages in LEAKY)],
}
EVENTS = max(map(len, SCRIPTS.values()))

SCRIPT = Convention(
    "script",
    "What is the training like?",
    (
        Alternative("changing", "the next step's sequences are of another length", "most fine-tuning", {"script_shown": 0}),
        Alternative("steady", "all steps have the same shapes", "pre-training on packed sequences", {"script_shown": 1}),
        Alternative("leak", "one output of each step is kept", "a list in a forgotten corner", {"script_shown": 2}),
    ),
)
SEGMENTS = Convention(
    "segments",
    "How are segments made?",
    (
        Alternative("fixed_segments", "of the size asked for, once and for all", "PyTorch's default", {"expandable": 0}),
        Alternative("expandable_segments", "one that grows, page by page", "expandable_segments:True", {"expandable": 1}),
    ),
)


@dataclass
class Allocator:
    """Hands out pages of segments, keeps what comes back, and asks the driver for more only when nothing free is large enough.

    segments: a list of pages each, every page naming the tensor that lies in it, FREE or UNMAPPED.
    """

    expandable: bool
    card: int = CARD
    segments: list = field(default_factory=list)

    @property
    def held(self):
        """Pages that the driver has given."""
        return sum(page != UNMAPPED for segment in self.segments for page in segment)

    def take(self, tensor, pages):
        """Whether there was room for the tensor; if so it lies there now."""
        hole = self._hole(pages) or (self._extended(pages) if self.expandable else self._opened(pages))
        if hole:
            segment, start = hole
            segment[start : start + pages] = [tensor] * pages
        return bool(hole)

    def give(self, tensor):
        """The tensor's pages are free; neighbours that are free too are one hole with them."""
        for segment in self.segments:
            segment[:] = [FREE if page == tensor else page for page in segment]

    def _hole(self, pages):
        """The smallest free stretch that is large enough, as (segment, start)."""
        holes = [(length, segment, start) for segment in self.segments for page, start, length in _stretches(segment) if page == FREE]
        return next(((segment, start) for length, segment, start in sorted(holes, key=lambda hole: hole[0]) if length >= pages), None)

    def _opened(self, pages):
        """A new segment, after segments without any tensor have gone back to the driver, if need be."""
        if self.held + pages > self.card:
            self.segments = [segment for segment in self.segments if set(segment) != {FREE}]
        if self.held + pages > self.card:
            return None
        self.segments.append([FREE] * pages)
        return self.segments[-1], 0

    def _extended(self, pages):
        """The one segment with pages mapped behind its end, some of them unmapped elsewhere, if need be."""
        self.segments = self.segments or [[]]
        segment = self.segments[0]
        tail = sum(length for page, start, length in _stretches(segment) if page == FREE and start + length == len(segment))
        start = len(segment) - tail
        wanted = max(0, self.held + pages - tail - self.card)
        spare = [place for place, page in enumerate(segment[:start]) if page == FREE]
        if wanted > len(spare):
            return None
        for place in spare[:wanted]:
            segment[place] = UNMAPPED
        segment += [FREE] * (pages - tail)
        return segment, start


def _stretches(segment):
    """(what is in it, first page, pages) of each stretch of equal pages."""
    start = 0
    for page, same in groupby(segment):
        length = len(list(same))
        yield page, start, length
        start += length


def _run(script, expandable):
    """(the pages asked for, whether they were given, the segments) after each event; a refusal ends the training."""
    allocator, shown = Allocator(expandable), [(0, True, [])]
    for tensor, pages in script:
        if shown[-1][1]:
            given = allocator.take(tensor, pages) if pages else allocator.give(tensor) or True
            shown.append((pages, given, [list(segment) for segment in allocator.segments]))
    return shown + [shown[-1]] * (EVENTS + 1 - len(shown))


KINDS = {FREE: HELD, UNMAPPED: NOTHING}


def _frame(asked, given, segments, columns):
    """The rows of cells of one state."""
    request = [ASKED if given else REFUSED] * asked
    rows = [request, *([KINDS.get(page, ACTIVATION if page.islower() else STAYS) for page in segment] for segment in segments)]
    rows += [[]] * (MOST_ROWS - len(rows))
    return [row + [NOTHING] * (columns - len(row)) for row in rows]


RUNS = [[_run(script, expandable) for expandable in (False, True)] for script in SCRIPTS.values()]
STATES = [state for script in RUNS for run in script for state in run]
MOST_ROWS = 1 + max(len(segments) for _, _, segments in STATES)
COLUMNS = max(len(segment) for _, _, segments in STATES for segment in segments)


def allocator_explorer(script="changing", segments="fixed_segments", event=4):
    """A card's memory as a caching allocator hands it out: segments, live tensors, and holes that are too small."""
    view = Grid(
        rows=MOST_ROWS,
        columns=COLUMNS,
        legend=LEGEND,
        cells="pages",
        what=f"of {CARD} pages are held and in no tensor",
        frames=[[[_frame(*state, COLUMNS) for state in run] for run in script] for script in RUNS],
        by=("script_shown", "expandable", "event"),
        row_label=["request", *(f"segment {number + 1}" for number in range(MOST_ROWS - 1))],
        counted=LEGEND[HELD],
        height=230,
    )
    controls = [
        Choice(SCRIPT, script, "training"),
        Choice(SEGMENTS, segments, "segments"),
        Step("event", "events done", EVENTS, event, pace=900),
    ]
    return Explorer([], controls, view, title="An allocator at work", made_by="explorers.allocator_explorer")

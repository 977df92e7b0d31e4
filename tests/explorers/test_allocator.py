"""The allocator sandbox: pages are never lost and never move, and what differs is who is refused."""

import pytest

import explorers
from explorers.allocator import CARD, FREE, LEGEND, RUNS, SCRIPTS, UNMAPPED

STAYS, ACTIVATION, HELD, ASKED, REFUSED = range(len(LEGEND))


def lying(segments):
    """{tensor: where its pages are}."""
    places = {}
    for number, segment in enumerate(segments):
        for place, page in enumerate(segment):
            places.setdefault(page, []).append((number, place))
    return {tensor: where for tensor, where in places.items() if tensor not in (FREE, UNMAPPED)}


@pytest.mark.parametrize("expandable", [0, 1])
@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_tensors_have_their_pages_and_never_move(number, expandable):
    states, script, asked = RUNS[number][expandable], list(SCRIPTS.values())[number], {}
    for (_, given, segments), (_, _, before), (tensor, pages) in zip(states[1:], states, script, strict=False):
        asked = {name: size for name, size in {**asked, tensor: pages}.items() if size}
        if not given:
            break
        now, earlier = lying(segments), lying(before)
        assert {name: len(where) for name, where in now.items()} == asked
        assert sum(page != UNMAPPED for segment in segments for page in segment) <= CARD
        if expandable:
            assert len(segments) == 1
            assert all(now[name] == earlier[name] for name in now.keys() & earlier.keys())


def outcome(script, segments):
    made = explorers.allocator_explorer(script, segments, event=13)
    return [cell[0] for row in made.scene()["cells"] for cell in row]


def test_only_expandable_segments_have_room_for_longer_sequences():
    assert REFUSED in outcome("changing", "fixed_segments")
    assert REFUSED not in outcome("changing", "expandable_segments")


def test_no_segment_helps_against_a_leak():
    assert all(REFUSED in outcome("leak", segments) for segments in ("fixed_segments", "expandable_segments"))


def test_what_is_counted_is_held_and_in_no_tensor():
    made = explorers.allocator_explorer("changing", "fixed_segments", event=10)
    assert made.scene()["figure"] == 6

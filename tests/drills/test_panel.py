"""The drill panel without a browser: what its boxes and buttons do."""

import re

import pytest

from autograder import drill


@pytest.fixture
def panel(tmp_path):
    return drill(chapter=7, store=tmp_path / "drills.sqlite")


def told(panel):
    return "".join(str(box.get_state()) for box in panel.told.children)


def test_what_cannot_be_read_is_told_and_not_marked(panel):
    name = next(part.name for part in panel.asked.numbers)
    panel.fields[name].value = "nonsense"
    panel.buttons["check"].click()
    assert "nonsense" in told(panel) and panel.deck.store.reviews() == []
    assert not panel.buttons["check"].disabled


def test_the_derivation_can_be_seen_after_an_answer_and_costs_nothing_then(panel):
    panel.buttons["check"].click()
    assert panel.buttons["check"].disabled and "read chapter 7" in told(panel)
    before = panel.deck.store.reviews()
    panel.buttons["show"].click()
    assert "Where the formulas come from" in told(panel) and panel.deck.store.reviews() == before


def test_choosing_asks_at_once_and_says_where_there_is_nothing(panel):
    panel.choice["kind"].value = "true_false"
    assert panel.asked.exercise.kind == "true_false"
    panel.choice["kind"].value = "calculation"
    panel.choice["mode"].value = "rapid"
    assert len(panel.fields) == 1
    panel.choice["kind"].value = "true_false"
    panel.choice["difficulty"].value = 5
    assert "No exercise has all of this" in str(panel.asking.children[0].get_state())
    assert all(panel.buttons[name].disabled for name in ("check", "hint", "show"))


def test_everything_to_choose_from_is_in_the_language_asked_for(tmp_path):
    choice = drill("zh", store=tmp_path / "drills.sqlite").choice
    labels = [label for name in ("mode", "chapter", "kind") for label, _ in choice[name].options]
    assert [label for label in labels if not re.search("[\u4e00-\u9fff]", label)] == []


def test_the_panel_says_what_is_only_in_the_terminal(panel):
    assert any("psi drill paper" in getattr(box, "value", "") for box in panel.children)
